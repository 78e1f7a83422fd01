"""The actions due after a step (log line, evaluation, checkpoint, end), agreed by all ranks."""

from dataclasses import dataclass

from jumar.ground.errors import UserError
from jumar.training.durations import EXAMPLES, Duration, is_due, parse_duration
from jumar.training.parallel.ranks import Agreement
from jumar.training.settings import Plan


@dataclass(frozen=True, kw_only=True)
class Moments:
    """What is due after a step as seen by one rank.

    Attributes:
        by_step: Whether a log line, evaluation and checkpoint are due by the step count, which is
            the same on all ranks.
        signal: Number of the signal that requested a stop, or 0.
        clock_ends: Whether the run's time is up.
        clock: Whether a log line, evaluation and checkpoint are due by this rank's clock.
    """

    SIZE = 5

    by_step: tuple[bool, bool, bool]
    is_last: bool
    signal: int
    clock_ends: bool
    clock: tuple[bool, bool, bool]

    def agreed(self, agreement: Agreement) -> "Due":
        """The actions that all ranks take now."""
        signal, ends, *clock = agreement.exchange(
            [self.signal, int(self.clock_ends), *(int(due) for due in self.clock)]
        )
        stops = bool(signal or ends)
        log, evaluates, saves = (
            by_step or bool(by_clock) for by_step, by_clock in zip(self.by_step, clock, strict=True)
        )
        return Due(
            log=log or stops or self.is_last,
            closes_window=log,
            evaluate=evaluates and not stops and not self.is_last,
            checkpoint=saves and not stops and not self.is_last,
            signal=signal,
            ends=bool(ends),
        )


@dataclass(frozen=True, kw_only=True)
class Due:
    """The actions to take now, the same on every rank.

    Attributes:
        closes_window: Whether a log line is due by its interval. The line of a run that stops or
            ends does not close the window, so that a resumed run has the same lines as one that
            never stopped.
    """

    log: bool
    closes_window: bool
    evaluate: bool
    checkpoint: bool
    signal: int
    ends: bool


class Cadence:
    """The intervals of a plan, in steps or wall-clock time."""

    def __init__(self, plan: Plan, steps_per_epoch: int, total_steps: int | None) -> None:
        texts = _intervals(plan)
        self._total = total_steps
        self._keeps_best = plan.checkpoints.keep_best
        self._every: list[Duration | None] = [
            parse_duration(text, field=field) if text else None for field, text in texts.items()
        ]
        self._steps = [
            None if every is None else _steps(every, field, steps_per_epoch, total_steps)
            for field, every in zip(texts, self._every, strict=True)
        ]
        self._next_s: list[float | None] = [None, None, None]

    def moments(self, step: int, elapsed_s: float, *, signal: int, limit: float | None) -> Moments:
        """What is due by the step and by this rank's clock.

        Args:
            step: Finished steps.
            elapsed_s: Seconds of training so far, over all starts.
            signal: Number of the signal that requested a stop, or 0.
            limit: Seconds after which the run ends, or None.
        """
        log, evaluates, saves = (every is not None and is_due(step, every) for every in self._steps)
        return Moments(
            by_step=(log, evaluates, saves),
            is_last=step == self._total,
            signal=signal,
            clock_ends=limit is not None and elapsed_s >= limit,
            clock=self._due_by_clock(elapsed_s),
        )

    def is_evaluation_due(self, step: int) -> bool:
        """Whether an evaluation is due after a step by the step count."""
        return is_due(step, self._steps[1])

    def max_checkpoints(self, step: int) -> int | None:
        """Maximum number of checkpoints written after a step; None if it depends on the clock."""
        if self._total is None:
            return None
        _, evaluations, saves = zip(self._every, self._steps, strict=True)
        count = 1
        for every, steps in (evaluations, saves) if self._keeps_best else (saves,):
            if every is not None and every.seconds:
                return None
            count += self._total // steps - step // steps if steps else 0
        return count

    def _due_by_clock(self, elapsed_s: float) -> tuple[bool, bool, bool]:
        due = [False, False, False]
        for index, every in enumerate(self._every):
            seconds = None if every is None else every.seconds
            if not seconds:
                continue
            next_s = self._next_s[index]
            due[index] = next_s is not None and elapsed_s >= next_s
            if next_s is None or due[index]:
                self._next_s[index] = elapsed_s + seconds
        return due[0], due[1], due[2]


def check_durations(plan: Plan) -> None:
    """Check the notation of a run's length and intervals, which needs neither data nor device.

    Raises:
        UserError: One is not a duration.
    """
    for field, text in {"training.duration": plan.training.duration, **_intervals(plan)}.items():
        if text or field == "training.duration":
            parse_duration(text, field=field)


def check_lengths(plan: Plan, total_steps: int | None) -> None:
    """Reject a run of zero length, and a schedule that needs an unknown run length.

    Raises:
        UserError: The run has no steps; or it ends by the clock, and the learning rate depends on
            its unknown number of steps.
    """
    duration = plan.training.duration
    if parse_duration(duration, field="training.duration").amount == 0:
        raise UserError(
            f"a run of {duration} trains nothing", where="training.duration", todo=EXAMPLES
        )
    for name, chosen in plan.optimization.items():
        shares = [
            f"schedule.{field}={text}" for field, text in chosen.schedule.lengths() if "%" in text
        ]
        if total_steps is None and shares:
            raise UserError(
                f"a run of {duration} has no known number of steps, but the learning rate of "
                f"'{name}' depends on it ({', '.join(shares)})",
                where="training.duration",
                todo="Set the duration in steps or epochs, or use schedule=constant.",
            )


def _intervals(plan: Plan) -> dict[str, str]:
    """The intervals of a plan by their field."""
    return {
        "training.log_every": plan.training.log_every,
        "training.evaluate_every": plan.training.evaluate_every,
        "checkpoints.every": plan.checkpoints.every,
    }


def _steps(
    every: Duration, field: str, steps_per_epoch: int, total_steps: int | None
) -> int | None:
    try:
        return every.steps(steps_per_epoch, total_steps)
    except UserError as error:
        raise UserError(error.what, where=field, todo=error.todo) from None
