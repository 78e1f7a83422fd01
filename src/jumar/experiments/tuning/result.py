"""The result of a tuning: each race, and the best combination."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from jumar.experiments.tuning.bottleneck import Facts, Limit
from jumar.experiments.tuning.journal import Outcome
from jumar.experiments.tuning.knobs import Choice, Combination
from jumar.experiments.tuning.pairs import Speedup, is_faster

START: Final = Combination()
"""The initial settings, without any choice."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """The result of one choice.

    Attributes:
        choice: The choice.
        outcome: The outcome of the race.
        measured: The speed-up over the best settings before; None without enough pairs.
        weights: Its effect on the weights; None if they were not compared.
        reason: The reason if it failed.
        memory_bytes: Peak memory.
        reused: Whether the measurement is from an earlier tuning.
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
        facts: The measurement of the initial settings.
        limits: The bottlenecks.
        noise: Speed-up of a second process with the initial settings over the first.
        reproducible: Whether both had the same weights, so that others can be compared.
        best: The fastest combination.
        tried: Every race, in order.
        confirmed: Speed-up of the best combination over the initial settings in new processes; None
            if nothing was better or there was no time.
        weights: Effect of the best combination on the weights.
        left_out: Choices for which there was no time.
        min_time_s: If there was not enough time for any choice, the seconds needed for one of them,
            since the same time limit would not suffice again; otherwise 0.
        interrupted: Whether the tuning was stopped.
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
    min_time_s: float = 0.0
    interrupted: bool = False

    @property
    def is_faster(self) -> bool:
        """Whether the best combination was confirmed to be faster."""
        return self.confirmed is not None and is_faster(self.confirmed)

    @property
    def kept(self) -> list[Tried]:
        """The races won by the choices in the best combination."""
        return [
            tried
            for tried in self.tried
            if tried.outcome == "faster" and tried.choice in self.best.choices
        ]


def tried_line(tried: Tried) -> str:
    """Return the result of a choice in one line."""
    choice = tried.choice
    remarks: list[str] = [tried.outcome]
    if tried.measured is not None:
        remarks.append(f"{tried.measured.text()} in {tried.measured.pairs} pairs")
    if tried.reason:
        remarks.append(tried.reason)
    if tried.weights == "identical":
        remarks.append("weights identical")
    elif tried.weights == "rounding":
        remarks.append(
            "weights differ, although declared identical"
            if choice.claim == "identical"
            else "weights round differently"
        )
    if tried.reused:
        remarks.append("measured before")
    return f"  {choice.label}: {'; '.join(remarks)}"
