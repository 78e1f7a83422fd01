"""The kind of a file, by its first bytes, not by its name: scripts rename files."""

import re
from pathlib import Path
from typing import Final

from jumar.profiling.reading.files import headers
from jumar.profiling.reading.files.opening import SQLITE, ZIP, head_of, header_of, text_of

_JSON: Final = (
    ('"traceEvents"', "trace"),
    ('"Communication Time Info"', "communication"),
    ('"Transport Type"', "communication_matrix"),
    ('"common_config"', "profiler_info"),
    ('"DeviceInfo"', "msprof_info"),
    ('"ENV_VARIABLES"', "profiler_metadata"),
    ('"schemaVersion"', "trace"),
    ('"deviceProperties"', "trace"),
    ('"p2p"', "communication"),
    ('"cube_tflops"', "chips"),
)
_TRACES: Final = (
    (('"ph"', '"fullname"', '"data_type"'), "mindspore_timeline"),
    (('"ph"', '"HCCL"', '"Communication Kernel"'), "hccl_trace"),
)
"""Traces with their own readers, by their first bytes."""
_OTHERS: Final = ('"Ascend Hardware"', '"CANN"', '"Python"', '"Overlap Analysis"')
"""Processes of traces that hold everything, collectives among it."""
_TEXTS: Final = (
    ("op compute time", "mindspore_op_text"),
    ("serial_number node_type_name", "mindspore_aicpu_text"),
)
_CLOCK: Final = "min_cycle_counter"
_NUMBER: Final = re.compile(r"\d{1,18}(\.0*)?\s*$")
"""A file of one number, which only its name tells from others."""


def recognised(path: Path) -> str:
    """The kind of a file, or an empty string if unknown."""
    head = head_of(path)
    if head.startswith(SQLITE):
        return "sqlite"
    if head.startswith(ZIP):
        return "zip"
    text = text_of(head).lstrip()
    if text.startswith("["):
        special = _special(text)
        if special:
            return special
        return "trace" if '"ph"' in text or text[1:].lstrip().startswith("]") else ""
    if text.startswith("{"):
        return next((kind for mark, kind in _JSON if mark in text), "")
    if path.name.startswith(_CLOCK) and _NUMBER.match(text):
        return "mindspore_clock"
    return headers.kind_of(header_of(text)) or next(
        (kind for mark, kind in _TEXTS if mark in text[:400]), ""
    )


def _special(text: str) -> str:
    """The kind of a trace with nothing but collectives, or MindSpore ops."""
    if any(process in text for process in _OTHERS):
        return ""
    return next((kind for marks, kind in _TRACES if all(mark in text for mark in marks)), "")
