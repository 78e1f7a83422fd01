"""Learning rates as a function of the step.

A schedule is a warm-up and a decay. They differ between the originals in small ways that move
every number of a run, so each difference is a setting: whether the first step already counts as
done, whether the decay starts at step 0 under the warm-up or after it, whether it moves within
an epoch, and what holds after its end.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from jumar.ground.errors import UserError
from jumar.settings import setting
from jumar.training.durations import parse_duration

KINDS = (
    "constant",
    "cosine",
    "cosine_restarts",
    "polynomial",
    "step",
    "exponential",
    "natural_exponential",
    "inverse_time",
)


@dataclass(frozen=True, kw_only=True)
class ScheduleSettings:
    """How the learning rate changes over a run; every rate is a multiple of the base rate."""

    kind: str = setting("cosine", "how the rate decays", choices=KINDS)
    warmup: str = setting("0it", "length of the warm-up", unit="it, ep or %")
    warmup_kind: str = setting(
        "linear", "shape of the warm-up", choices=("none", "linear", "cosine")
    )
    warmup_from_zero: bool = setting(
        False,
        "step i of a warm-up of W steps is at i/W (BERT: the first step has rate 0) instead of "
        "(i+1)/W",
    )
    decay_from: str = setting(
        "warmup",
        "where the decay starts to count: after the warm-up, or at step 0, where the warm-up "
        "hides its beginning (AlexNet, BERT)",
        choices=("warmup", "start"),
    )
    decay_until: str = setting(
        "100%", "where the decay of cosine and polynomial ends", unit="it, ep or %"
    )
    decay_counts_step: bool = setting(
        False,
        "the current step counts as done, so that the last step has the end rate (ResNeXt) and "
        "not the one after it (TensorFlow)",
    )
    per_epoch: bool = setting(
        False, "the decay moves only between epochs (AlexNet); the warm-up always moves"
    )
    end: float = setting(
        0.0, "where the cosines and polynomial end", unit="x base rate", minimum=0.0, maximum=1.0
    )
    after_end: float | None = setting(
        None,
        "rate of the steps past the end of cosine and polynomial; none keeps the end rate",
        unit="x base rate",
        minimum=0.0,
    )
    power: float = setting(1.0, "exponent of polynomial", minimum=0.0)
    cycle: bool = setting(
        False, "polynomial starts again from a longer slope whenever it has ended"
    )
    boundaries: tuple[str, ...] = setting(
        (),
        "last steps of the pieces of `step`; the next value holds from the step after",
        unit="it, ep or %",
    )
    values: tuple[float, ...] = setting(
        (), "rates of the pieces of `step`, one more than boundaries", unit="x base rate"
    )
    rate: float = setting(
        0.94, "factor (exponential) or strength (the other two) of a decay per `every`", minimum=0
    )
    every: str = setting(
        "1ep",
        "unit of time of exponential, natural_exponential and inverse_time; first period of "
        "cosine_restarts",
        unit="it, ep or %",
    )
    staircase: bool = setting(
        False, "the decays per `every` go down in steps of `every` instead of smoothly"
    )
    period_factor: float = setting(
        2.0, "growth of the period at each restart of cosine_restarts", minimum=1.0
    )
    restart_factor: float = setting(
        1.0, "factor on the rate at each restart of cosine_restarts", minimum=0.0
    )

    def check(self) -> None:
        """Rules across the fields, and that each duration is one in steps.

        Raises:
            UserError: A duration that cannot be read or is one on the clock, or pieces of `step`
                whose boundaries and values do not fit.
        """
        durations = {"warmup": self.warmup, "decay_until": self.decay_until, "every": self.every}
        for index, boundary in enumerate(self.boundaries):
            durations[f"boundaries[{index}]"] = boundary
        for name, text in durations.items():
            if parse_duration(text, f"schedule.{name}").seconds is not None:
                raise UserError(
                    f"'{text}' is a time on the clock, and the learning rate follows the step",
                    where=f"schedule.{name}",
                    todo="Give it in steps, epochs or percent, for instance 500it, 3ep or 10%.",
                )
        if self.kind == "step" and len(self.values) != len(self.boundaries) + 1:
            raise UserError(
                f"{len(self.boundaries)} boundaries need {len(self.boundaries) + 1} values, "
                f"not {len(self.values)}",
                where="schedule.values",
                todo="For instance: schedule.boundaries=30ep,60ep schedule.values=1,0.1,0.01",
            )


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """The durations of a schedule in steps."""

    warmup: int
    start: int
    """The step from which the decay counts."""
    span: int
    """Steps from there to the end of the decay."""
    every: int
    boundaries: tuple[int, ...]


def learning_rate(
    settings: ScheduleSettings, base: float, step: int, *, steps_per_epoch: int, total_steps: int
) -> float:
    """The learning rate of a step.

    Args:
        settings: The schedule.
        base: The rate that the schedule multiplies.
        step: The optimizer step, counted from 0.
        steps_per_epoch: Optimizer steps of one pass over the training set.
        total_steps: Optimizer steps of the whole run.

    Returns:
        The rate in float64. The originals compute in float32, so theirs differ by up to 1e-7 of
        the base rate.

    Raises:
        UserError: A duration that cannot be read, or boundaries that do not ascend.
    """
    plan = _plan(settings, steps_per_epoch, total_steps)
    if step < plan.warmup:
        done = (step if settings.warmup_from_zero else step + 1) / plan.warmup
        return base * (done if settings.warmup_kind == "linear" else _cosine(1.0 - done))
    position = step // steps_per_epoch * steps_per_epoch if settings.per_epoch else step
    position = max(position - plan.start, 0)
    return base * _DECAYS[settings.kind](settings, plan, position)


@lru_cache(maxsize=64)
def _plan(settings: ScheduleSettings, steps_per_epoch: int, total_steps: int) -> _Plan:
    def steps(name: str, text: str) -> int:
        return parse_duration(text, f"schedule.{name}").steps(steps_per_epoch, total_steps) or 0

    settings.check()
    warmup = 0 if settings.warmup_kind == "none" else steps("warmup", settings.warmup)
    start = warmup if settings.decay_from == "warmup" else 0
    boundaries = tuple(steps("boundaries", text) for text in settings.boundaries)
    if any(later <= earlier for earlier, later in pairwise(boundaries)):
        raise UserError(
            f"the boundaries {', '.join(settings.boundaries)} are the steps "
            f"{', '.join(map(str, boundaries))}, which are not ascending",
            where="schedule.boundaries",
            todo="Order them, or make the run longer where they are percents.",
        )
    return _Plan(
        warmup=warmup,
        start=start,
        span=steps("decay_until", settings.decay_until) - start,
        every=max(steps("every", settings.every), 1),
        boundaries=tuple(boundary - start for boundary in boundaries),
    )


def _cosine(progress: float) -> float:
    return 0.5 * (1.0 + math.cos(math.pi * progress))


def _until_end(
    settings: ScheduleSettings, plan: _Plan, position: int, shape: Callable[[float], float]
) -> float:
    if position > plan.span and settings.after_end is not None:
        return settings.after_end
    done = position + 1 if settings.decay_counts_step else position
    progress = done / plan.span if plan.span > 0 else 1.0
    if settings.after_end is None:
        # With a rate of its own after the end, ResNeXt's table has one entry past the end that
        # follows the cosine up again; the bound would turn it into the end rate.
        progress = min(progress, 1.0)
    return (1.0 - settings.end) * shape(progress) + settings.end


def _constant(settings: ScheduleSettings, plan: _Plan, position: int) -> float:
    del settings, plan, position
    return 1.0


def _cosine_decay(settings: ScheduleSettings, plan: _Plan, position: int) -> float:
    return _until_end(settings, plan, position, _cosine)


def _polynomial(settings: ScheduleSettings, plan: _Plan, position: int) -> float:
    if settings.cycle and plan.span > 0:
        length = plan.span * max(math.ceil(position / plan.span), 1)
        slope = (1.0 - position / length) ** settings.power
        return (1.0 - settings.end) * slope + settings.end
    return _until_end(settings, plan, position, lambda done: max(1.0 - done, 0.0) ** settings.power)


def _pieces(settings: ScheduleSettings, plan: _Plan, position: int) -> float:
    # As tf.train.piecewise_constant: the boundary step itself still has the old value.
    return settings.values[sum(position > boundary for boundary in plan.boundaries)]


def _periods(settings: ScheduleSettings, plan: _Plan, position: int) -> float:
    return float(position // plan.every) if settings.staircase else position / plan.every


def _exponential(settings: ScheduleSettings, plan: _Plan, position: int) -> float:
    return settings.rate ** _periods(settings, plan, position)


def _natural_exponential(settings: ScheduleSettings, plan: _Plan, position: int) -> float:
    return math.exp(-settings.rate * _periods(settings, plan, position))


def _inverse_time(settings: ScheduleSettings, plan: _Plan, position: int) -> float:
    return 1.0 / (1.0 + settings.rate * _periods(settings, plan, position))


def _cosine_restarts(settings: ScheduleSettings, plan: _Plan, position: int) -> float:
    """Cosine with warm restarts (Loshchilov and Hutter, arXiv 1608.03983), as in tf.train."""
    if settings.period_factor == 1.0:
        restarts, within = divmod(position, plan.every)
        period = float(plan.every)
    else:
        restarts, within, period = 0, float(position), float(plan.every)
        while within >= period:
            within -= period
            period *= settings.period_factor
            restarts += 1
    height = settings.restart_factor**restarts * _cosine(within / period)
    return (1.0 - settings.end) * height + settings.end


_DECAYS: Mapping[str, Callable[[ScheduleSettings, _Plan, int], float]] = {
    "constant": _constant,
    "cosine": _cosine_decay,
    "cosine_restarts": _cosine_restarts,
    "polynomial": _polynomial,
    "step": _pieces,
    "exponential": _exponential,
    "natural_exponential": _natural_exponential,
    "inverse_time": _inverse_time,
}
