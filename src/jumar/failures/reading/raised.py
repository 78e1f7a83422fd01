"""What a failing program itself reports: exceptions and CANN messages unknown to the table.

Each pattern is anchored or bounded, so that matching takes time linear in the line's length.
"""

import re
from typing import Final

EXCEPTION: Final = "python-exception"
"""The fault of an exception that the table does not know."""
MESSAGE: Final = "cann-message"
"""The fault of a message of CANN that the table does not know."""
CALL: Final = "npu-function-failed"
"""The fault of a call to CANN whose code the table does not know."""
KILLED: Final = "process-killed"
"""The fault of a process that the shell reports as killed, by that word alone."""
LOGGED: Final = "logged-error"
"""The fault of an error in a native library's log that the table does not know."""
QUOTED: Final = frozenset({LOGGED, "native-assert"})
"""Faults that only the words of their line explain, besides the general ones."""
VAGUE: Final = frozenset({"npu-inner-error", "ge-failed"})
"""Faults of codes that may precede any message."""
LONGEST_SAYING: Final = 400
_NAME: Final = r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Za-z_]\w{0,60}"
_RAISED: Final = re.compile(
    r"(?:[A-Za-z_]\w{0,60}\.){0,8}_?[A-Z]\w{0,60}"
    r"(?:Error|Exception|Interrupt|Exit|Expired|Timeout)(?:: |:?$)"
    r"|(?:[A-Za-z_]\w{0,60}\.){0,8}(?:Exception|StopIteration|Empty)(?:: |:?$)"
)
_AFTER_TRACEBACK: Final = re.compile(rf"{_NAME}(?:: \S|$)")
"""Any name of an exception, if the frames of a traceback are above it."""
_BARE: Final = re.compile(rf"{_NAME}:?\s*$")
_CANN: Final = re.compile(
    r"E[A-Z0-9]\d{4}(?:: | ?(?=\[PID)|  (?=\[))(?:\[PID: ?\d{1,9}\] ?)?(?:\d{4}-[\d:.-]{10,30} ?)?"
    r"(?:\(E\w{5}\): ?)?\s{0,8}(?=\S)"
    r"|\[PID: ?\d{1,9}\] ?\d{4}-[\d:.-]{10,30} ?\w{1,80}\(E[A-Z0-9]\d{4}\): ?(?=\S)"
)
_LOGGED: Final = re.compile(
    r"\[(?:ERROR|CRITICAL)\] [A-Z_]{2,20}\(\d{1,9}(?::\d{1,20})?,[^)]{0,60}\):[\d:. -]{15,35}"
    r"\[[\w./-]{1,120}:\d{1,6}\] ?(?:\[\d{1,9}\]|\d{1,9} )?"
    r"|\[[^\]]{8,40}\] (?:\[[\w.-]{1,30}\] ){1,4}\[ERROR\] \[[\w./-]{1,120}:\d{1,6}\] ?:? ?"
    r"|\d{4}-\d\d-\d\d [\d:.]{8,16}: [EF] (?:tensorflow|external|xla|tsl)/[\w./-]{1,120}:\d{1,6}\] "
    r"|[EF]\d{4} [\d:.]{15} {1,6}\d{1,9} [\w./-]{1,120}:\d{1,6}\] "
    r"|\[[\d.]{10,20}\] \[[\w. :/-]{3,100}\] {1,9}[\w./-]{1,60}:\d{1,6} {1,4}UCX {1,4}ERROR "
)
"""The start of an error line: plog and MindSpore, MindIE, TensorFlow, glog, UCX."""
_WRAPPED: Final = re.compile(rf"{_NAME}: (?:Caught \w{{1,60}} in |\d{{1,6}} root error\(s\) found)")
"""A line above the exception itself: of another process (PyTorch), or of a graph (TensorFlow)."""
_ROOT_ERROR: Final = re.compile(r"\s{1,4}\(0\) [A-Z][\w ]{2,30}: +(?=\S)")
"""TensorFlow's first one of several exceptions of a graph."""
_CODE_ALONE: Final = re.compile(r"\(E\w{5}\):$")
_WHERE_IN_CANN: Final = re.compile(r"\[(?:FUNC|FILE|LINE|THREAD):")


def kind_of(text: str) -> str:
    """The fault of a line that is not in the table, but looks like the end of a process."""
    if text.strip() == "Killed":
        return KILLED
    is_call_error = " function error:" in text and "error code is " in text
    return CALL if is_call_error else EXCEPTION


def is_exception(text: str, *, in_traceback: bool) -> bool:
    """Whether a line is the one that ends a traceback, looks like it, or says `Killed`."""
    if _WRAPPED.match(text):
        return False
    if text.strip() == "Killed" or _ROOT_ERROR.match(text):
        return True
    pattern = _AFTER_TRACEBACK if in_traceback else _RAISED
    return (pattern.match(text) or _RAISED.match(text)) is not None


def is_wrapped(text: str) -> bool:
    """Whether a line only announces the original traceback of another process."""
    return _WRAPPED.match(text) is not None


def is_logged_error(text: str) -> bool:
    """Whether a line is an error in the log of CANN, MindSpore, MindIE or TensorFlow."""
    match = _LOGGED.match(text)
    return match is not None and match.end() < len(text)


def cann_message_in(text: str) -> str:
    """CANN's message after a code; empty if the code stands alone."""
    match = _CANN.match(text)
    if match is None:
        return ""
    message = _WHERE_IN_CANN.split(text[match.end() :], maxsplit=1)[0].strip()
    is_empty = message.startswith("Inner Error") or _CODE_ALONE.match(message) is not None
    return "" if is_empty else message


def saying(text: str, before: str) -> str:
    """The words to quote.

    Args:
        text: The line, without launcher prefixes.
        before: The line above, which an exception without a message needs: `assert a == b`.
    """
    logged = _LOGGED.match(text)
    message = cann_message_in(text) or text[logged.end() if logged else 0 :].strip()
    if _BARE.match(text) and before.startswith(" ") and 'File "' not in before:
        message = f"{message.rstrip(':')}: {before.strip()}"
    return message[:LONGEST_SAYING]
