"""Whether the sessions of a port carried the NPU's options that its scripts ask for."""

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jumar.porting.script.source import Unreadable, decode

_FUNCTION = "npu_session_config"
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
    carried = [{key for block in event.get("options", ()) for key in block} for event in sessions]
    asked = {key for path in scripts for key in asked_options(path)}
    best = max(carried, key=lambda keys: len(keys & asked))
    lacking = sorted(asked - best)
    if not lacking:
        return ""
    return (
        f"no session carried {', '.join(lacking)}, which {_FUNCTION}() of the port sets: "
        "give its result to the session that trains"
    )


def asked_options(path: Path) -> set[str]:
    """The options that a port's own function puts into every session of a script."""
    try:
        text = decode(path.read_bytes()).text
        if f"def {_FUNCTION}(" not in text:
            return set()
        tree = ast.parse(text)
    except (OSError, Unreadable, SyntaxError, ValueError):
        return set()
    return {
        key
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == _FUNCTION
        for key in _KEY.findall(ast.get_source_segment(text, node) or "")
    }
