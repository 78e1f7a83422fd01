"""Separates the faults that a program survived or only mentioned from those that ended it."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from jumar.failures.reading.raised import exception_in, is_optional
from jumar.failures.reading.sightings import Sighting

_Process = tuple[int, int | None, int | None]
FAILING: Final = ("cause", "general", "wait", "effect")
"""Roles of faults that make something fail."""
_MIN_LOSS_LINES: Final = 50
"""Number of lines with a loss after a fault that show that training continued."""
_AFTER_CAUGHT: Final = re.compile(
    r"NoneType|is not defined|before assignment|not associated with a value|has no attribute"
)
"""Text of an exception that may result from an earlier one that was caught."""


def mark_survived(sightings: list[Sighting]) -> list[Sighting]:
    """Mark the sightings after which the program continued as survived.

    An exception that is only mentioned ended nothing if the program reached another fault after
    it. Neither did a fault after which training continued for many steps, nor an exception after
    which the same process logged its activity until another exception ended it.
    """
    # Some entries are not failures, but show how far the program got, or why it ended.
    last: dict[int, Sighting] = {}
    last_other: dict[int, Sighting] = {}
    for sighting in sightings:
        is_definite = sighting.fault.telling or sighting.fault.informs
        if not is_definite and (sighting.survived or sighting.fault.role not in FAILING):
            continue
        if is_definite or sighting.raised or not exception_in(sighting.fault.example):
            _keep_later(last, sighting)
        if not is_optional(sighting.fault.example):
            _keep_later(last_other, sighting)
    # Grouped by process, since with thousands of ranks, comparing all pairs would be slow.
    is_single_process = _is_single_process(sightings)
    ends: dict[_Process, list[Sighting]] = {}
    for sighting in sightings:
        if _ended_a_process(sighting):
            ends.setdefault(_process(sighting, is_single_process=is_single_process), []).append(
                sighting
            )
    return [
        replace(sighting, survived=True)
        if (
            _continued(sighting, last.get(sighting.source, sighting))
            or _was_dispensable(sighting, last_other.get(sighting.source, sighting))
            or any(
                _outlived(sighting, end)
                for end in ends.get(_process(sighting, is_single_process=is_single_process), ())
            )
        )
        else sighting
        for sighting in sightings
    ]


def _keep_later(last: dict[int, Sighting], sighting: Sighting) -> None:
    before = last.get(sighting.source, sighting)
    last[sighting.source] = max(before, sighting, key=lambda item: item.order)


def _was_dispensable(sighting: Sighting, last: Sighting) -> bool:
    """Return whether a package was only reported missing, and something else failed later."""
    is_mention = not sighting.raised and is_optional(sighting.fault.example)
    return is_mention and last.order > sighting.order


def _continued(sighting: Sighting, last: Sighting) -> bool:
    is_mention = not sighting.raised and exception_in(sighting.fault.example) != ""
    trained = last.progress - sighting.progress >= _MIN_LOSS_LINES
    return last.order > sighting.order and (is_mention or trained)


def _is_single_process(sightings: list[Sighting]) -> bool:
    """Return whether all sightings may come from a single process."""
    ranks = {sighting.rank for sighting in sightings} - {None}
    pids = {sighting.pid for sighting in sightings} - {None}
    reports_of_others = {"child-failed", "process-terminated", "exception-elsewhere"}
    return (
        not ranks
        and len(pids) <= 1
        and len({sighting.source for sighting in sightings}) == 1
        and not any(sighting.fault.id in reports_of_others for sighting in sightings)
    )


def _ended_a_process(sighting: Sighting) -> bool:
    """Return whether a sighting is a failure, reported by an exception with its traceback."""
    is_failure = sighting.fault.role in ("cause", "general") and not sighting.survived
    return is_failure and sighting.traced and exception_in(sighting.text) != ""


def _process(sighting: Sighting, *, is_single_process: bool) -> _Process:
    """Identify the process of a sighting; by its line if neither rank nor process ID is known."""
    if is_single_process:
        return 0, None, None
    if sighting.rank is None and sighting.pid is None:
        return sighting.order, None, None
    return sighting.source, sighting.rank, sighting.pid


def _outlived(sighting: Sighting, end: Sighting) -> bool:
    """Return whether a process continued after an exception, until another one ended it."""
    return (
        end.order > sighting.order
        and end.informed > sighting.informed
        and sighting.fault.role in ("cause", "general")
        and exception_in(sighting.text) != ""
        and sighting.fault.id not in end.fault.follows
        and not _AFTER_CAUGHT.search(end.text)
        and (end.fault.role == "cause" or not sighting.traced)
    )


def with_stated_causes(
    first_sightings: list[Sighting], explains: Callable[[Sighting, Sighting], bool]
) -> list[Sighting]:
    """Turn reported states from which all failures can follow into causes, and drop the others.

    A buffer that is still being filled, or a training run that has ended, is not a failure and is
    only logged for information, but it can lead to later failures.
    """
    kept: list[Sighting] = []
    for sighting in first_sightings:
        if not sighting.fault.informs:
            kept.append(sighting)
        elif _leads_to_all(sighting, first_sightings, explains):
            fault = replace(sighting.fault, role="cause")
            kept.append(replace(sighting, fault=fault, survived=False))
    return kept


def _leads_to_all(
    sighting: Sighting,
    first_sightings: list[Sighting],
    explains: Callable[[Sighting, Sighting], bool],
) -> bool:
    following = [
        item
        for item in first_sightings
        if sighting.fault.id in item.fault.follows
        and item.order > sighting.order
        and item.progress == sighting.progress
    ]
    failures = [
        item for item in first_sightings if item.fault.role in FAILING and not item.survived
    ]
    return bool(following) and all(
        failure in following or any(explains(item, failure) for item in following)
        for failure in failures
    )
