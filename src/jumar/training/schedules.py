"""Learning rate schedules.

A schedule is a warm-up and a decay. The original scripts differ in small ways that affect every
result of a run, so each difference is a setting: whether the first step already counts as done,
whether the decay starts at step 0 during the warm-up or after it, whether it changes within an
epoch, and the rate after its end.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from jumar.ground.errors import UserError
from jumar.settings import Component, setting
from jumar.training.durations import parse_duration


@dataclass(frozen=True, kw_only=True)
class Run:
    """The length of a run, used to convert the lengths of a schedule to steps.

    Attributes:
        steps_per_epoch: Optimizer steps of one pass over the training set.
        total_steps: Optimizer steps of the whole run.
    """

    steps_per_epoch: int
    total_steps: int

    def steps(self, field: str, text: str) -> int:
        """A length in steps.

        Raises:
            UserError: The text cannot be parsed.
        """
        duration = parse_duration(text, f"schedule.{field}")
        return duration.steps(self.steps_per_epoch, self.total_steps) or 0


@dataclass(frozen=True, kw_only=True)
class ScheduleSettings(Component, ABC):
    """How the learning rate changes over a run; every rate is a multiple of the base rate.

    To add your own, write a subclass with `kind="name"` that defines `decay`.
    """

    warmup: str = setting("0it", "Length of the warm-up.", unit="it, ep or %")
    warmup_kind: str = setting(
        "linear", "Shape of the warm-up.", choices=("none", "linear", "cosine")
    )
    warmup_from_zero: bool = setting(
        False,
        "Step i of a W-step warm-up uses i/W (BERT: the first step has rate 0) instead of (i+1)/W.",
    )

    @abstractmethod
    def decay(self, step: int, run: Run) -> float:
        """The factor on the base rate at a step after the warm-up."""

    def lengths(self) -> list[tuple[str, str]]:
        """The lengths that the schedule uses, as (field, text)."""
        return [] if self.warmup_kind == "none" else [("warmup", self.warmup)]

    def check(self) -> None:
        """Check that every length can be parsed and is in steps.

        Raises:
            UserError: A length cannot be parsed, or is a wall-clock time.
        """
        for field, text in self.lengths():
            if parse_duration(text, f"schedule.{field}").seconds is not None:
                raise UserError(
                    f"'{text}' is a wall-clock time, but the learning rate follows the step",
                    where=f"schedule.{field}",
                    todo="Write it in steps, epochs or percent, for instance 500it, 3ep or 10%.",
                )

    def warmup_steps(self, run: Run) -> int:
        """Number of warm-up steps."""
        return 0 if self.warmup_kind == "none" else run.steps("warmup", self.warmup)


def learning_rate(
    schedule: ScheduleSettings, base: float, step: int, *, steps_per_epoch: int, total_steps: int
) -> float:
    """The learning rate at a step.

    Args:
        schedule: The schedule.
        base: The rate that the schedule multiplies.
        step: The optimizer step, counted from 0.
        steps_per_epoch: Optimizer steps of one pass over the training set.
        total_steps: Optimizer steps of the whole run.

    Returns:
        The rate in float64. The originals' rates, computed in float32, differ by up to 1e-7 of the
        base rate.

    Raises:
        UserError: A length cannot be parsed, or boundaries are not ascending.
    """
    run = Run(steps_per_epoch=steps_per_epoch, total_steps=total_steps)
    warmup = _warmup_steps(schedule, run)
    if step < warmup:
        done = (step if schedule.warmup_from_zero else step + 1) / warmup
        return base * (done if schedule.warmup_kind == "linear" else _cosine(1.0 - done))
    return base * schedule.decay(step, run)


@lru_cache(maxsize=64)
def _warmup_steps(schedule: ScheduleSettings, run: Run) -> int:
    schedule.check()
    return schedule.warmup_steps(run)


def _cosine(progress: float) -> float:
    return 0.5 * (1.0 + math.cos(math.pi * progress))


@dataclass(frozen=True, kw_only=True)
class Constant(ScheduleSettings, kind="constant"):
    """The base rate after the warm-up."""

    def decay(self, step: int, run: Run) -> float:
        """See `ScheduleSettings.decay`."""
        del step, run
        return 1.0


@dataclass(frozen=True, kw_only=True)
class _Decaying(ScheduleSettings):
    """The common part of all decays: where they start counting, and how often they change."""

    decay_from: str = setting(
        "warmup",
        "Where the decay starts counting: after the warm-up, or at step 0, so that the warm-up "
        "hides its beginning (AlexNet, BERT).",
        choices=("warmup", "start"),
    )
    per_epoch: bool = setting(
        False, "The decay changes only between epochs (AlexNet); the warm-up changes at every step."
    )

    def start(self, run: Run) -> int:
        """The step from which the decay counts."""
        return self.warmup_steps(run) if self.decay_from == "warmup" else 0

    def decay(self, step: int, run: Run) -> float:
        """See `ScheduleSettings.decay`."""
        if self.per_epoch:
            step = step // run.steps_per_epoch * run.steps_per_epoch
        return self.factor(max(step - self.start(run), 0), run)

    @abstractmethod
    def factor(self, position: int, run: Run) -> float:
        """The factor `position` steps after the start of the decay."""


@dataclass(frozen=True, kw_only=True)
class _Ending(_Decaying):
    """A decay with an end."""

    decay_until: str = setting("100%", "Where the decay ends.", unit="it, ep or %")
    decay_counts_step: bool = setting(
        False,
        "Count the current step as done, so that the last step has the end rate (ResNeXt) and not "
        "the step after it (TensorFlow).",
    )
    end: float = setting(0.0, "Rate at its end.", unit="x base rate", minimum=0.0, maximum=1.0)
    after_end: float | None = setting(
        None,
        "Rate after the end; none keeps the end rate.",
        unit="x base rate",
        minimum=0.0,
    )

    def lengths(self) -> list[tuple[str, str]]:
        """See `ScheduleSettings.lengths`."""
        return [*super().lengths(), ("decay_until", self.decay_until)]

    def span(self, run: Run) -> int:
        """Steps from the start of the decay to its end."""
        return run.steps("decay_until", self.decay_until) - self.start(run)

    def factor(self, position: int, run: Run) -> float:
        """See `_Decaying.factor`."""
        span = self.span(run)
        if position > span and self.after_end is not None:
            return self.after_end
        done = position + 1 if self.decay_counts_step else position
        progress = done / span if span > 0 else 1.0
        if self.after_end is None:
            # Not if after_end is set: ResNeXt's table has one entry past the end, for which the
            # cosine rises again.
            progress = min(progress, 1.0)
        return (1.0 - self.end) * self.shape(progress) + self.end

    @abstractmethod
    def shape(self, progress: float) -> float:
        """The shape of the decay, from 1 at the start to 0 at the end."""


@dataclass(frozen=True, kw_only=True)
class Cosine(_Ending, kind="cosine"):
    """Half a cosine (Loshchilov and Hutter, arXiv 1608.03983)."""

    def shape(self, progress: float) -> float:
        """See `_Ending.shape`."""
        return _cosine(progress)


@dataclass(frozen=True, kw_only=True)
class Polynomial(_Ending, kind="polynomial"):
    """tf.train.polynomial_decay."""

    power: float = setting(1.0, "Exponent.", minimum=0.0)
    cycle: bool = setting(False, "Start again with a longer slope whenever it has ended.")

    def factor(self, position: int, run: Run) -> float:
        """See `_Decaying.factor`."""
        span = self.span(run)
        if not self.cycle or span <= 0:
            return super().factor(position, run)
        length = span * max(math.ceil(position / span), 1)
        return (1.0 - self.end) * self.shape(position / length) + self.end

    def shape(self, progress: float) -> float:
        """See `_Ending.shape`."""
        return max(1.0 - progress, 0.0) ** self.power


@dataclass(frozen=True, kw_only=True)
class Piecewise(_Decaying, kind="step"):
    """tf.train.piecewise_constant, where the boundary step itself still has the earlier value."""

    boundaries: tuple[str, ...] = setting(
        (),
        "Last step of each piece; the next value applies from the step after.",
        unit="it, ep or %",
    )
    values: tuple[float, ...] = setting(
        (), "Rate of each piece, one more than boundaries.", unit="x base rate"
    )

    def lengths(self) -> list[tuple[str, str]]:
        """See `ScheduleSettings.lengths`."""
        boundaries = [(f"boundaries[{i}]", text) for i, text in enumerate(self.boundaries)]
        return [*super().lengths(), *boundaries]

    def check(self) -> None:
        """Check that boundaries and values match; see also `ScheduleSettings.check`."""
        super().check()
        if len(self.values) != len(self.boundaries) + 1:
            raise UserError(
                f"{len(self.boundaries)} boundaries need {len(self.boundaries) + 1} values, "
                f"not {len(self.values)}",
                where="schedule.values",
                todo="For instance: schedule.boundaries=30ep,60ep schedule.values=1,0.1,0.01",
            )

    def factor(self, position: int, run: Run) -> float:
        """See `_Decaying.factor`."""
        ends = _boundary_steps(self.boundaries, run)
        num_passed = sum(position > end - self.start(run) for end in ends)
        return self.values[num_passed]


@lru_cache(maxsize=64)
def _boundary_steps(boundaries: Sequence[str], run: Run) -> tuple[int, ...]:
    ends = tuple(run.steps("boundaries", text) for text in boundaries)
    if any(later <= earlier for earlier, later in pairwise(ends)):
        raise UserError(
            f"the boundaries {', '.join(boundaries)} are steps "
            f"{', '.join(map(str, ends))}, which are not ascending",
            where="schedule.boundaries",
            todo="Sort them, or make the run longer if they are percentages.",
        )
    return ends


@dataclass(frozen=True, kw_only=True)
class _Periodic(_Decaying):
    """A decay in periods."""

    every: str = setting("1ep", "Length of a period.", unit="it, ep or %")

    def lengths(self) -> list[tuple[str, str]]:
        """See `ScheduleSettings.lengths`."""
        return [*super().lengths(), ("every", self.every)]

    def period(self, run: Run) -> int:
        """Number of steps in the first period."""
        return max(run.steps("every", self.every), 1)


@dataclass(frozen=True, kw_only=True)
class _Rated(_Periodic):
    """A decay of a given strength per period."""

    rate: float = setting(0.94, "Factor (exponential) or strength of the decay.", minimum=0)
    staircase: bool = setting(False, "Drop once per period instead of smoothly.")

    def factor(self, position: int, run: Run) -> float:
        """See `_Decaying.factor`."""
        period = self.period(run)
        return self.after(float(position // period) if self.staircase else position / period)

    @abstractmethod
    def after(self, periods: float) -> float:
        """The factor after a number of periods."""


@dataclass(frozen=True, kw_only=True)
class Exponential(_Rated, kind="exponential"):
    """tf.train.exponential_decay."""

    def after(self, periods: float) -> float:
        """See `_Rated.after`."""
        return self.rate**periods


@dataclass(frozen=True, kw_only=True)
class NaturalExponential(_Rated, kind="natural_exponential"):
    """tf.train.natural_exp_decay."""

    def after(self, periods: float) -> float:
        """See `_Rated.after`."""
        return math.exp(-self.rate * periods)


@dataclass(frozen=True, kw_only=True)
class InverseTime(_Rated, kind="inverse_time"):
    """tf.train.inverse_time_decay."""

    def after(self, periods: float) -> float:
        """See `_Rated.after`."""
        return 1.0 / (1.0 + self.rate * periods)


@dataclass(frozen=True, kw_only=True)
class CosineRestarts(_Periodic, kind="cosine_restarts"):
    """tf.train.cosine_decay_restarts (Loshchilov and Hutter, arXiv 1608.03983)."""

    end: float = setting(
        0.0, "Rate at which each cosine ends.", unit="x base rate", minimum=0.0, maximum=1.0
    )
    period_factor: float = setting(2.0, "Growth of the period at each restart.", minimum=1.0)
    restart_factor: float = setting(1.0, "Factor on the rate at each restart.", minimum=0.0)

    def factor(self, position: int, run: Run) -> float:
        """See `_Decaying.factor`."""
        period = float(self.period(run))
        if self.period_factor == 1.0:
            restarts, offset = divmod(position, self.period(run))
        else:
            restarts, offset = 0, float(position)
            while offset >= period:
                offset -= period
                period *= self.period_factor
                restarts += 1
        height = self.restart_factor**restarts * _cosine(offset / period)
        return (1.0 - self.end) * height + self.end
