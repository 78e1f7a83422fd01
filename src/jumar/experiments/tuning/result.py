"""The result of a tuning: each race, and the best combination."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from jumar.experiments.tuning.bottleneck import Facts, Limit
from jumar.experiments.tuning.journal import Outcome
from jumar.experiments.tuning.knobs import Choice, Combination
from jumar.experiments.tuning.pairs import Speedup, is_faster

START: Final = Combination()
"""The start, unchanged."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """The result of one choice.

    Attributes:
        choice: The choice.
        outcome: How the race ended.
        measured: The speed-up over the best settings before; None without enough pairs.
        weights: Its effect on the weights; None if they were not compared.
        reason: Why it failed.
        memory_bytes: Peak memory.
        reused: Whether an earlier tuning measured it.
    """

    choice: Choice
    outcome: Outcome
    measured: Speedup | None = None
    weights: Literal["identical", "rounding"] | None = None
    reason: str = ""
    memory_bytes: int = 0
    reused: bool = False


@dataclass(kw_only=True)
class Found:
    """The outcome of a tuning.

    Attributes:
        facts: The measurement of the start.
        limits: The bottlenecks.
        noise: Two processes of the start compared with each other.
        reproducible: Whether both had the same weights, so that others can be compared.
        best: The fastest combination.
        tried: Every race, in order.
        confirmed: The best compared with the start in fresh processes; None if nothing was better
            or there was no time.
        weights: Effect of the best on the weights.
        left_out: Choices for which there was no time.
        least_s: If this tuning decided on no choice for lack of time, the seconds that suffice for
            one of those left out: the same time again would get no further. 0 otherwise.
        interrupted: Whether it was stopped.
    """

    facts: Facts | None = None
    limits: Sequence[Limit] = ()
    noise: Speedup | None = None
    reproducible: bool = True
    best: Combination = START
    tried: list[Tried] = field(default_factory=list[Tried])
    confirmed: Speedup | None = None
    weights: Literal["identical", "rounding"] = "identical"
    left_out: list[Choice] = field(default_factory=list[Choice])
    least_s: float = 0.0
    interrupted: bool = False

    @property
    def is_faster(self) -> bool:
        """Whether the best was confirmed."""
        return self.confirmed is not None and is_faster(self.confirmed)

    @property
    def kept(self) -> list[Tried]:
        """The gain of each choice in the best combination."""
        return [
            each
            for each in self.tried
            if each.outcome == "faster" and each.choice in self.best.choices
        ]


def tried_line(tried: Tried) -> str:
    """The result of a choice, in one line."""
    choice = tried.choice
    remarks = [tried.outcome]
    if tried.measured is not None:
        remarks.append(f"{tried.measured.text()} in {tried.measured.pairs} pairs")
    if tried.reason:
        remarks.append(tried.reason)
    if tried.weights == "identical":
        remarks.append("weights identical")
    elif tried.weights == "rounding":
        claims_identical = choice.claim == "identical"
        remarks.append(
            "weights differ, although it claims otherwise"
            if claims_identical
            else "weights round differently"
        )
    if tried.reused:
        remarks.append("measured before")
    return f"  {choice.label}: {'; '.join(remarks)}"
