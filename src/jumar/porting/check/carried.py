"""Whether the sessions of a port carried the NPU's options that its scripts ask for."""

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jumar.porting.npu.option_table import ADAPTER_OPTIONS
from jumar.porting.script.source import Unreadable, decode

_FUNCTION = "npu_session_config"
_RUN_CONFIG = "NPURunConfig"
_OPTIONS = frozenset(ADAPTER_OPTIONS)
_KEY = re.compile(r"""parameter_map\[["'](\w+)["']\]""")


def not_carried(events: Iterable[Mapping[str, Any]], scripts: Iterable[Path]) -> str:
    """What the sessions lacked, as a reason; nothing where they had all that was asked for.

    Args:
        events: What the stand-in recorded.
        scripts: The files of the port.
    """
    sessions = [event for event in events if event.get("kind") == "session" and event.get("npu")]
    if not sessions:
        return (
            "no session had NpuOptimizer, so training would stay on the CPU: "
            "port the tree with 'jumar port', and read its blocking findings"
        )
    carried = [
        {str(key): str(value) for block in event.get("options", ()) for key, value in block.items()}
        for event in sessions
    ]
    asked: dict[str, str] = {}
    for path in scripts:
        asked |= asked_options(path)
    lacking = min((_lacking(asked, options) for options in carried), key=len)
    if not lacking:
        return ""
    return (
        f"no session carried {', '.join(lacking)}, which the port sets in {_FUNCTION}() or "
        "NPURunConfig: give it to the session or estimator that trains"
    )


def _lacking(asked: Mapping[str, str], carried: Mapping[str, str]) -> list[str]:
    """The options that a session has not, or with another value."""
    lacking: list[str] = []
    for key, value in sorted(asked.items()):
        if key not in carried:
            lacking.append(key)
        elif value and carried[key] != value:
            lacking.append(f"{key}={value} (but {carried[key]})")
    return lacking


def asked_options(path: Path) -> dict[str, str]:
    """The options that a script of a port asks for, with their values where these are constants.

    They stand in the port's own function, which puts them into every session, and in arguments of
    NPURunConfig.
    """
    try:
        text = decode(path.read_bytes()).text
        if f"def {_FUNCTION}(" not in text and _RUN_CONFIG not in text:
            return {}
        tree = ast.parse(text)
    except (OSError, Unreadable, SyntaxError, ValueError):
        return {}
    asked: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == _FUNCTION:
            source = ast.get_source_segment(text, node) or ""
            asked |= dict.fromkeys(_KEY.findall(source), "")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(_RUN_CONFIG):
            asked |= {
                word.arg: str(word.value.value) if isinstance(word.value, ast.Constant) else ""
                for word in node.keywords
                if word.arg in _OPTIONS
                and not (isinstance(word.value, ast.Constant) and word.value.value is None)
            }
    return asked
