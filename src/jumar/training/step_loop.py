"""Running the steps of a run one after another without saving anything.

A step is determined by (state, batch, step number), so the same steps can be trained, observed or
repeated.
"""

import contextlib
from collections.abc import Generator, Iterator, Sequence
from typing import cast

from jumar.data.loading.faults import FaultTally
from jumar.data.loading.loader import resolve_workers, train_batches
from jumar.data.loading.sampler import steps_per_epoch as count_steps_per_epoch
from jumar.data.samples import Batch
from jumar.devices.contract import Device
from jumar.ground.errors import UserError
from jumar.observer import DATA, Observer, Observers
from jumar.precision.policy import PrecisionPolicy
from jumar.tasks.task import Task
from jumar.training.cadence import check_lengths
from jumar.training.checkpoint import Checkpoint
from jumar.training.durations import parse_duration
from jumar.training.explaining import Explainer
from jumar.training.guard import Guard
from jumar.training.parallel.ranks import Ranks
from jumar.training.progress import Console
from jumar.training.settings import Plan
from jumar.training.state import TrainState
from jumar.training.step import Stepper
from jumar.training.throughput import StepClock


class StepLoop:
    """Trains step after step.

    Args:
        task: What to train.
        plan: How to train it.
        device: The device to train on.
        ranks: The processes of the run.
        console: Prints lines about the steps.
        policy: The precision of the passes.
        observers: Observers of the steps.

    Attributes:
        state: The state that the steps change.
        total_steps: Steps of the whole run; None if it ends by the clock.
        tally: The unreadable samples that this rank has skipped.
        clock: Measures the time of steps.
    """

    def __init__(
        self,
        task: Task,
        plan: Plan,
        *,
        device: Device,
        ranks: Ranks,
        console: Console,
        policy: PrecisionPolicy,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.task, self.plan, self.device, self.ranks = task, plan, device, ranks
        self.console, self.policy = console, policy
        self._observers = Observers(observers)
        self.steps_per_epoch = count_steps_per_epoch(
            len(task.train_data), plan.batch_size * ranks.world
        )
        duration = parse_duration(plan.training.duration, field="training.duration")
        self.total_steps = duration.steps(self.steps_per_epoch, None)
        self._time_limit_s = duration.seconds
        check_lengths(plan, self.total_steps)
        self.state = TrainState(task, plan, device, ranks, policy)
        self.workers = resolve_workers(
            plan.workers, local_world=ranks.local_world, on_cpu=device.on_host
        )
        self.tally = FaultTally(plan.skip_corrupt)
        self.clock = StepClock(plan.batch_size * ranks.world)
        names = [objective.name for objective in task.objectives]
        self._guard = Guard(names, device.torch, ranks)
        self._stepper = Stepper(
            self.state,
            plan,
            ranks,
            self._guard,
            steps_per_epoch=self.steps_per_epoch,
            total_steps=self.total_steps or 0,
            observers=self._observers,
            explainer=self._explainer() if plan.training.explain_overflow else None,
        )

    @property
    def is_blocked(self) -> bool:
        """Whether an unrecoverable value blocks all updates; waits for the device."""
        return bool(self._guard.blocked.item())

    def observe(self, checkpoint: Checkpoint | None) -> None:
        """Run as many steps as the observers need, without saving anything.

        Args:
            checkpoint: The checkpoint to start from; None for the task's initial weights.

        Raises:
            UserError: The checkpoint belongs to another network, or the data cannot be read.
        """
        if checkpoint is not None:
            self.state.restore(checkpoint)
        num_steps = sum(1 for _ in self.each_step(self._observers.span))
        if num_steps < self._observers.span:
            raise UserError("the data ended before the last step", where="data.path")

    def each_step(self, count: int) -> Generator[None]:
        """Train some steps without saving anything; yields after each.

        Args:
            count: Number of steps; fewer are trained if the data ends.
        """
        self._set_training()
        with contextlib.closing(self._loader(self.state.step + count)) as loader:
            batches = iter(self.device.copy_ahead(loader))
            with contextlib.closing(self._steps(batches, next(batches, None))) as steps:
                yield from steps

    @contextlib.contextmanager
    def at_step(self, step: int, checkpoint: Checkpoint | None) -> Generator[tuple[Stepper, Batch]]:
        """Context in which a step's passes can be repeated, without saving anything.

        Args:
            step: The step, counted from 0; the steps before it are trained.
            checkpoint: The checkpoint to start from; None for the task's initial weights.

        Yields:
            The stepper, which runs the passes, and the step's batch.

        Raises:
            UserError: The checkpoint belongs to another network, or the data cannot be read.
        """
        if checkpoint is not None:
            self.state.restore(checkpoint)
        self._set_training()
        with contextlib.closing(self._loader(step + 1)) as loader:
            batches = iter(self.device.copy_ahead(loader))
            for batch in batches:
                if self.state.step == step:
                    self.state.unfreeze_if_due()
                    yield self._stepper, batch
                    return
                self._stepper.step(batch)
        raise UserError("the data ended before the last step", where="data.path")

    def _steps(self, batches: Iterator[Batch], batch: Batch | None) -> Generator[None]:
        """Train on one batch after another with observers; yields after each step."""
        observers = self._observers
        with observers.around():
            observers.begin_step(self.state.step)
            while batch is not None:
                self._stepper.step(batch)
                observers.end_step()
                yield
                observers.begin_step(self.state.step)
                with self.clock.waiting_for_data(), observers.phase(DATA):
                    batch = next(batches, None)

    def _loader(self, last_step: int) -> Generator[Batch]:
        """The batches of this rank from the current step on; close the generator when done."""
        batches = train_batches(
            self.task.train_data,
            seed=self.plan.seed,
            first_step=self.state.step,
            last_step=last_step,
            batch_per_rank=self.plan.batch_size,
            rank=self.ranks.rank,
            world=self.ranks.world,
            workers=self.workers,
            prefetch=self.plan.prefetch,
            tally=self.tally,
        )
        return cast("Generator[Batch]", batches)

    def _explainer(self) -> Explainer:
        rank_console = self.console if self.ranks.is_first else Console()
        return Explainer(
            self.state, self._guard, self.ranks, say=self.console.line, say_here=rank_console.line
        )

    def _set_training(self) -> None:
        for objective in self.task.objectives:
            objective.train()
        self.task.model.train()
        if self.state.frozen is not None:
            self.state.frozen.set_modes()
