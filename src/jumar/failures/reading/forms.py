"""Finds the origin of a line in its text: rank, process, device, node, time.

Each pattern is anchored or bounded, so that matching takes time linear in the line's length.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import Final

MAX_RANK: Final = 1_000_000
YEARLESS: Final = 1904
"""Placeholder for the year of a time without one, until another line of the job names it."""

_PREFIX: Final = re.compile(
    "|".join(
        (
            r"\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d) (?:(?:stdout|stderr) [FP] )?",
            r"\[\d{1,6},(?P<rank_mpi>\d{1,6})\]<(?:stdout|stderr)>: ?",
            r" ?(?P<rank_srun>\d{1,4}): (?=\S)",
            r":? ?\[\d{3,8}\] (?=\[)",
            r":? ?\[(?:[Rr]ank:? ?|default|RANK )(?P<rank_torch>\d{1,6})\]:? ?",
            r"[Rr]ank ?(?P<rank_named>\d{1,6}): (?=\S)",
            r"\[(?P<rank_alone>\d{1,4})\]:(?=\S)",
            r"\[pod/[\w./-]{1,160}\] ?",
            r"\((?P<worker>\w{1,60})(?: (?:rank=|TP)(?P<rank_vllm>\d{1,6}))?"
            r" pid=(?P<pid>\d{1,9})(?:, ip=(?P<host>[\w.:-]{1,60}))?\) ?",
            r"(?:ERROR|INFO|WARNING|CRITICAL) \d\d-\d\d [\d:]{8} \[[\w./]{1,80}:\d{1,6}\] ?",
            r"(?:ERROR|INFO|WARNING|CRITICAL) \d\d-\d\d [\d:]{8} [\w./]{1,80}:\d{1,6}\] ?",
            r"(?:\x1b?\[\d{1,3}(?:;\d{1,3}){0,4}m){1,4} ?",
            r"\[Stage-\d{1,4}\] ",
            r"[\w.-]{1,80}/\d{1,6} (?=\[)",
            r" {0,8}\d{1,7}(?::| {1,4})(?=\[rank)",
            r"[\w.-]{1,60}\.log-\d{1,9}-",
            r"[\w.-]{1,60} {1,20}\| ",
            r"[\w.-]{1,80} \[(?:stdout|stderr)\] ",
            r"(?:worker|node|host)-?\d{1,5}: ",
            r"\[\w{1,60}\.py:\d{1,6}\] (?=\S)",
        )
    )
)
_IN_TEXT: Final[tuple[re.Pattern[str], ...]] = tuple(
    map(
        re.compile,
        (
            r"\[Rank (\d{1,6})\]",
            r"Rank (\d{1,6})\] ",
            r"RankID:(\d{1,6})\)",
            r"rankId\[(\d{1,6})\]",
            r"userRank\[(\d{1,6})\]",
            r"(?:rankNum|ranks|totalRanks)\[\d{1,7}\], rank\[(\d{1,6})\]",
            r"role\[\d\] rank\[(\d{1,6})\]",
            r"\], rank\[(\d{1,6})\], totalRanks",
            r" rank (\d{1,6}) nranks ",
            r"\bTP(\d{1,4})\]",
        ),
    )
)
_EXPERT: Final = re.compile(r"_EP(\d{1,4})$")
_PID: Final = re.compile(
    r"(?:\(PID: ?|\[PID: ?|\((?=\d{1,9},\w))(\d{1,9})|\(pid: (\d{1,9})\)"
    r"|^[\w.-]{1,60}:(\d{1,9}):\d{1,9} \["
)
_DEVICE: Final = re.compile(
    r"(?:Device:|device_id=|deviceId[=:] ?|logicDevId\[|\bdevice\[|cudaDev |\bGPU |\bNPU "
    r"|device is )(\d{1,4})"
)
_HOST: Final = re.compile(
    r"server\[([\w.:-]{2,60})|^([\w.-]{2,60}):\d{1,9}:\d{1,9} \[|^\s+host\s+: (\S{1,80})"
)
_WORLD: Final = re.compile(
    r"(?:rankNum\[|\branks\[|rankSize\[|totalRanks\[|nranks |world_?size[=: ]{1,3})(\d{1,7})"
)
_TABLE_RANK: Final = re.compile(r"^\s+rank\s+: (\d{1,6}) \(local_rank: \d+\)")
_NAMED: Final = re.compile(
    r"(?:^|[^a-z])rank[-_.]?(\d{1,6})(?!\d)|^worker_(\d{1,6})\.log", re.IGNORECASE
)
_ATTEMPT: Final = re.compile(r"^attempt_\d+$")
_FULL_TIME: Final = re.compile(
    r"(\d{4})[-/]?(\d\d)[-/]?(\d\d)[-_ T](\d\d):(\d\d):(\d\d)(?:[.,:](\d{3})(?:\.?(\d{3}))?)?"
)
_SHORT_TIME: Final = re.compile(
    r"(?:^|\[|\s)[EWIF](\d{1,2})(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{3})(\d{3})?)?"
)
_LOG_TIME: Final = re.compile(r"^(?:ERROR|INFO|WARNING) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)")

_HEAD: Final = 200
_WARNING: Final = re.compile(
    r"Warning: |(?<!NCCL )\b(?:WARN|WARNING|Warning|warning)\b[\]:)]? |(?:^|\[| )[WI]\d{3,4} |"
    r"\[W \w{1,40}\.cpp|(?:^|: )[WI] tensorflow/|\[(?:INFO|DEBUG|EVENT)\] |^wandb: |"
    r"\b(?:INFO|DEBUG)(?= {0,8}[|:-]| {1,8}\d\d-\d\d )|NET/Plugin"
)
"""Parts of lines that only warn or inform; NCCL also logs errors as warnings."""
_EVENT: Final = re.compile(r"\s{0,8}Warning {2,40}[A-Z]\w{2,60} {2,60}\S")
"""A Kubernetes event; `Warning` is the most severe type that it has."""
_CANN_ERROR: Final = re.compile(r"\bWarning: E[A-Z0-9]\d{4}: \[PID")
"""A CANN error that torch_npu prints as a warning while the program ends."""
_CONTINUES: Final = re.compile(
    r"\b(?:fall(?:ing|s)? ?back|retrying|skip(?:ping|ped)|(?:is )?not installed)\b|\(ignored\)",
    re.IGNORECASE,
)
"""Text of a program that continues despite an obstacle."""


ACTIVITY_WORDS: Final = ("loss", "INFO", "it/s")
"""Words in lines that report the activity of a program."""
_ACTIVITY: Final = re.compile(r"\bINFO\b|\bloss\b|\d(?:it/s|s/it)")
_STOPPING: Final = re.compile(
    r"shut|exit|stop|clean|terminat|abort|destroy|fail|error|kill|traceback|clos", re.IGNORECASE
)


@dataclass(kw_only=True)
class Origin:
    """The origin of a line, as far as its text shows it."""

    text: str
    rank: int | None = None
    pid: int | None = None
    host: str = ""


def origin_of(line: str) -> Origin:
    """Strip the launcher prefixes from a line, and return the origin that they name."""
    origin = Origin(text=line)
    for _ in range(6):
        match = _PREFIX.match(origin.text)
        if match is None:
            break
        groups = {name: text for name, text in match.groupdict().items() if text is not None}
        rank = next((text for name, text in groups.items() if name.startswith("rank")), None)
        if rank is not None:
            origin.rank = int(rank)
        if "pid" in groups:
            origin.pid = int(groups["pid"])
            origin.host = groups.get("host", "")
            origin.rank = _number(_EXPERT, groups["worker"]) if origin.rank is None else origin.rank
        origin.text = origin.text[match.end() :]
    return origin


def complete(origin: Origin, line: str) -> None:
    """Add rank, process and host from the rest of the line; called only for relevant lines."""
    head = line[:700]
    if origin.rank is None and ("ank" in head or "TP" in head):
        numbers = (_number(pattern, head) for pattern in _IN_TEXT)
        origin.rank = next((rank for rank in numbers if rank is not None), None)
    if origin.pid is None and (match := _PID.search(head)):
        origin.pid = int(next(filter(None, match.groups())))
    if not origin.host and (match := _HOST.search(head)):
        origin.host = next(filter(None, match.groups()))


def device_in(line: str) -> int | None:
    """Return the device that a line names."""
    return _number(_DEVICE, line[:700])


def world_in(line: str) -> int:
    """Return the number of ranks that a line names, or 0."""
    world = _number(_WORLD, line[:700]) or 0
    return world if world <= MAX_RANK else 0


def rank_of_summary(line: str) -> int | None:
    """Return the rank in a block of torchrun's failure summary."""
    return _number(_TABLE_RANK, line)


