"""Figures of ops and steps, all times as whole nanoseconds."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from itertools import groupby
from typing import Any

UNITS = {"ns": 1, "us": 1000, "ms": 1_000_000, "s": 1_000_000_000}
LARGEST = 5
"""Types and names that are compared, those with the most time."""
COMMUNICATION = "communication"
COPIES = ("memcpy", "memset")


@dataclass(frozen=True, kw_only=True)
class Op:
    """One op of a device.

    Args:
        rank: The rank it ran on.
        step: The step it belongs to, if any.
        name: The name of the kernel.
        kind: Its type; None if the capture does not tell it in words of its own.
        work: `compute`, `communication`, `memcpy` or `memset`.
        start: When it began.
        duration: How long it ran.
        stream: Where it ran, if known.
        size: Bytes it copied.
        launch: When the call began that launched it, if known.
        layer: The innermost call of a torch.nn module it was launched in, forward or backward.
    """

    rank: int
    step: int | None
    name: str
    kind: str | None
    work: str
    start: int
    duration: int
    stream: str = ""
    size: int = 0
    launch: int | None = None
    layer: str | None = None

    @property
    def end(self) -> int:
        """When it ended."""
        return self.start + self.duration


@dataclass(frozen=True, kw_only=True)
class Raw:
    """What the files of a capture say.

    Args:
        ops: Its ops; empty if it has none with a start.
        marks: Begin and end of the steps that its producer marked, by rank and step.
        talks: When collectives ran, by rank, where other files than those of the ops tell it.
        marked: Whether steps last as long as their marks, not from their first op to the last.
        recorded: Figures that stand in the capture's own tables.
        unknown: Figures of `of_ops` and `of_steps` that these files do not tell.
    """

    ops: Sequence[Op] = ()
    marks: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=lambda: {})
    talks: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=lambda: {})
    marked: bool = False
    recorded: Mapping[str, Any] = field(default_factory=lambda: {})
    unknown: Sequence[str] = ()


def nanoseconds(value: object, unit: str) -> int | None:
    """A number or its text as whole nanoseconds, halves away from zero; None for anything else."""
    if value is None or isinstance(value, bool):
        return None
    try:
        number = Decimal(str(value).strip(" \t\r\n\"'")) * UNITS[unit]
        return int(number.to_integral_value(ROUND_HALF_UP))
    except (InvalidOperation, OverflowError, ValueError):
        return None


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that do not touch, in order, which cover the same time."""
    result: list[tuple[int, int]] = []
    for start, end in sorted(span for span in spans if span[1] > span[0]):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def covered(spans: Sequence[tuple[int, int]], within: tuple[int, int]) -> int:
    """How much time of a window is covered by spans in order that do not overlap."""
    begin, finish = within
    first = max(bisect_right(spans, (begin, begin)) - 1, 0)
    total = 0
    for start, end in spans[first : bisect_right(spans, (finish, finish))]:
        total += max(min(end, finish) - max(start, begin), 0)
    return total


def of_ops(ops: Sequence[Op]) -> dict[str, Any]:
    """Figures of all ops together; those of copies and collectives where there are any."""
    if not ops:
        return {"ops": 0}
    ranks = {op.rank for op in ops}
    longest = max(ops, key=lambda op: (op.duration, -op.start))
    figures: dict[str, Any] = {
        "ops": len(ops),
        "ranks": len(ranks),
        "streams": len({(op.rank, op.stream) for op in ops}),
        "time of all ops": sum(op.duration for op in ops),
        "time in which any runs": sum(
            end - start
            for rank in ranks
            for start, end in merged((op.start, op.end) for op in ops if op.rank == rank)
        ),
        "first start": min(op.start for op in ops),
        "first to last": max(op.end for op in ops) - min(op.start for op in ops),
        "longest op": longest.duration,
        "start of the longest op": longest.start,
        "ops with a launch": sum(op.launch is not None for op in ops),
        "from launch to start": sum(op.start - op.launch for op in ops if op.launch is not None),
        "ops in a step": sum(op.step is not None for op in ops),
    }
    for work in (COMMUNICATION, *COPIES):
        some = [op for op in ops if op.work == work]
        figures[f"{work}, count"] = len(some)
        figures[f"{work}, time"] = sum(op.duration for op in some)
    figures["memcpy, bytes"] = sum(op.size for op in ops if op.work == "memcpy")
    figures |= largest("name", ops, lambda op: op.name)
    figures |= largest("layer", ops, lambda op: op.layer)
    return figures


