"""Summarise results of msaccucmp, and find the dump of an op that overflowed."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jumar.ground.paths import unreadable
from jumar.precision.dumps.cann_results import AscendResult, Overflow

COSINE: Final = "CosineSimilarity"
THRESHOLD: Final = 0.99
"""Below it, msaccucmp's own advisor (`-advisor`) calls a tensor inaccurate."""
ERRORS: Final = (
    "RelativeEuclideanDistance",
    "MeanRelativeError",
    "MaxRelativeError",
    "AccumulatedRelativeError",
    "RootMeanSquareError",
    "MeanAbsoluteError",
    "MaxAbsoluteError",
    "KullbackLeiblerDivergence",
)
"""Metrics that replace a missing cosine similarity, in this order; larger is worse."""
_ONE_SIDE_ZERO: Final = "All the data is zero"
"""From msaccucmp's reason why a cosine similarity does not exist: only one tensor is zero."""
_SPECIFIC: Final = re.compile(
    r"""(?P<quote>["'])[^"']*["']|\S+:(?:input|output):\d+|(?<!\w)\d+(?!\w)"""
)
"""What differs between reasons of one kind: names, tensors and numbers."""
_MAX_REASON: Final = 400
"""Characters of a reason that are kept."""
_DUMPED: Final = re.compile(
    r"(?P<type>\w+)\.(?P<name>.+?)\.(?P<task>\d+)(?:\.(?P<stream>\d{1,15}))?\.\d{16}(?:\..*)?"
)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a comparison by msaccucmp shows.

    Attributes:
        rows: Number of rows: tensors, and ops without any.
        ops: Number of ops.
        compared: The compared tensors, worst first.
        without_cosine: Number of them that have no cosine similarity.
        reasons: Number of rows that were not compared, by kind of reason.
        checked: Number of ops whose values were checked for overflow.
        overflowed: The ops that overflowed, in the order of the file.
        metric: The metric by which tensors are ordered; empty if there is none.
        first: The first tensor in the file that is worse than the threshold.
        inputs: The inputs of its op, if it is an output.
    """

    rows: int
    ops: int
    compared: Sequence[AscendResult]
    without_cosine: int
    reasons: Mapping[str, int]
    checked: int
    overflowed: Sequence[str]
    metric: str
    first: AscendResult | None
    inputs: Sequence[AscendResult]


def summarised(rows: Sequence[AscendResult], below: float = THRESHOLD) -> Summary:
    """Summarise the rows of a result.

    Args:
        rows: The rows.
        below: The cosine similarity below which a tensor is bad. A result that is not a number is
            bad as well, and so is a tensor that is zero where its partner is not.
    """
    compared = [row for row in rows if is_compared(row)]
    metric = _metric(compared)
    first = next((row for row in rows if is_bad(row, below)), None)
    return Summary(
        rows=len(rows),
        ops=len({row.npu for row in rows}),
        compared=sorted(compared, key=_badness(metric), reverse=True) if metric else compared,
        without_cosine=sum(COSINE not in row.numbers for row in compared),
        reasons=_reasons([row for row in rows if not is_compared(row)]),
        checked=len({row.npu for row in rows if row.overflowed is not None}),
        overflowed=list(dict.fromkeys(row.npu for row in rows if row.overflowed)),
        metric=metric,
        first=first,
        inputs=[
            row
            for row in rows
            if first is not None
            and first.tensor.startswith("output")
            and row.npu == first.npu
            and row.tensor.startswith("input")
        ],
    )


def is_compared(row: AscendResult) -> bool:
    """Return whether a tensor was compared with its partner."""
    return bool(row.numbers) or is_zero_on_one_side(row)


def is_zero_on_one_side(row: AscendResult) -> bool:
    """Return whether all elements of one tensor are zero, but not those of its partner.

    The cosine similarity does not exist then, so a threshold alone would overlook it.
    """
    return COSINE not in row.numbers and _ONE_SIDE_ZERO in row.reason


def is_bad(row: AscendResult, below: float) -> bool:
    """Return whether a tensor's cosine similarity is too low, or shows that it is wrong."""
    cosine = row.numbers.get(COSINE)
    if cosine is None:
        return is_zero_on_one_side(row)
    return math.isnan(cosine) or cosine < below


def dumps_of(overflow: Overflow, folder: Path) -> Sequence["re.Match[str]"]:
    """Find the files of an op that overflowed by task and stream, in the folder of its record.

    Args:
        overflow: The overflow.
        folder: The folder.

    Returns:
        The matches of the files' names, with the groups `type` and `name`.

    Raises:
        UserError: The folder cannot be read.
    """
    if overflow.task is None:
        return []
    stream = None if overflow.stream is None else str(overflow.stream)
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise unreadable(folder, error) from error
    return [
        match
        for name in names
        if (match := _DUMPED.fullmatch(name))
        and match["type"] != "Opdebug"
        and match["task"] == str(overflow.task)
        and (stream is None or match["stream"] in (stream, None))
    ]


def dump_name(overflow: Overflow) -> str:
    """Return the form of the name of the op's dump; empty if its task is unknown."""
    if overflow.task is None:
        return ""
    stream = "" if overflow.stream is None else f".{overflow.stream}"
    return f"TYPE.NAME.{overflow.task}{stream}.TIME"


def _metric(compared: Sequence[AscendResult]) -> str:
    if any(COSINE in row.numbers or is_zero_on_one_side(row) for row in compared):
        return COSINE
    return next((name for name in ERRORS if any(name in row.numbers for row in compared)), "")


def _badness(metric: str) -> Callable[[AscendResult], float]:
    """Return a function whose result is larger for worse tensors."""

    def badness(row: AscendResult) -> float:
        number = row.numbers.get(metric)
        if number is None:
            return math.inf if metric == COSINE and is_zero_on_one_side(row) else -math.inf
        if math.isnan(number):
            return math.inf
        return -number if metric == COSINE else number

    return badness


def _reasons(rows: Sequence[AscendResult]) -> dict[str, int]:
    """Count reasons by their kind, the most frequent first; a single one keeps its details."""
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for row in rows:
        reason = row.reason[:_MAX_REASON]
        kind = _SPECIFIC.sub("...", re.sub(r"^\[[^]]*\] *", "", reason))
        counts[kind] += 1
        examples.setdefault(kind, reason)
    return {
        (kind if count > 1 else examples[kind]) or "no reason given": count
        for kind, count in counts.most_common()
    }
