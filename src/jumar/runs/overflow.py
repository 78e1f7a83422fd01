"""Find the op behind a non-finite value, or those close to overflowing: `jumar precision
overflow`.

The recipe is trained without recording until a bad step, which is then repeated with every op
recorded: steps are reproducible bit for bit.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.observer import Observer
from jumar.precision.dumps.dump import Dump
from jumar.precision.dumps.ours import find_dumps, read_dump
from jumar.precision.loss_scale import LossScale
from jumar.precision.overflow.head_room import HeadRoom, Vanishing, head_room, vanishing
from jumar.precision.overflow.origin import Origin, origin_of
from jumar.precision.recording.recorder import RecordSettings
from jumar.runs.context import RunContext, open_context
from jumar.runs.dump import DumpRequest, chosen_run, dump_recipe
from jumar.runs.observed_steps import (
    ChosenStart,
    SourceRequest,
    check_step,
    observing_trainer,
    starting_task,
)
from jumar.training.progress import Console


@dataclass(frozen=True, kw_only=True)
class OverflowRequest(SourceRequest):
    """The options of `jumar precision overflow`.

    Attributes:
        steps: Number of steps to try.
        first: The step to begin with; None for the newest checkpoint, or 0 without one.
        to: Folder for the dump; by default the next free `dumps/NAME-N`.
    """

    steps: int = 20
    first: int | None = None
    to: Path | None = None


@dataclass(frozen=True, kw_only=True)
class OverflowReport:
    """The result of the steps.

    Attributes:
        step: The recorded step, counted from 0: the first bad one, or the last one tried.
        loss_scale: The loss scale in that step; None if there is none.
        is_bad: Whether the step's loss or a gradient was not finite.
        origins: The origin of non-finite values, by rank.
        head_room: Head room of the first rank's ops, smallest first.
        vanishing: Layers of the first rank whose gradients vanish, worst first.
        dump: The folder of the dump.
    """

    step: int
    loss_scale: float | None
    is_bad: bool
    origins: dict[int, Origin]
    head_room: Sequence[HeadRoom]
    vanishing: Sequence[Vanishing]
    dump: Path


class _LastStep(Exception):
    """Raised to end the training."""


class _Watch(Observer):
    """End the training at the first skipped update, or after the last step to try."""

    def __init__(self, span: int, scale: LossScale | None) -> None:
        self.span = span
        self._scale = scale
        self._skipped = 0
        self.until = 0
        self.is_blocked: Callable[[], bool] = lambda: False
        self.is_bad = False
        self.step = 0
        self.loss_scale: float | None = None

    def begin_step(self, step: int) -> None:
        """See `Observer.begin_step`."""
        self.step = step
        if self._scale is not None:
            self.loss_scale = self._scale.scale.item()
            self._skipped = self._scale.skipped.item()

    def end_step(self) -> None:
        """See `Observer.end_step`."""
        is_skipped = self._scale is not None and self._scale.skipped.item() > self._skipped
        self.is_bad = is_skipped or self.is_blocked()
        if self.is_bad or self.step + 1 >= self.until:
            raise _LastStep


def find_overflow(request: OverflowRequest, report: Callable[[OverflowReport], None]) -> int:
    """Train until a value is not finite and analyse that step, without changing the run.

    Args:
        request: The recipe or run, and the steps.
        report: Called with the result on the first rank.

    Returns:
        The exit code: 1 if a step was bad.

    Raises:
        UserError: There is no such recipe, run or step, or nothing can be written.
    """
    if request.steps < 1:
        raise UserError(f"{request.steps} steps", where="--steps", todo="Allowed: 1 or more.")
    dump_request = DumpRequest(
        what=request.what,
        steps=() if request.first is None else (request.first,),
        settings=RecordSettings(),
        assignments=request.assignments,
        imports=request.imports,
        to=request.to,
        device=request.device,
    )
    with open_context(
        lambda ranks: chosen_run(dump_request, ranks), device=request.device, writes=False
    ) as context:
        watch = _trained(request, context)
        folder = context.run.path

    def report_dumps(dump_folder: Path, console: Console) -> None:
        del console
        dumps = [read_dump(dump.folder) for dump in find_dumps(dump_folder)]
        report(_report(dumps, watch, dump_folder))

    dump_recipe(replace(dump_request, steps=(watch.step,), to=folder), report_dumps)
    return int(watch.is_bad)


def _trained(request: OverflowRequest, context: RunContext[ChosenStart]) -> _Watch:
    """Train up to the first bad step, or all steps to try."""
    chosen = context.chosen
    first = chosen.first if request.first is None else request.first
    watch = _Watch(first - chosen.first + request.steps, context.policy.loss_scale)
    plan = chosen.plan
    task = starting_task(context, chosen.checkpoint)
    context.print_first_line(plan.batch_size)
    context.ranks.wait()
    trainer = observing_trainer(context, task, plan, [watch], Console(silent=True))
    check_step(trainer, first, "--first")
    watch.is_blocked = lambda: trainer.is_blocked
    watch.until = chosen.first + watch.span
    if trainer.total_steps is not None:
        watch.until = min(watch.until, trainer.total_steps)
    context.console.line(f"training from step {chosen.first}, to step {watch.until - 1} at most")
    with suppress(_LastStep):
        trainer.observe(chosen.checkpoint)
    return watch


def _report(dumps: Sequence[Dump], watch: _Watch, folder: Path) -> OverflowReport:
    origins = {dump.rank or 0: origin for dump in dumps if (origin := origin_of(dump)) is not None}
    return OverflowReport(
        step=watch.step,
        loss_scale=watch.loss_scale,
        is_bad=watch.is_bad,
        origins=origins,
        head_room=head_room(dumps[0]),
        vanishing=vanishing(dumps[0]),
        dump=folder,
    )
