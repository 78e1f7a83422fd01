"""Recognises the kind of a file by its first bytes, since users rename files."""

import re
from pathlib import Path
from typing import Final

from jumar.profiling.reading.files import headers
from jumar.profiling.reading.files.opening import SQLITE, ZIP, head_of, header_of, text_of

_JSON_MARKERS: Final = (
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
_SPECIAL_TRACES: Final = (
    (('"ph"', '"fullname"', '"data_type"'), "mindspore_timeline"),
    (('"ph"', '"HCCL"', '"Communication Kernel"'), "hccl_trace"),
)
"""Kinds of traces with dedicated readers, by strings among the first bytes."""
_FULL_TRACE_PROCESSES: Final = ('"Ascend Hardware"', '"CANN"', '"Python"', '"Overlap Analysis"')
"""Processes in traces that contain more than collectives or MindSpore ops."""
_TEXT_MARKERS: Final = (
    ("op compute time", "mindspore_op_text"),
    ("serial_number node_type_name", "mindspore_aicpu_text"),
)
_CLOCK_FILE: Final = "min_cycle_counter"
_NUMBER: Final = re.compile(r"\d{1,18}(\.0*)?\s*$")
"""A file with a single number, which only its name identifies."""


def recognised(path: Path) -> str:
    """The kind of a file; empty if unknown."""
    head = head_of(path)
    if head.startswith(SQLITE):
        return "sqlite"
    if head.startswith(ZIP):
        return "zip"
    text = text_of(head).lstrip()
    if text.startswith("["):
        is_trace = '"ph"' in text or text[1:].lstrip().startswith("]")
        return _special_trace(text) or ("trace" if is_trace else "")
    if text.startswith("{"):
        return next((kind for marker, kind in _JSON_MARKERS if marker in text), "")
    if path.name.startswith(_CLOCK_FILE) and _NUMBER.match(text):
        return "mindspore_clock"
    return headers.kind_of(header_of(text)) or next(
        (kind for marker, kind in _TEXT_MARKERS if marker in text[:400]), ""
    )


def _special_trace(text: str) -> str:
    """The kind of a trace with nothing but collectives or MindSpore ops; empty for others."""
    if any(process in text for process in _FULL_TRACE_PROCESSES):
        return ""
    return next(
        (kind for markers, kind in _SPECIAL_TRACES if all(marker in text for marker in markers)), ""
    )