def largest(
    what: str, ops: Iterable[Op], group: Callable[[Op], str | None], most: int = LARGEST
) -> dict[str, tuple[int, int]]:
    """Count and time of the groups of ops that take longest, by what they are grouped; 0 is all."""
    counts, times = Counter[str](), Counter[str]()
    for op in ops:
        key = group(op)
        if key is not None:
            counts[key] += 1
            times[key] += op.duration
    first = sorted(times, key=lambda key: (-times[key], key))[: most or None]
    return {f"{what} {key}, count and time": (counts[key], times[key]) for key in first}


def of_steps(raw: Raw) -> dict[tuple[int, int], dict[str, int]]:
    """Where the time of each step goes, by rank and step.

    A step lasts from its first op to the end of its last, but not beyond the first op of the next;
    a copy made ahead, while the step before runs, begins none. A capture without steps is one
    step, 0.
    """
    result: dict[tuple[int, int], dict[str, int]] = {}
    for rank in sorted({op.rank for op in raw.ops}):
        ops = [op for op in raw.ops if op.rank == rank]
        marks = {step: span for (of, step), span in raw.marks.items() if of == rank}
        windows = _windows(ops, marks, marked=raw.marked)
        works, talks, copies = (
            [(op.start, op.end) for op in ops if op.work in some]
            for some in (("compute",), (COMMUNICATION,), COPIES)
        )
        talks = talks or list(raw.talks.get(rank, ()))
        spans = [
            merged(some) for some in (works, talks, [*works, *talks], [*works, *talks, *copies])
        ]
        for (step, window), before in zip(windows, [None, *windows], strict=False):
            parts = _split(spans, window)
            begin = before[1][1] if before else _begin(step, window[0], ops, marks)
            parts["before the first op"] = window[0] - begin
            result[rank, step] = parts
    return result


def _begin(step: int, start: int, ops: Sequence[Op], marks: Mapping[int, tuple[int, int]]) -> int:
    """When the first step begins: at its mark, or when the last op before it has ended."""
    if step not in marks:
        return start
    others = [op.end for op in ops if op.step is None and op.start < start]
    return min(max([marks[step][0], *others]), start)


def _windows(
    ops: Sequence[Op], marks: Mapping[int, tuple[int, int]], *, marked: bool
) -> list[tuple[int, tuple[int, int]]]:
    """The steps of a rank in order, none of which overlaps the next."""
    if marked and marks:
        spans = dict(marks)
    else:
        known = sorted((op for op in ops if op.step is not None), key=lambda op: op.step or 0)
        spans = {
            step or 0: _span(list(some)) for step, some in groupby(known, key=lambda op: op.step)
        }
        spans = _without_copies_ahead(spans, known) or dict(marks) or {0: _span(ops)}
    ordered = sorted((span, step) for step, span in spans.items() if span[1] > span[0])
    following = [span[0] for span, _ in ordered[1:]]
    cut = [
        (step, (span[0], min([span[1], *following[place : place + 1]])))
        for place, (span, step) in enumerate(ordered)
    ]
    return [(step, span) for step, span in cut if span[1] > span[0]]


def _without_copies_ahead(
    spans: Mapping[int, tuple[int, int]], ops: Sequence[Op]
) -> dict[int, tuple[int, int]]:
    """Later starts for steps that would begin with a copy while the step before still runs."""
    result: dict[int, tuple[int, int]] = {}
    until = None
    for step, (start, end) in sorted(spans.items(), key=lambda item: (item[1][0], item[0])):
        if until is not None and start < until:
            work = [op.start for op in ops if (op.step or 0) == step and op.work not in COPIES]
            start = min([until, *work])
        until = max(end, until or end)
        result[step] = (start, end)
    return result


def _span(ops: Sequence[Op]) -> tuple[int, int]:
    return min(op.start for op in ops), max(op.end for op in ops)


def _split(spans: Sequence[Sequence[tuple[int, int]]], window: tuple[int, int]) -> dict[str, int]:
    computing, talking, either, everything = (covered(some, window) for some in spans)
    return {
        "step": window[1] - window[0],
        "computing": computing,
        "communication, uncovered": either - computing,
        "communication, covered": computing + talking - either,
        "copies, uncovered": everything - either,
        "free": window[1] - window[0] - everything,
    }
