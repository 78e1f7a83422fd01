"""Finds the first cause among its consequences."""

from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import Final

from jumar.failures.reading.sightings import ErrorLine, Job, Sighting
from jumar.failures.survived import FAILING, mark_survived, with_stated_causes
from jumar.failures.table import Fault
from jumar.failures.waiting import SILENT, Culprit

MAX_CANDIDATES: Final = 3
_MAX_DELAY: Final = timedelta(minutes=2)
"""Maximum delay of a cause after its consequences in the logs, due to late flushing."""
_MAX_DELAY_LINES: Final = 400
"""The same limit for logs without times, in lines of one file."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A candidate for the first fault.

    Args:
        fault: The fault.
        sightings: Its occurrences, earliest first.
        culprit: The ranks to blame, if those that report it only waited.
    """

    fault: Fault
    sightings: tuple[Sighting, ...]
    culprit: Culprit | None = None

    @property
    def first(self) -> Sighting:
        return self.sightings[0]

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that report the fault."""
        return tuple(
            sorted({sighting.rank for sighting in self.sightings if sighting.rank is not None})
        )


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The explanation of a failed job.

    Args:
        candidates: The likeliest first cause, and at most two others.
        collateral: Their consequences, earliest first.
        errors: Lines that look like errors, if nothing was recognised.
        job: The content of the logs.
    """

    candidates: tuple[Candidate, ...]
    collateral: tuple[Candidate, ...]
    errors: tuple[ErrorLine, ...]
    job: Job


def explained(job: Job) -> Explanation:
    """Find the first cause of a failed job."""
    sightings = sorted(mark_survived(job.sightings), key=lambda item: (item.survived, *_when(item)))
    by_fault: dict[str, list[Sighting]] = {}
    for sighting in sightings:
        by_fault.setdefault(sighting.fault.id, []).append(sighting)
    first_sightings = with_stated_causes([group[0] for group in by_fault.values()], _explains)
    unexplained = [
        sighting
        for sighting in first_sightings
        if not any(_explains(other_sighting, sighting) for other_sighting in first_sightings)
    ]
    unexplained = unexplained or first_sightings[:1]
    unexplained = sorted(
        unexplained,
        key=lambda sighting: (
            *(_is_late(sighting, unexplained), sighting.survived),
            *(sighting.fault.priority, _when(sighting)),
        ),
    )
    likeliest = _specific(unexplained)[:MAX_CANDIDATES]
    candidates = tuple(_candidate(sighting.fault, by_fault, job) for sighting in likeliest)
    consequences = [sighting for sighting in first_sightings if sighting not in likeliest]
    return Explanation(
        candidates=candidates,
        collateral=tuple(
            Candidate(fault=sighting.fault, sightings=tuple(by_fault[sighting.fault.id]))
            for sighting in consequences
        ),
        errors=() if candidates else tuple(job.errors),
        job=job,
    )


def _specific(unexplained: list[Sighting]) -> list[Sighting]:
    """Return the most specific candidates; ends and notes only if there are no others.

    A fault that the program survived is not more specific than an end that states its reason.
    """
    failures = [item for item in unexplained if item.fault.role not in ("end", "note")]
    ends = [item for item in unexplained if item.fault.telling and item.fault.role == "end"]
    if ends and all(failure.survived for failure in failures):
        return [*ends, *failures]
    return failures or unexplained


def _candidate(fault: Fault, by_fault: dict[str, list[Sighting]], job: Job) -> Candidate:
    culprit: Culprit | None = None
    if fault.role == "wait":
        sightings = list(chain.from_iterable(by_fault.values()))
        waiting = [sighting for sighting in sightings if sighting.fault.role == "wait"]
        blamed_ranks = tuple(
            sorted({sighting.blamed for sighting in waiting if sighting.blamed is not None})
        )
        # The rank may appear only in the line of an effect that reports the same failure.
        effects = [
            sighting
            for sighting in sightings
            if sighting.fault.role == "effect" and fault.id in sighting.fault.follows
        ]
        reporters = {item.rank for item in (*waiting, *effects) if item.rank is not None}
        culprit = job.waits.culprit(reporters, job.ranks, job.world)
        # A rank named by a message is stronger evidence than a silent one.
        if blamed_ranks and (culprit is None or culprit.why is SILENT):
            culprit = Culprit(ranks=blamed_ranks, why=fault.what)
    return Candidate(fault=fault, sightings=tuple(by_fault[fault.id]), culprit=culprit)


def _when(sighting: Sighting) -> tuple[bool, float, int]:
    """Return a sort key: lines with a time, then those without one in the order of reading."""
    seconds = sighting.time.timestamp() if sighting.time else 0.0
    return (sighting.time is None, seconds, sighting.order)


def _explains(cause: Sighting, effect: Sighting) -> bool:
    """Return whether one fault may lead to the other."""
    if cause is effect:
        return False
    may_follow = cause.fault.id in effect.fault.follows
    if may_follow or effect.fault.id in cause.fault.follows:
        return may_follow
    if cause.fault.role not in ("cause", "general", "wait") or cause.survived > effect.survived:
        return False
    if cause.fault.priority >= effect.fault.priority or effect.fault.role == "cause":
        return False
    if effect.fault.role == "general":  # an exception with its own message may be the first
        return _when(cause) < _when(effect)
    return not _clearly_later(cause, effect)


def _is_late(sighting: Sighting, sightings: list[Sighting]) -> bool:
    """Return whether something else failed long before, so that this is only an aftermath."""
    return any(
        _clearly_later(sighting, earlier)
        for earlier in sightings
        if earlier.fault.role in FAILING and earlier.survived <= sighting.survived
    )


def _clearly_later(later: Sighting, earlier: Sighting) -> bool:
    if later.time and earlier.time:
        return later.time > earlier.time + _MAX_DELAY
    return later.source == earlier.source and later.order > earlier.order + _MAX_DELAY_LINES
