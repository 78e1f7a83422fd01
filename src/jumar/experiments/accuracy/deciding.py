"""Choose the fastest precision setting that meets a target, as a pure function of measurements.

Reference case: the project's first experiment table, AlexNet on an Ascend 910. There
`allow_mix_precision` and `force_fp16` take 50 ms a step and `allow_fp32_to_fp16` 170 ms,
`force_fp16` is below the baseline, and `must_keep_origin_dtype` did not run: the answer is
`allow_mix_precision`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from jumar.experiments.accuracy.target import Judged

SAME_SPEED = 0.03
"""Largest relative difference of step times that count as equal; the better score then decides."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measured precision setting.

    Attributes:
        name: Its name.
        judged: Its scores, compared with the target.
        step_ms: Median time of a step; None if it was not measured.
        assignments: The setting, `precision.field=value`.
        num_seeds: Number of seeds with a score.
        note: The reason why it is not available.
        is_substituted: Whether the device computed in another dtype than the mode's.
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
    """The chosen setting, and the alternatives.

    Attributes:
        chosen: The setting; None if none meets the target.
        is_sure: Whether its scores meet the target beyond chance.
        as_fast: Equally fast settings that meet the target with worse scores.
        faster: Faster settings that do not certainly meet the target.
        slower: Slower settings that meet the target.
    """

    chosen: Measured | None
    is_sure: bool
    as_fast: tuple[Measured, ...] = ()
    faster: tuple[Measured, ...] = ()
    slower: tuple[Measured, ...] = ()


def decide(measured: Sequence[Measured]) -> Decision:
    """Choose the fastest setting that meets the target.

    Settings that meet it beyond chance have priority. If there are none, the choice is among those
    whose mean reaches it, and is not sure. Among equally fast settings the one with the better
    scores is chosen, among equal ones the first.

    Args:
        measured: All settings, in the order of preference.
    """
    timed = [item for item in measured if item.step_ms is not None]
    sufficient = [item for item in timed if item.judged.verdict == "keeps"]
    is_sure = bool(sufficient)
    if not sufficient:
        sufficient = [
            item for item in timed if item.judged.verdict == "unclear" and item.judged.margin >= 0
        ]
    if not sufficient:
        return Decision(chosen=None, is_sure=False)
    limit = min(map(_time, sufficient)) * (1 + SAME_SPEED)
    fastest = [item for item in sufficient if _time(item) <= limit]
    chosen = max(fastest, key=lambda item: item.judged.margin)  # the first of equal ones
    return Decision(
        chosen=chosen,
        is_sure=is_sure,
        as_fast=tuple(item for item in fastest if item is not chosen),
        faster=tuple(item for item in timed if item not in sufficient and _time(item) <= limit),
        slower=tuple(item for item in sufficient if _time(item) > limit),
    )


def _time(measured: Measured) -> float:
    assert measured.step_ms is not None
    return measured.step_ms
