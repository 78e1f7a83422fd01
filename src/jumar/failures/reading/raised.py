"""Recognises exceptions and CANN messages that are not in the table.

Each pattern is anchored or bounded, so that matching takes time linear in the line's length.
"""

import re
from typing import Final

EXCEPTION: Final = "python-exception"
"""The fault of an exception that is not in the table."""
MESSAGE: Final = "cann-message"
"""The fault of a CANN message that is not in the table."""
CALL: Final = "npu-function-failed"
"""The fault of a call to CANN whose code is not in the table."""
KILLED: Final = "process-killed"
"""The fault of a process that the shell reports with only the word `Killed`."""
LOGGED: Final = "logged-error"
"""The fault of an error in a native library's log that is not in the table."""
ELSEWHERE: Final = "exception-elsewhere"
"""The fault of an exception that reports only that another process ended."""
ANNOUNCED: Final = "exception-without-reason"
"""The fault of an exception that reports only that something failed."""
ERROR_LINE: Final = "error-line"
"""The fault of a line that is labelled an error, if nothing else explains the job."""
VAGUE: Final = frozenset({"npu-inner-error", "ge-failed"})
"""Faults of codes that may precede any message."""
MAX_QUOTATION: Final = 400
CONTINUED: Final = 4
"""Number of lines over which the message of an exception may continue."""
_NAME: Final = r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Za-z_]\w{0,60}"
_RAISED: Final = re.compile(
    r"(?:[A-Za-z_]\w{0,60}\.){0,8}_?[A-Z]\w{0,60}"
    r"(?:Error|Exception|Interrupt|Exit|Expired|Timeout)(?:: |:?$)"
    r"|(?:[A-Za-z_]\w{0,60}\.){0,8}(?:Exception|StopIteration|Empty)(?:: |:?$)"
)
_WORDS: Final = ("Error", "Exception", "Interrupt", "Exit", "Expired", "Timeout")
_PREFIX: Final = re.compile(
    r"\s{1,60}"
    r"|(?:[>`|│*-]|E(?= {3}))\s{1,8}|`"
    r"|\[?\d{2,4}[-/]\d\d[-/]?\d{0,2}[T _-]\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?"
    r"(?:Z|[+-]\d\d:?\d\d)?(?: [A-Z]{2}\d{1,4}){0,3}\]?[:\s]{0,3}"
    r"|\d\d:\d\d:\d\d(?:[.,]\d{1,9})? "
    r"|[EF]\d{3,4} [\d:.]{8,18} {1,6}(?:\d{1,9} )?"
    r"|\[[^\][]{1,80}\][:\s]{0,3}"
    r"|\([A-Za-z_][^()]{0,80}\)[:\s]{0,3}"
    r"|(?:ERROR|CRITICAL|FATAL)\b[:\s|-]{0,4}"
    r"|[\w./-]{1,120}:\d{1,6}[\]:)]{0,2} {1,3}(?:- )?"
    r"|!{2,4} [^!]{1,60} !{2,4} "
    r"|[\w.@-]{1,60}(?: {0,20}\| {0,3}| {1,8}-{1,3} |:{1,2} {0,3}|=t?)(?=\S)"
    r"|\d{1,9} {1,3}"
    r"|msg=\"|\{\"log\":\""
)
"""A prefix that programs, launchers and log collectors add to lines."""
_MAX_PREFIXES: Final = 8
_MAX_SEARCHED: Final = 1000
_SUFFIX: Final = re.compile(r"(?:\\n)?\",\"stream\".{0,80}$|\s{0,200}[│`|]\s{0,9}$")
"""The end of text around a line: the JSON of a container log, a frame, a quotation."""
_JOINED: Final = re.compile(r"\)(?=(?:[a-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception): \S)")
"""The end of another process's line, directly followed by an exception."""
_ENDED: Final = re.compile(
    r"\b(?:exit(?:ed|s|ing)?|return(?:ed|s|ing)?|terminated|failed|rc|ret|status)\b"
    r"[ \w]{0,20}?(?:[ _-]?(?:code|status))?[\s:=(]{1,4}(-?\d{1,3})(?!\w|\.\d)"
    r"|\b(?:exit|return)[ _-]?(?:code|status)[\s:=(\"]{1,12}(-?\d{1,3})(?!\w|\.\d)"
    r"|\bexit with exception\. Error code: (-\d{1,2})\b",
    re.IGNORECASE,
)
_COUNTING: Final = re.compile(r"(?:return|fail)\w{0,3}\W{1,4}\d{3} \w", re.IGNORECASE)
"""`returned 136 rows` counts something; `returned 136` at the end is a code."""
_SIGNALLED: Final = re.compile(
    r"\b(?:signal(?: code)?:?|Signals\.\w{4,10}:|status=) ?\(?(\d{1,2})\b(?!\.)"
    r"|^Signal: [\w /]{3,40}\((\d{1,2})\)|\] Signal: [\w /]{3,40}\((\d{1,2})\)",
    re.IGNORECASE,
)
"""A signal by its number: `Signal 8 (SIGFPE) received`, `exited on signal 8`."""
_SIGNAL_NAME: Final = re.compile(
    r"\bSIG(HUP|QUIT|ILL|TRAP|ABRT|BUS|FPE|KILL|USR1|SEGV|USR2|PIPE|ALRM|XCPU|XFSZ|SYS)\b"
)
_BY_A_SIGNAL: Final = re.compile(
    r"receiv|signal|terminat|kill|died|caught|exit|crash|fatal|got|code=", re.IGNORECASE
)
_HANDLED_SIGNAL: Final = re.compile(r"handler|handling|ignor|register|install", re.IGNORECASE)
_NUMBERS: Final = {
    **{"HUP": 1, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9},
    **{"USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "XCPU": 24, "XFSZ": 25},
    "SYS": 31,
}
_BY_SIGNAL: Final = {
    1: "process-hung-up",
    2: "interrupted",
    3: "process-quit",
    4: "illegal-instruction",
    5: "process-trap",
    6: "process-aborted",
    7: "process-bus-error",
    8: "process-arithmetic",
    9: KILLED,
    10: "process-user-signal",
    11: "process-segfault",
    12: "process-user-signal",
    13: "process-pipe",
    14: "process-alarm",
    15: "process-ended",
    24: "process-cpu-time",
    25: "process-file-size",
    31: "process-system-call",
}
"""The fault of each signal of Linux that ends a process."""
_ERROR_LINE: Final = re.compile(
    r"(?:[\w./@-]{1,80}: ){0,3}(?:fatal |internal |critical |runtime )?(?:error|fatal|错误)"
    r"(?:[ \[(]{1,2}\w{1,20}[)\]]?)?[:：] ?(?=\S)",
    re.IGNORECASE,
)
_ERROR_LEVEL: Final = re.compile(
    r".{7,80}[^\w.](?:ERROR|FATAL|CRITICAL)[\]:|) -]{1,8}(?=\S)|.{0,80}level=(?:error|fatal) "
)
_ERROR: Final = re.compile(
    r"\b(?:error|ERROR|Error|fatal|FATAL|Fatal|E[A-Z0-9]\d{4})\b|^\s{0,9}what\(\): |NCCL WARN"
    r"|\[(?:FUNC|FILE):"
)
_NAME_ALONE: Final = re.compile(rf"(?:.{{0,400}}[)\"' ])?({_NAME}(?:Error|Exception))$")
_MESSAGE_ALONE: Final = re.compile(r":{1,4} (?=\S)")
_AFTER_TRACEBACK: Final = re.compile(rf"{_NAME}(?:: \S|$)")
"""Any exception name, if there are frames of a traceback above it."""
_BARE: Final = re.compile(rf"{_NAME}:?\s*$")
_CANN: Final = re.compile(
    r"(?:E {3,8})?(?:"
    r"(?:CANN error: )?E[A-Z0-9]\d{4}(?:: | ?(?=\[PID)|  (?=\[))(?:\[PID: ?\d{1,9}\] ?)?"
    r"(?:\d{4}-[\d:.-]{10,30} ?)?"
    r"(?:\(E\w{5}\): ?)?\s{0,8}(?=\S)"
    r"|\[PID: ?\d{1,9}\] ?\d{4}-[\d:.-]{10,30} ?\w{1,80}\(E[A-Z0-9]\d{4}\): ?(?=\S)"
    r"|(?:Ascend Error: )?[A-Z]\w{1,40}_\w{1,40}\(E[A-Z0-9]\d{4}\): ?(?=\S))"
)
_LOGGED: Final = re.compile(
    r"\[(?:ERROR|CRITICAL)\] [A-Z_]{2,20}\(\d{1,9}(?::\d{1,20})?,[^)]{0,60}\):[\d:. -]{15,35}"
    r"\[[\w./-]{1,120}:\d{1,6}\] ?(?:\[\d{1,9}\]|\d{1,9} )?"
    r"|\[[^\]]{8,40}\] (?:\[[\w.-]{1,30}\] ){1,4}\[ERROR\] \[[\w./-]{1,120}:\d{1,6}\] ?:? ?"
    r"|\d{4}-\d\d-\d\d [\d:.]{8,16}: [EF] (?:tensorflow|external|xla|tsl)/[\w./-]{1,120}:\d{1,6}\] "
    r"|[EF](?:\d{4}|20\d{6}) [\d:.]{15} {1,6}\d{1,9} [\w./-]{1,120}:\d{1,6}\] "
    r"|\[[\d:. -]{15,40}\] \[(?:error|critical)\] \[\d{1,9}\] \[[\w./-]{1,120}:\d{1,6}\] "
    r"|\[[\d.]{10,20}\] \[[\w. :/-]{3,100}\] {1,9}[\w./-]{1,60}:\d{1,6} {1,4}UCX {1,4}ERROR "
)
"""The start of an error line: plog and MindSpore, MindIE, TensorFlow, glog, ATB, UCX."""
_WRAPPED: Final = re.compile(
    rf"(?:{_NAME}: )?(?:Exception encountered when calling |Error in call to target '"
    r"|Error in creating partial\("
    r"|Failed to import [\w.]{1,200} because of the following error[^:]{0,60}:\s*$)"
    rf"|{_NAME}: (?:Caught \w{{1,60}} in |\d{{1,6}} root error\(s\) found|in user code:"
    r"|Graph execution error:|\d{1,4} validation errors? for |Failed running call_"
    r"|The following operation failed in the TorchScript interpreter"
    r"|Exception thrown from (?:user defined Python function|dataset pipeline)"
    r"|Error when deserializing class |<class '[\w.]{1,200}'> could not be deserialized properly"
    r"|[^:]{1,80}: [^:]{1,80}: Traceback \(most recent call last\):\s*$"
    r"|An error occurred (?:while|during) [^:]{1,80}$|(?:One or more|Some) \w{1,30} raised )"
)
"""A line that only passes on another exception, which is below or above it."""
_MESSAGE_BELOW: Final = re.compile(
    r"Exception encountered when calling |Error in call to target '|Error in creating partial\("
    r"|: Graph execution error:|: \d{1,4} validation errors? for |Failed running call_\w{1,20} "
    r"|because of the following error \(look up to see its traceback\):\s*$"
    r"|: Error when deserializing class |> could not be deserialized properly"
    r"|(?:^|\s)- (?:Dataset Pipeline|Framework) Error Message:"
)
"""Such a line, if it is followed by only a message, without the name of an exception."""
_NO_MESSAGE: Final = re.compile(
    r"(?:E {3,8})?\s{0,40}(?:[^\s(]{0,200}\s{0,9}$|-{3}|[\^~ ]{1,200}$|Detected at node|Node: "
    r"|Stack trace for|<stack traces|\d{1,6} root error|File \"|\)|FakeTensor|config="
    r"|grad_fn=|Parameter\()"
)
_NAMED_BELOW: Final = re.compile(
    r"\s{0,40}in user code:\s{0,9}$|.{0,20}\[ERROR\] Execute user Python code failed"
)
_COLOUR: Final = re.compile(r"\x1b\[[\d;]{0,12}m")
_GRAPH_LOCATION: Final = re.compile(r"\{\{[^{}]{1,400}\}\} ")
_ROOT_ERROR: Final = re.compile(r"\s{1,4}\(0\) [A-Z][\w ]{2,30}: +(?=\S)")
"""The first of several exceptions in a graph, as listed by TensorFlow."""
HANDLED: Final = "During handling of the above exception"
_LOOKED_UP: Final = re.compile(
    r"(?:\w{1,60}\.){0,8}(?:KeyError|AttributeError|StopIteration|StopAsyncIteration)\b"
)
"""Exceptions from looking up something that may not exist yet, such as in a cache."""
_OPTIONAL: Final = re.compile(r"(?:\w{1,60}\.){0,8}(?:ImportError|ModuleNotFoundError)\b")
"""Exceptions from importing a package that a program can do without."""
_ANNOUNCED: Final = re.compile(
    rf"{_NAME}: (?:[^\s,;]{{1,80}} ){{0,6}}(?:failed|failure|error)(?::[^\s:]{{1,40}})?"
    r"(?:, please check)?[.!:]{0,2}\s*$",
    re.IGNORECASE,
)
_CODE_ALONE: Final = re.compile(r"\(E\w{5}\):$")
_CANN_LOCATION: Final = re.compile(r"\[(?:FUNC|FILE|LINE|THREAD):")


def kind_of(text: str) -> str:
    """Return the fault of a line that is not in the table, but looks like the end of a process."""
    if text.strip() == "Killed":
        return KILLED
    if exception_in(text).strip() in ("EOFError", "EOFError:"):  # a pipe to a process that is gone
        return ELSEWHERE
    if _ANNOUNCED.match(exception_in(text)):
        return ANNOUNCED
    is_call_error = " function error:" in text and "error code is " in text
    return CALL if is_call_error else EXCEPTION


def is_exception(text: str, *, in_traceback: bool) -> bool:
    """Return whether a line is or looks like the end of a traceback, or is `Killed`."""
    if is_wrapped(text):
        return False
    if text.strip() == "Killed" or _ROOT_ERROR.match(text):
        return True
    pattern = _AFTER_TRACEBACK if in_traceback else _RAISED
    return (pattern.match(text) or _RAISED.match(text)) is not None


def exception_in(text: str) -> str:
    """Return the exception at the end of a line, without prefixes; empty if there is none."""
    if not any(word in text for word in _WORDS):
        return ""
    for _ in range(_MAX_PREFIXES):
        if _RAISED.match(text):
            return "" if _WRAPPED.match(text) else _SUFFIX.sub("", text)
        prefix = _PREFIX.match(text)
        if prefix is None:
            break
        text = text[prefix.end() :]
    joined = _JOINED.search(text[:_MAX_SEARCHED])
    return text[joined.end() :] if joined else ""


def is_error(text: str) -> bool:
    """Return whether a line is an exception or labelled an error, in Python or native code."""
    return bool(exception_in(text)) or _ERROR.search(text[:_MAX_SEARCHED]) is not None


def message_of(text: str, before: str) -> str:
    """Join an exception whose name and message were separated by concurrent writing."""
    name = _NAME_ALONE.match(before) if _MESSAGE_ALONE.match(text) else None
    return f"{name.group(1)}: {text.lstrip(': ')}" if name else ""


def is_wrapped(text: str) -> bool:
    """Return whether a line only passes on an exception that is below or above it."""
    if not any(word in text for word in ("rror", "xception", "Caught ", "Failed to import ")):
        return False
    for _ in range(_MAX_PREFIXES):
        if _WRAPPED.match(text):
            return True
        prefix = _PREFIX.match(text)
        if prefix is None:
            return False
        text = text[prefix.end() :]
    return False


def has_message_below(text: str) -> bool:
    """Return whether only a message follows a line, without the name of an exception."""
    return _MESSAGE_BELOW.search(text[:_MAX_SEARCHED]) is not None


def is_no_message(text: str) -> bool:
    """Return whether a line that follows such a line is not yet the message."""
    return _NO_MESSAGE.match(text) is not None


def kind_of_message(text: str) -> str:
    """Return the fault of such a message that is not in the table."""
    return ANNOUNCED if _ANNOUNCED.match(f"Error: {text.strip()}") else EXCEPTION


def is_named(text: str) -> bool:
    """Return whether a line, where a message is expected, announces an exception below it."""
    return _NAMED_BELOW.match(text) is not None


def is_handled(text: str, earlier: str) -> bool:
    """Return whether a line reports that the failed lookup before it was handled."""
    return HANDLED in text and _LOOKED_UP.match(exception_in(earlier)) is not None


def is_optional(earlier: str) -> bool:
    """Return whether an exception reports a missing package, which may be optional."""
    return _OPTIONAL.match(exception_in(earlier)) is not None


def is_logged_error(text: str) -> bool:
    """Return whether a line is an error in the log of CANN, MindSpore, MindIE or TensorFlow."""
    match = _LOGGED.match(text)
    return match is not None and match.end() < len(text)


def fault_of_exit(text: str) -> str:
    """Return the fault of a process ended by a signal, which launchers give as code or name."""
    text = text[:_MAX_SEARCHED]
    for match in _ENDED.finditer(text):
        code = int(next(filter(None, match.groups())))
        signal = -code if code < -1 else code - 128
        if signal in _BY_SIGNAL and (code < 0 or not _COUNTING.match(text, match.start())):
            return _BY_SIGNAL[signal]
    if "ignal" not in text and "SIG" not in text and "status=" not in text:
        return ""
    if _HANDLED_SIGNAL.search(text):
        return ""
    if match := _SIGNALLED.search(text):
        return _BY_SIGNAL.get(int(next(filter(None, match.groups()))), "")
    name = _SIGNAL_NAME.search(text)
    if name is None or not _BY_A_SIGNAL.search(text.replace(name.group(), "")):
        return ""
    return _BY_SIGNAL[_NUMBERS[name.group(1)]]


def is_error_line(text: str) -> bool:
    """Return whether a line is labelled an error, by its first word or its level."""
    return (_ERROR_LINE.match(text) or _ERROR_LEVEL.match(text)) is not None


def cann_message_in(text: str) -> str:
    """Return CANN's message after a code; empty if there is only the code."""
    match = _CANN.match(text)
    if match is None:
        return ""
    message = _CANN_LOCATION.split(text[match.end() :], maxsplit=1)[0].strip()
    is_empty = message.startswith("Inner Error") or _CODE_ALONE.match(message) is not None
    return "" if is_empty else message


def quotation(text: str, before: str) -> str:
    """Return the message to quote.

    Args:
        text: The line, without launcher prefixes.
        before: The line above, quoted with an exception without a message: `assert a == b`.
    """
    logged = _LOGGED.match(text)
    message = cann_message_in(text) or exception_in(text) or message_of(text, before)
    message = message or text[logged.end() if logged else 0 :].strip()
    if _BARE.match(text) and before.startswith(" ") and 'File "' not in before:
        message = f"{message.rstrip(':')}: {before.strip()}"
    return _GRAPH_LOCATION.sub("", _COLOUR.sub("", message))[:MAX_QUOTATION].strip()
