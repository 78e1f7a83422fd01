"""Checks that the sessions of a port carried the NPU options that its scripts request."""

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jumar.ground.text import Text
from jumar.porting.check.wording import NOTHING, as_is
from jumar.porting.npu.option_table import ADAPTER_OPTIONS
from jumar.porting.script.expressions import is_none
from jumar.porting.script.source import Unreadable, decode

_FUNCTION = "npu_session_config"
_RUN_CONFIG = "NPURunConfig"
_OPTIONS = frozenset(ADAPTER_OPTIONS)
_OTHER_VALUE = Text(en="{key}={value} (but {carried})", zh="{key}={value}（实际为 {carried}）")
_NO_NPU_SESSION = Text(
    en="no session had NpuOptimizer, so training would stay on the CPU: "
    "port the tree with 'jumar port', and read its blocking findings",
    zh="没有任何会话带有 NpuOptimizer，训练会留在 CPU 上：请用 'jumar port' 移植该目录，"
    "并查看报告中阻断级的发现",
)
_NOT_CARRIED = Text(
    en="no session carried {options}, which the port sets in {function}() or NPURunConfig: "
    "pass it to the session or estimator that trains",
    zh="没有任何会话带有 {options}，而移植结果在 {function}() 或 NPURunConfig 中设置了它："
    "请把它传给训练用的会话或 Estimator",
)
_KEY = re.compile(r"""parameter_map\[["'](\w+)["']\]""")


def not_carried(events: Iterable[Mapping[str, Any]], scripts: Iterable[Path]) -> Text:
    """Return the options that no session carried as a reason, empty if none is missing.

    Args:
        events: Events recorded by the stand-in.
        scripts: The files of the port.
    """
    sessions = [event for event in events if event.get("kind") == "session" and event.get("npu")]
    if not sessions:
        return _NO_NPU_SESSION
    session_options = [
        {str(key): str(value) for block in event.get("options", ()) for key, value in block.items()}
        for event in sessions
    ]
    requested: dict[str, str] = {}
    for path in scripts:
        requested |= requested_options(path)
    missing_options = min(
        (_missing_from(requested, options) for options in session_options), key=len
    )
    if not missing_options:
        return NOTHING
    options = Text(
        en=", ".join(option.en for option in missing_options),
        zh="、".join(option.zh for option in missing_options),
    )
    return _NOT_CARRIED.filled(options=options, function=_FUNCTION)


def _missing_from(requested: Mapping[str, str], options: Mapping[str, str]) -> list[Text]:
    """Return the options that a session lacks or has with another value."""
    missing_options: list[Text] = []
    for key, value in sorted(requested.items()):
        if key not in options:
            missing_options.append(as_is(key))
        elif value and options[key] != value:
            missing_options.append(_OTHER_VALUE.filled(key=key, value=value, carried=options[key]))
    return missing_options


def requested_options(path: Path) -> dict[str, str]:
    """Return the options that a ported script requests, with their values if constant.

    They are set in the function that the port adds, which puts them into every session, and in
    arguments of NPURunConfig.
    """
    try:
        text = decode(path.read_bytes()).text
        if f"def {_FUNCTION}(" not in text and _RUN_CONFIG not in text:
            return {}
        tree = ast.parse(text)
    except (OSError, Unreadable, SyntaxError, ValueError):
        return {}
    requested: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == _FUNCTION:
            source = ast.get_source_segment(text, node) or ""
            requested |= dict.fromkeys(_KEY.findall(source), "")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(_RUN_CONFIG):
            requested |= {
                keyword.arg: str(keyword.value.value)
                if isinstance(keyword.value, ast.Constant)
                else ""
                for keyword in node.keywords
                if keyword.arg in _OPTIONS and not is_none(keyword.value)
            }
    return requested
