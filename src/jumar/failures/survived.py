"""What a program survived, and what it only mentioned, beside what ended it."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from jumar.failures.reading.raised import exception_in, is_optional
from jumar.failures.reading.sightings import Sighting

_Process = tuple[int, int | None, int | None]
FAILING: Final = ("cause", "general", "wait", "effect")
"""Roles of faults that fail something."""
_TRAINED: Final = 50
"""Lines with a loss after a fault that show that the training went on."""
_LEFT_OVER: Final = re.compile(
    r"NoneType|is not defined|before assignment|not associated with a value|has no attribute"
)
"""Words of an exception that may follow from an earlier one that was caught."""


def judged(sightings: list[Sighting]) -> list[Sighting]:
    """The sightings, with those marked as survived after which the program went on.

    What is normally raised as an exception, but only mentioned by a line that is none, ended
    nothing if the program came to another fault after it; nor did anything after which the
    training went on for many steps before it failed, nor an exception after which the same
    process logged what it was doing, until another one ended it.
    """
    # Some entries are no failures, but show how far the program came, or why it was ended.
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
    # By process: with thousands of ranks, not every fault is compared with every other.
    is_alone = _is_alone(sightings)
    ends: dict[_Process, list[Sighting]] = {}
    for sighting in sightings:
        if _ended_a_process(sighting):
            ends.setdefault(_process(sighting, is_alone=is_alone), []).append(sighting)
    return [
        replace(sighting, survived=True)
        if (
            _went_on(sighting, last.get(sighting.source, sighting))
            or _did_without(sighting, last_other.get(sighting.source, sighting))
            or any(
                _outlived(sighting, end)
                for end in ends.get(_process(sighting, is_alone=is_alone), ())
            )
        )
        else sighting
        for sighting in sightings
    ]


def _keep_later(last: dict[int, Sighting], sighting: Sighting) -> None:
    before = last.get(sighting.source, sighting)
    last[sighting.source] = max(before, sighting, key=lambda each: each.order)


def _did_without(sighting: Sighting, last: Sighting) -> bool:
    """Whether a package or library was only mentioned as missing, and something else failed."""
    is_mention = not sighting.raised and is_optional(sighting.fault.example)
    return is_mention and last.order > sighting.order


def _went_on(sighting: Sighting, last: Sighting) -> bool:
    is_mention = not sighting.raised and exception_in(sighting.fault.example) != ""
    trained = last.progress - sighting.progress >= _TRAINED
    return last.order > sighting.order and (is_mention or trained)


def _is_alone(sightings: list[Sighting]) -> bool:
    """Whether all sightings may be of a single process."""
    ranks = {each.rank for each in sightings} - {None}
    pids = {each.pid for each in sightings} - {None}
    reports_of_others = {"child-failed", "process-terminated", "exception-elsewhere"}
    return (
        not ranks
        and len(pids) <= 1
        and len({each.source for each in sightings}) == 1
        and not any(each.fault.id in reports_of_others for each in sightings)
    )


def _ended_a_process(sighting: Sighting) -> bool:
    """Whether it is an exception with its traceback that stands for itself."""
    is_own = sighting.fault.role in ("cause", "general") and not sighting.survived
    return is_own and sighting.traced and exception_in(sighting.text) != ""


def _process(sighting: Sighting, *, is_alone: bool) -> _Process:
    """The process of a sighting; a line of its own where nothing names it among others."""
    if is_alone:
        return 0, None, None
    if sighting.rank is None and sighting.pid is None:
        return sighting.order, None, None
    return sighting.source, sighting.rank, sighting.pid


def _outlived(sighting: Sighting, end: Sighting) -> bool:
    """Whether a process went on after an exception, until another one, of the same, ended it."""
    return (
        end.order > sighting.order
        and end.informed > sighting.informed
        and sighting.fault.role in ("cause", "general")
        and exception_in(sighting.text) != ""
        and sighting.fault.id not in end.fault.follows
        and not _LEFT_OVER.search(end.text)
        and (end.fault.role == "cause" or not sighting.traced)
    )


def stated(
    firsts: list[Sighting], explains: Callable[[Sighting, Sighting], bool]
) -> list[Sighting]:
    """The sightings, with a state that the program reported as the cause if all follows from it.

    A buffer that is still being filled or a training that is over is no failure, and is only logged
    for information, but can lead to what failed after it. Otherwise it is left out.
    """
    kept: list[Sighting] = []
    for sighting in firsts:
        if not sighting.fault.informs:
            kept.append(sighting)
        elif _leads_to_all(sighting, firsts, explains):
            fault = replace(sighting.fault, role="cause")
            kept.append(replace(sighting, fault=fault, survived=False))
    return kept


def _leads_to_all(
    sighting: Sighting, firsts: list[Sighting], explains: Callable[[Sighting, Sighting], bool]
) -> bool:
    following = [
        each
        for each in firsts
        if sighting.fault.id in each.fault.follows
        and each.order > sighting.order
        and each.progress == sighting.progress
    ]
    others = [each for each in firsts if each.fault.role in FAILING and not each.survived]
    return bool(following) and all(
        each in following or any(explains(one, each) for one in following) for each in others
    )