def rank_in_name(name: str) -> int | None:
    """Return the rank that a file name contains: `rank3.log`, `attempt_0/3/stderr.log`."""
    parts = PurePath(name).parts
    for folder, part in zip(("", *parts), parts, strict=False):
        if _ATTEMPT.match(folder) and part.isdecimal():
            return int(part)
    match = _NAMED.search(parts[-1]) if parts else None
    if match is None and len(parts) > 1:
        match = _NAMED.search(parts[-2])
    return int(match.group(1) or match.group(2)) if match else None


def is_warning(line: str) -> bool:
    """Return whether a line only warns or informs, which counts less than a raised error."""
    if _EVENT.match(line) or _CANN_ERROR.search(line[:_HEAD]):
        return False
    return _WARNING.search(line[:_HEAD]) is not None


def continues(line: str) -> bool:
    """Return whether a line other than an exception reports that the program continues."""
    return _CONTINUES.search(line[:_HEAD]) is not None


def reports_activity(line: str) -> bool:
    """Return whether a line reports the activity of the program, other than stopping."""
    reports = (
        any(word in line for word in ACTIVITY_WORDS) and _ACTIVITY.search(line[:_HEAD]) is not None
    )
    return reports and not _STOPPING.search(line)


def time_in(line: str) -> datetime | None:
    """Return the time at which a line was written."""
    head = line[:300]
    try:
        if match := _FULL_TIME.search(head):
            *date_and_time, milli, micro = match.groups(default="0")
            return datetime(*map(int, date_and_time), int(milli) * 1000 + int(micro))  # type: ignore[arg-type]
        match = _SHORT_TIME.search(head) or _LOG_TIME.search(head)
        if match:
            month, day, *clock = (int(digits or 0) for digits in match.groups())
            hour, minute, second, *fraction = clock
            milli, micro = (*fraction, 0, 0)[:2]
            return datetime(YEARLESS, month, day, hour, minute, second, milli * 1000 + micro)
    except ValueError:  # looks like a time, but is not one
        return None
    return None


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return int(match.group(1)) if match else None
