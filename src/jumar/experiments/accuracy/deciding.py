"""The fastest precision setting that meets a target, as a pure function of measurements.

Anchor: the experiment table that the project started from, AlexNet on an Ascend 910. There
`allow_mix_precision` and `force_fp16` take 50 ms a step and `allow_fp32_to_fp16` 170 ms,
`force_fp16` is below the baseline, and `must_keep_origin_dtype` did not run: the answer is
`allow_mix_precision`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from jumar.experiments.accuracy.target import Judged

SAME_SPEED = 0.03
"""Step times that differ by no more count as equal, and the better score decides."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measured precision setting.

    Attributes:
        name: Its name.
        judged: Its scores, compared with the target.
        step_ms: Median time of a step; None if it was not measured.
        assignments: The setting, `precision.field=value`.
        num_seeds: How many seeds gave a score.
        note: Why it is not available.
        is_substituted: Whether the device computed in a type other than the mode's.
    """

    name: str
    judged: Judged
    step_ms: float | None
    assignments: tuple[str, ...] = ()
    num_seeds: int = 0
    note: str = ""
    is_substituted: bool = False


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The decision.

    Attributes:
        chosen: The setting; None if none meets the target.
        is_sure: Whether its scores meet the target beyond chance.
        as_fast: Others that meet the target in the same time, with worse scores.
        faster: Faster ones that do not meet it, or not for sure.
        slower: Slower ones that meet it.
    """

    chosen: Measured | None
    is_sure: bool
    as_fast: tuple[Measured, ...] = ()
    faster: tuple[Measured, ...] = ()
    slower: tuple[Measured, ...] = ()


def decide(measured: Sequence[Measured]) -> Decision:
    """Choose the fastest setting that meets the target.

    Settings that meet it beyond chance come first. If there are none, the choice is among those
    whose mean reaches it, and is not sure. Of settings that are equally fast, the one with the
    better scores is chosen, and of equal ones the first.

    Args:
        measured: All settings, in the order of preference.
    """
    timed = [each for each in measured if each.step_ms is not None]
    keeping = [each for each in timed if each.judged.verdict == "keeps"]
    is_sure = bool(keeping)
    if not keeping:
        keeping = [
            each for each in timed if each.judged.verdict == "unclear" and each.judged.margin >= 0
        ]
    if not keeping:
        return Decision(chosen=None, is_sure=False)
    limit = min(_time(each) for each in keeping) * (1 + SAME_SPEED)
    fastest = [each for each in keeping if _time(each) <= limit]
    chosen = max(fastest, key=lambda each: each.judged.margin)  # the first of equal ones
    return Decision(
        chosen=chosen,
        is_sure=is_sure,
        as_fast=tuple(each for each in fastest if each is not chosen),
        faster=tuple(each for each in timed if each not in keeping and _time(each) <= limit),
        slower=tuple(each for each in keeping if _time(each) > limit),
    )


def _time(measured: Measured) -> float:
    assert measured.step_ms is not None
    return measured.step_ms
