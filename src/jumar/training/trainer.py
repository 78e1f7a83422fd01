"""The trainer: one loop for every task on every device.

A step is a pure function of (state, batch, step number); all that happens between steps - log
lines, evaluation, checkpoints, stopping - happens in `_between_steps`.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from jumar.data.faults import FaultTally
from jumar.data.loader import resolve_workers, train_batches
from jumar.data.sampler import steps_per_epoch as count_steps_per_epoch
from jumar.data.samples import Batch
from jumar.device import Device, copy_ahead, memory_peak_bytes, synchronize
from jumar.errors import UserError
from jumar.precision.policy import PrecisionPolicy
from jumar.tasks.task import Task
from jumar.training.cadence import Cadence, Moments, check_lengths
from jumar.training.checkpoint import (
    Checkpoint,
    best_checkpoint,
    drop_checkpoints,
    list_checkpoints,
    note_metrics,
    write_checkpoint,
)
from jumar.training.distribution import (
    Agreement,
    Ranks,
    share_buffers,
    wait_for_ranks,
)
from jumar.training.durations import parse_duration
from jumar.training.evaluation import Interrupted, evaluate
from jumar.training.events import EvaluationRecord, Events, TrainRecord, create_events
from jumar.training.guard import Guard, NonFiniteLoss
from jumar.training.progress import Bar, Console
from jumar.training.rehearsal import (
    announcement,
    check_disk,
    checkpoint_bytes,
    rehearse,
    size_text,
)
from jumar.training.results import Outcome, write_results
from jumar.training.run_directory import RunDirectory
from jumar.training.settings import Plan
from jumar.training.signals import StopRequest
from jumar.training.state import TrainState
from jumar.training.step import Stepper
from jumar.training.throughput import WARM_UP_STEPS, StepClock

_FAR = 1 << 60
"""The last step of a run that ends by the clock."""
_LOSS = "the loss is not finite and there is no loss scale that could mend it"
_FLOOR = "the loss scale is at its floor of 1 and gradients still overflow"


class Trainer:
    """One run of one recipe.

    Args:
        task: What is trained.
        plan: How.
        device: Where.
        ranks: Which of how many processes.
        run: Where everything goes.
        console: What a person sees.
        stop: Whether somebody asked to stop.
        versions: For the results.
    """

    def __init__(
        self,
        task: Task,
        plan: Plan,
        *,
        device: Device,
        ranks: Ranks,
        run: RunDirectory,
        console: Console,
        stop: StopRequest,
        policy: PrecisionPolicy,
        versions: Mapping[str, Any],
    ) -> None:
        self.task, self.plan, self.device, self.ranks = task, plan, device, ranks
        self.run, self.console, self.stop = run, console, stop
        self.policy, self._versions = policy, versions
        self.steps_per_epoch = count_steps_per_epoch(
            len(task.train_data), plan.batch_size * ranks.world
        )
        duration = parse_duration(plan.training.duration, field="training.duration")
        self.total_steps = duration.steps(self.steps_per_epoch, None)
        self._time_limit_s = duration.seconds
        check_lengths(plan, self.total_steps)
        self.state = TrainState(task, plan, device, ranks, policy)
        self.workers = resolve_workers(
            plan.workers, local_world=ranks.local_world, on_cpu=device.kind == "cpu"
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
        )
        self._cadence = Cadence(plan, self.steps_per_epoch, self.total_steps)
        self._agreement = Agreement(ranks, Moments.SIZE)
        self._started = time.monotonic()
        self._elapsed_before = 0.0
        self._scores: dict[int, Mapping[str, float]] = {}
        self._train_loss: float | None = None
        self._eval_samples: int | None = None

    def resume(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint of this run.

        Raises:
            UserError: The batch or the data changed, so the order of samples would not be the
                same.
        """
        now = self._batch_identity()
        changed = [
            name for name, value in now.items() if checkpoint.batch.get(name, value) != value
        ]
        if changed:
            name = changed[0]
            raise UserError(
                f"the {name.replace('_', ' ')} was {checkpoint.batch[name]}, now {now[name]}: "
                "the order of samples would not be the same",
                where=str(checkpoint.path),
                todo="Resume with the same data, batch and number of ranks (batch size times "
                "ranks), or start a new run with transfer.start_from.",
            )
        self.state.restore(checkpoint)
        self._elapsed_before = self.state.elapsed_s
        if checkpoint.metrics:
            self._scores[checkpoint.step] = checkpoint.metrics

    def train(self, *, dry_run: bool = False) -> Outcome:
        """Train to the end, or until stopped.

        Args:
            dry_run: Stop after the first batch has been looked at and one step rehearsed.
        """
        for objective in self.task.objectives:
            objective.train()
        self.task.model.train()
        batches = self._batches()
        try:
            first = next(batches, None)
            if first is not None:
                self._announce(first)
            if dry_run:
                return Outcome(state="finished", step=self.state.step, exit_code=0, metrics={})
            if self.ranks.is_first:
                self.run.cut_metrics(self.state.step)
            with self._events() as events:
                outcome = self._run(events, batches, first)
        finally:
            batches.close()
        self._write_results(outcome)
        return outcome

    def _announce(self, batch: Batch) -> None:
        """Check the disk, rehearse a step and say what the run will take."""
        size = checkpoint_bytes(self.state, self.plan)
        kept = self.plan.checkpoints.keep + int(self.plan.checkpoints.keep_best)
        there = len(list_checkpoints(self.run.checkpoints))
        check_disk(self.run.path, size * max(kept + 1 - there, 1))
        found = rehearse(self._stepper, batch, self.device)
        for line in announcement(
            batch,
            found,
            samples=len(self.task.train_data),
            steps_per_epoch=self.steps_per_epoch,
            done_steps=self.state.step,
            total_steps=self.total_steps,
            checkpoints=f"{size_text(size)} each, at most {kept} kept",
        ):
            self.console.line(line)

    def _run(self, events: Events, batches: Iterator[Batch], first: Batch | None) -> Outcome:
        try:
            stopped = self._loop(events, batches, first)
            if not stopped:
                self._finish(events)
        except NonFiniteLoss as failure:
            self.console.line(f"stopped before the update: {failure}")
            return Outcome(
                state="failed", step=failure.step - 1, exit_code=3, metrics={}, failure=failure
            )
        except Interrupted:
            stopped = self.stop.exit_code
        metrics = self._scores.get(self.state.step, {})
        if stopped:
            self._save()
            self.console.line(
                f"stopped after step {self.state.step}; the checkpoint is saved. "
                f"Go on with: jumar train --resume --run-dir {_quoted(str(self.run))}"
            )
            return Outcome(
                state="interrupted", step=self.state.step, exit_code=stopped, metrics=metrics
            )
        return Outcome(state="finished", step=self.state.step, exit_code=0, metrics=metrics)

    def _loop(self, events: Events, batches: Iterator[Batch], batch: Batch | None) -> int:
        """Steps until the end (returns 0) or a stop (returns the exit code)."""
        total = self.total_steps or 0
        self._started = time.monotonic()
        warm_up_ends = self.state.step + WARM_UP_STEPS
        self.clock.drop_window()
        with self.console.bar("training", total, self.state.step) as bar:
            while batch is not None:
                self._stepper.step(batch)
                self.clock.step()
                if self.state.step == warm_up_ends:
                    synchronize(self.device)
                    self.clock.drop_window()
                stopped = self._between_steps(events, bar, warmed_up=self.state.step > warm_up_ends)
                if stopped is not None:
                    return stopped
                with self.clock.waiting_for_data():
                    batch = next(batches, None)
        self._agreement.finish()
        return 0

    def _between_steps(self, events: Events, bar: Bar, *, warmed_up: bool) -> int | None:
        """All that is due after a step; the exit code where the run stops here, else None."""
        self.state.elapsed_s = self._elapsed_before + time.monotonic() - self._started
        bar.show(self.state.step)
        if self.device.kind == "cpu":
            self._guard.raise_if_blocked(self._reason())
        wish = self._cadence.moments(
            self.state.step, self.state.elapsed_s, signal=self.stop.signal, limit=self._time_limit_s
        )
        due = wish.agreed(self._agreement)
        if due.log:
            self._log(events, warmed_up=warmed_up)
        with self.clock.paused():
            improved = False
            if due.evaluate and self.task.eval_data is not None:
                improved = self._evaluate(events)
            if due.checkpoint or (improved and self.plan.checkpoints.keep_best):
                self._save()
        if due.signal:
            self._agreement.finish()
            return 128 + due.signal
        return 0 if due.ends else None

    def _log(self, events: Events, *, warmed_up: bool) -> None:
        """Read the sums of the window from the device and write a line."""
        window = self.state.take_window(self.ranks)
        self._guard.raise_if_blocked(self._reason())
        if window is None:
            return
        pace = self.clock.close_window() if warmed_up else None
        scale = self.policy.loss_scale
        self._train_loss = sum(window.losses.values())
        events.write(
            TrainRecord(
                step=self.state.step,
                epoch=self.state.step / self.steps_per_epoch,
                fps=None if pace is None else pace.samples_per_second,
                losses=window.losses,
                total_losses=window.total_losses,
                terms=window.terms,
                learning_rates=window.learning_rates,
                step_ms=None if pace is None else pace.step_ms,
                data_ms=None if pace is None else pace.data_ms,
                loss_scale=None if scale is None else scale.scale.item(),
                skipped_steps=self.state.skipped_steps,
                elapsed_s=self.state.elapsed_s,
            )
        )

    def _evaluate(self, events: Events) -> bool:
        """Score the present weights; returns whether they are the best so far."""
        share_buffers(self.task.model, self.ranks)
        with self.state.scored_weights() as weights:
            scores = evaluate(
                self.task,
                self.policy,
                device=self.device,
                ranks=self.ranks,
                batch_size=self.plan.eval_batch_size,
                workers=self.workers,
                tally=self.tally,
                console=self.console,
                stop=self.stop,
            )
        self._eval_samples = scores.samples
        headline = self.task.headline
        sign = 1.0 if headline.higher_is_better else -1.0
        value = scores.metrics[headline.name]
        earlier = [known[headline.name] for known in self._scores.values()]
        self._scores[self.state.step] = scores.metrics
        events.write(
            EvaluationRecord(
                step=self.state.step,
                epoch=self.state.step / self.steps_per_epoch,
                metrics=scores.metrics,
                weights=weights,
                seconds=scores.seconds,
            )
        )
        return all(sign * value > sign * other for other in earlier)

    def _finish(self, events: Events) -> None:
        """The last evaluation and the last checkpoint, unless the last step made them."""
        self._guard.raise_if_blocked(self._reason())
        if self.task.eval_data is not None and self.state.step not in self._scores:
            self._evaluate(events)
        self._save()

    def _save(self) -> None:
        """Write a checkpoint of the present step, with its scores if it has some."""
        share_buffers(self.task.model, self.ranks)
        directory, step = self.run.checkpoints, self.state.step
        if self.ranks.is_first and step > 0:
            self._guard.raise_if_blocked(self._reason())
            there = [c for c in list_checkpoints(directory) if c.step == step]
            checkpoint = (
                there[0]
                if there
                else write_checkpoint(
                    directory,
                    step=step,
                    epoch=step / self.steps_per_epoch,
                    model=self.task.model.state_dict(),
                    ema=None if self.state.ema is None else self.state.ema.state_dict(),
                    state=self.state.capture(),
                    batch=self._batch_identity(),
                )
            )
            if step in self._scores:
                note_metrics(checkpoint, self._scores[step])
            headline = self.task.headline
            drop_checkpoints(
                directory,
                keep=self.plan.checkpoints.keep,
                keep_best=self.plan.checkpoints.keep_best,
                headline=(headline.name, headline.higher_is_better),
            )
        wait_for_ranks(self.ranks)

    def _batch_identity(self) -> dict[str, int]:
        """What fixes the order of samples."""
        return {
            "global_batch_size": self.plan.batch_size * self.ranks.world,
            "epoch_size": len(self.task.train_data),
            "seed": self.plan.seed,
        }

    def _batches(self) -> Any:
        batches = train_batches(
            self.task.train_data,
            seed=self.plan.seed,
            first_step=self.state.step,
            last_step=self.total_steps or _FAR,
            batch_per_rank=self.plan.batch_size,
            rank=self.ranks.rank,
            world=self.ranks.world,
            workers=self.workers,
            tally=self.tally,
        )
        return _closing(copy_ahead(batches, self.device), batches)

    def _events(self) -> Events:
        if not self.ranks.is_first:
            return Events([])
        return create_events(self.run, self.console, first_step=self.state.step)

    def _reason(self) -> str:
        return _LOSS if self.policy.loss_scale is None else _FLOOR

    def _write_results(self, outcome: Outcome) -> None:
        if not self.ranks.is_first:
            return
        headline = self.task.headline
        write_results(
            self.run,
            outcome,
            plan=self.plan,
            device=self.device,
            ranks=self.ranks,
            policy=self.policy,
            clock=self.clock,
            headline=headline,
            best=best_checkpoint(
                list_checkpoints(self.run.checkpoints), (headline.name, headline.higher_is_better)
            ),
            versions=self._versions,
            skipped_steps=self.state.skipped_steps,
            train_loss=self._train_loss,
            eval_samples=self._eval_samples,
            memory_peak_bytes=memory_peak_bytes(self.device),
            elapsed_s=self.state.elapsed_s,
        )


def _closing(batches: Iterator[Batch], source: Any) -> Iterator[Batch]:
    """The batches; closing this closes the loader behind them, so that no worker stays."""
    try:
        yield from batches
    finally:
        source.close()


def _quoted(text: str) -> str:
    return f"'{text}'" if " " in text else text
