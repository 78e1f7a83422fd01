"""The first cause among its consequences."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from jumar.failures.reading.job import ErrorLine, Job, Sighting
from jumar.failures.table import Fault
from jumar.failures.waiting import SILENT, Culprit

MOST_CANDIDATES: Final = 3
_LATER: Final = timedelta(minutes=2)
"""How much later a cause may be logged than its consequences: buffers are flushed late."""
_LINES_LATER: Final = 400
"""The same for logs without times, in lines of one file."""
_HEAD: Final = 200
_WARNING: Final = re.compile(
    r"Warning: |(?<!NCCL )\b(?:WARN|WARNING|Warning|warning)\b[\]:)]? |(?:^|\[| )W\d{3,4} |"
    r"\[W \w{1,40}\.cpp|(?:^|: )W tensorflow/|\[(?:INFO|DEBUG|EVENT)\] "
)
"""Prefixes of lines that only warn or inform; NCCL also logs errors as warnings."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A candidate for the first fault.

    Args:
        fault: The fault.
        sightings: Its occurrences, earliest first.
        culprit: Who is to blame, if the ranks that report it only waited.
    """

    fault: Fault
    sightings: tuple[Sighting, ...]
    culprit: Culprit | None = None

    @property
    def first(self) -> Sighting:
        return self.sightings[0]

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that report it."""
        return tuple(sorted({each.rank for each in self.sightings if each.rank is not None}))


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The explanation of a failed job.

    Args:
        candidates: The likeliest first cause, and at most two others.
        collateral: Their consequences, earliest first.
        errors: Lines that look like errors, if nothing was recognised.
        job: What was read.
    """

    candidates: tuple[Candidate, ...]
    collateral: tuple[Candidate, ...]
    errors: tuple[ErrorLine, ...]
    job: Job


def explained(job: Job) -> Explanation:
    """Find the first cause of a failed job."""
    ordered = sorted(job.sightings, key=_when)
    by_fault: dict[str, list[Sighting]] = {}
    for sighting in ordered:
        by_fault.setdefault(sighting.fault.id, []).append(sighting)
    firsts = [each[0] for each in by_fault.values()]
    own = [each for each in firsts if not any(_explains(other, each) for other in firsts)]
    own = own or firsts[:1]
    own = sorted(
        own,
        key=lambda each: (
            *(_is_late(each, own), _is_warning(each)),
            *(each.fault.believed, _when(each)),
        ),
    )
    # Ends and notes are candidates only if there is nothing more specific.
    telling = [each for each in own if each.fault.role not in ("end", "note")] or own
    chosen = telling[:MOST_CANDIDATES]
    candidates = tuple(_candidate(each.fault, by_fault, job) for each in chosen)
    rest = [each for each in firsts if each not in chosen]
    return Explanation(
        candidates=candidates,
        collateral=tuple(
            Candidate(fault=each.fault, sightings=tuple(by_fault[each.fault.id])) for each in rest
        ),
        errors=() if candidates else tuple(job.errors),
        job=job,
    )


def _candidate(fault: Fault, by_fault: dict[str, list[Sighting]], job: Job) -> Candidate:
    sightings = tuple(by_fault[fault.id])
    culprit: Culprit | None = None
    if fault.role == "wait":
        waiting = _of_role(by_fault.values(), "wait")
        blamed = tuple(sorted({each.blamed for each in waiting if each.blamed is not None}))
        reporters = {each.rank for each in waiting if each.rank is not None}
        culprit = job.waits.culprit(reporters, job.ranks, job.world)
        # A rank named by a message is stronger evidence than a silent one.
        if blamed and (culprit is None or culprit.why is SILENT):
            culprit = Culprit(ranks=blamed, why=fault.what)
    return Candidate(fault=fault, sightings=sightings, culprit=culprit)


def _of_role(groups: Iterable[list[Sighting]], role: str) -> list[Sighting]:
    return [each for group in groups for each in group if each.fault.role == role]


def _when(sighting: Sighting) -> tuple[bool, float, int]:
    """By time if lines have one; those without come last, in the order of reading."""
    seconds = sighting.time.timestamp() if sighting.time else 0.0
    return (sighting.time is None, seconds, sighting.order)


def _is_warning(sighting: Sighting) -> bool:
    """Whether a program only warned of it; that ranks after raised errors."""
    return _WARNING.search(sighting.text[:_HEAD]) is not None


def _explains(one: Sighting, other: Sighting) -> bool:
    """Whether one fault may lead to the other."""
    if one is other:
        return False
    named = one.fault.id in other.fault.follows
    if named or other.fault.id in one.fault.follows:
        return named
    if one.fault.role not in ("cause", "general", "wait"):
        return False
    if one.fault.believed >= other.fault.believed or other.fault.role == "cause":
        return False
    if other.fault.role == "general":  # an exception with a message of its own may be the first
        return _when(one) < _when(other)
    return not _clearly_later(one, other)


def _is_late(one: Sighting, others: list[Sighting]) -> bool:
    """Whether something failed long before, so that this one belongs to the end of the job."""
    failed = ("cause", "general", "wait", "effect")
    return any(_clearly_later(one, other) for other in others if other.fault.role in failed)


def _clearly_later(one: Sighting, other: Sighting) -> bool:
    if one.time and other.time:
        return one.time > other.time + _LATER
    return one.source == other.source and one.order > other.order + _LINES_LATER
