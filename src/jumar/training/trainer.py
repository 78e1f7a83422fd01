"""The trainer: one loop for every task on every device.

A step is determined by (state, batch, step number); everything between steps (log lines,
evaluation, checkpoints, stopping) happens in `_between_steps`.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jumar.data.samples import Batch
from jumar.devices.contract import Device
from jumar.devices.native_messages import names_in_messages
from jumar.ground.errors import UserError
from jumar.ground.text import size_text
from jumar.observer import COMMUNICATION, Observer
from jumar.precision.policy import PrecisionPolicy
from jumar.tasks.task import Task
from jumar.training.cadence import Cadence, Moments
from jumar.training.checkpoint import Checkpoint, NotWrittenError
from jumar.training.early_stopping import check_early_stopping
from jumar.training.evaluation import Interrupted, Scores, evaluate
from jumar.training.freezing import parameter_lines
from jumar.training.guard import NonFiniteLoss
from jumar.training.illustrations import save_illustrations
from jumar.training.keeper import CheckpointKeeper
from jumar.training.optimizers.layer_rates import factor_lines
from jumar.training.parallel.ranks import Ranks
from jumar.training.progress import Bar, Console
from jumar.training.rehearsal import (
    announcement,
    check_disk,
    check_memory,
    checkpoint_bytes,
    fallback_note,
    rehearse,
)
from jumar.training.results import Outcome, write_results
from jumar.training.resume_hint import resume_hint
from jumar.training.run_directory import RunDirectory
from jumar.training.settings import Plan
from jumar.training.signals import StopRequest
from jumar.training.skipped_updates import SkipWatch, ended
from jumar.training.step_loop import StepLoop
from jumar.training.throughput import WARM_UP_STEPS
from jumar.training.trackers.chosen import create_trackers
from jumar.training.trackers.records import EvaluationRecord, train_record

_NO_LAST_STEP = 1 << 60  # the last step of a run that ends by the clock
_LOSS = "the loss is not finite and there is no loss scale to recover with"
_FLOOR = "the loss scale is at its floor of 1 and gradients still overflow"


class Trainer(StepLoop):
    """One run of one recipe.

    Args:
        task: What to train.
        plan: How to train it.
        device: The device to train on.
        ranks: The processes of the run.
        run: The run directory.
        console: Prints to the terminal and the log.
        stop: Whether a stop of the run has been requested.
        policy: The precision of the passes.
        versions: Versions recorded in the results.
        observers: Observers of the steps.
        asked_device: The value of `--device`, for the command that resumes the run.

    Attributes:
        unreadable: The unreadable samples skipped by all ranks, once the run has ended.
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
        observers: Sequence[Observer] = (),
        asked_device: str = "auto",
    ) -> None:
        trackers = create_trackers(run, console) if ranks.is_first else []
        super().__init__(
            task,
            plan,
            device=device,
            ranks=ranks,
            console=console,
            policy=policy,
            observers=[*observers, *trackers],
        )
        check_early_stopping(plan, has_eval_data=task.eval_data is not None)
        self.run, self.stop = run, stop
        self._versions, self._asked_device = versions, asked_device
        self._cadence = Cadence(plan, self.steps_per_epoch, self.total_steps)
        self._agreement = ranks.agreement(Moments.SIZE)
        self._started = time.monotonic()
        self._elapsed_before = 0.0
        self._keeper = CheckpointKeeper(
            run,
            plan,
            ranks,
            task.headline,
            epoch_size=len(task.train_data),
            steps_per_epoch=self.steps_per_epoch,
        )
        self._reason = _LOSS if policy.loss_scale is None else _FLOOR
        self.unreadable: list[str] = []
        self._reported = 0
        self._train_loss: float | None = None
        self._scores: Scores | None = None

    def resume(self, checkpoint: Checkpoint) -> None:
        """Resume from a checkpoint of this run.

        Raises:
            UserError: The batch or the data changed, so the order of samples would differ; or the
                run has already passed the requested duration.
        """
        self._keeper.resume_from(checkpoint, total_steps=self.total_steps)
        self.state.restore(checkpoint)
        scores = self._keeper.scores.get(checkpoint.step)
        if self.state.early is not None and scores is not None:
            # An evaluation after the state was captured.
            self.state.early.count(checkpoint.step, scores)
        self._elapsed_before = self.state.elapsed_s

    def train(self, *, dry_run: bool = False, begin: Callable[[], None] = lambda: None) -> Outcome:
        """Train to the end, or until a stop is requested.

        Args:
            dry_run: Whether to stop after loading the first batch and rehearsing one step.
            begin: Called after all checks before the first step; a mistake found by them leaves no
                files.
        """
        self._set_training()
        # Closing the loader ends its workers, however the run ends.
        with (
            contextlib.closing(self._keeper),
            contextlib.closing(self._loader(self.total_steps or _NO_LAST_STEP)) as loader,
        ):
            batches = iter(self.device.copy_ahead(loader))
            first = next(batches, None)
            if first is not None:
                self._announce(first)
            if dry_run:
                outcome = Outcome(state="finished", step=self.state.step, exit_code=0, metrics={})
            else:
                begin()
                if self.ranks.is_first:
                    # If this process is killed, the earlier results must not count as its own.
                    self.run.results.unlink(missing_ok=True)
                    self.run.cut_metrics(self.state.step)
                with self._observers.recording(self.state.step):
                    outcome = self._run(batches, first)
        self.unreadable = self.ranks.texts([str(fault) for fault in self.tally.faults])
        if not dry_run:
            self._write_results(outcome)
        return outcome

    def _announce(self, batch: Batch) -> None:
        """Check memory and disk, rehearse a step and print what the run will need."""
        self._observers.check(
            None if self.total_steps is None else self.total_steps - self.state.step
        )
        for line in self._parameter_lines():
            self.console.line(line)
        size = checkpoint_bytes(self.state, self.plan)
        check_memory(self.state, self.device, size)
        max_new = self._cadence.max_checkpoints(self.state.step)
        check_disk(self.run.path, size * self._keeper.max_new(max_new))
        compiles = self.plan.training.compile
        with names_in_messages(self.device.fallback_message) as fallbacks:
            rehearsal = rehearse(self._stepper, batch, self.device, self.ranks, compiles=compiles)
        for line in announcement(
            batch,
            rehearsal,
            samples=len(self.task.train_data),
            steps_per_epoch=self.steps_per_epoch,
            done_steps=self.state.step,
            total_steps=self.total_steps,
            checkpoints=f"{size_text(size)} each, at most {self._keeper.max_kept} kept",
            fallback_note=fallback_note(fallbacks, self.device),
        ):
            self.console.line(line)

    def _parameter_lines(self) -> list[str]:
        lines = parameter_lines(self.task.model, self.plan.transfer, self.state.frozen)
        return lines + [line for lane in self.state.lanes for line in factor_lines(lane.factors)]

    def _run(self, batches: Iterator[Batch], first: Batch | None) -> Outcome:
        try:
            try:
                self._catch_up()
                exit_code = 0 if self._stopped_early else self._loop(batches, first)
                if not exit_code:
                    self._finish()
            except Interrupted:
                exit_code = self.stop.exit_code
            if exit_code:
                self._save()
            self._keeper.finish()
        except NonFiniteLoss as failure:
            self.console.line(f"stopped before the update: {failure}")
            return Outcome(
                state="failed", step=failure.step - 1, exit_code=3, metrics={}, failure=failure
            )
        except NotWrittenError:
            raise
        except UserError as error:
            raise self._saved_before(error) from None
        step = self.state.step
        metrics = self._keeper.scores.get(step, {})
        if exit_code:
            self.console.line(
                f"stopped after step {step}; the checkpoint is saved. " + self._resume_hint()
            )
            return Outcome(state="interrupted", step=step, exit_code=exit_code, metrics=metrics)
        if self._stopped_early:
            self.console.line(
                f"stopped early after step {step}: {self._stopped_early} (to continue: raise "
                "early_stopping.patience, or set it to 0)"
            )
        return replace(ended(self.state, metrics), stopped_early=self._stopped_early)

    @property
    def _stopped_early(self) -> str:
        """Why the run ends before its duration is reached; empty if it continues."""
        return self.state.early.reason if self.state.early is not None else ""

    def _catch_up(self) -> None:
        """Run the evaluation that an interrupted run did not finish."""
        step = self.state.step
        is_missing = step not in self._keeper.scores and self._cadence.is_evaluation_due(step)
        if is_missing and self.task.eval_data is not None:
            self._evaluate()
            self._save()

    def _saved_before(self, error: UserError) -> UserError:
        """Save the weights when a sample cannot be read; returns the error to raise."""
        if self.ranks.world > 1 or self.state.step == 0:
            return error  # the other ranks are waiting in the next step, not for a checkpoint
        try:
            self._save()
            self._keeper.finish()
        except NonFiniteLoss:
            return error
        hint = f"The training up to step {self.state.step} is saved. {self._resume_hint()}"
        todo = f"{error.todo}\n  {hint}" if error.todo else hint
        return UserError(error.what, where=error.where, todo=todo)

    def _resume_hint(self) -> str:
        return resume_hint(self.run, self._asked_device, self.ranks)

    def _loop(self, batches: Iterator[Batch], batch: Batch | None) -> int:
        """Run steps until the end (returns 0) or a stop (returns the exit code)."""
        self._started, self._skips = time.monotonic(), SkipWatch(self.state)
        step = self.state.step
        warm_up_ends = step + max(WARM_UP_STEPS, self._observers.span)
        self.clock.drop_window()
        with (
            contextlib.closing(self._steps(batches, batch)) as steps,
            self.console.bar("training", self.total_steps, step) as bar,
        ):
            for _ in steps:
                self.clock.step()
                if self.state.step == warm_up_ends:
                    self.device.synchronize()
                    self.clock.drop_window()
                exit_code = self._between_steps(bar, warmed_up=self.state.step > warm_up_ends)
                if exit_code is not None:
                    return exit_code
        self._agreement.finish()
        return 0

    def _between_steps(self, bar: Bar, *, warmed_up: bool) -> int | None:
        """Do everything that is due after a step; returns the exit code if the run stops."""
        self.state.elapsed_s = self._elapsed_before + time.monotonic() - self._started
        bar.show(self.state.step)
        self._keeper.check()
        self._report_unreadable()
        if self.device.reads_at_once:
            self._guard.raise_if_blocked(self._reason)
        moments = self._cadence.moments(
            self.state.step, self.state.elapsed_s, signal=self.stop.signal, limit=self._time_limit_s
        )
        with self._observers.phase(COMMUNICATION):
            due = moments.agreed(self._agreement)
        if due.log:
            self._log(close=due.closes_window, warmed_up=warmed_up)
        if due.evaluate or due.checkpoint:
            self.device.synchronize()  # outstanding work counts as training, not as a pause
        with self.clock.paused():
            if due.checkpoint:
                self._save()  # before evaluating, which may fail on an unreadable sample
            if due.evaluate and self.task.eval_data is not None:
                is_improved = self._evaluate()
                if due.checkpoint or (is_improved and self.plan.checkpoints.keep_best):
                    self._save()
        if due.signal or self._stopped_early:
            self._agreement.finish()
            return 128 + due.signal if due.signal else 0
        return 0 if due.ends else None

    def _log(self, *, close: bool, warmed_up: bool) -> None:
        """Read the sums of the window from the device and write a log line."""
        window = self.state.read_window(close=close)
        self._guard.raise_if_blocked(self._reason)
        if window is None:
            return
        pace = self.clock.close_window() if warmed_up else None
        self._train_loss = sum(window.losses.values())
        self._observers.record(
            train_record(self.state, window, pace, steps_per_epoch=self.steps_per_epoch)
        )
        for line in self._skips.warnings():
            self.console.line(line)

    def _evaluate(self) -> bool:
        """Score the current weights; returns whether they are the best so far."""
        self.ranks.share_buffers(self.task.model)
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
                illustrate=True,
            )
        self._report_unreadable()
        self._scores = scores
        save_illustrations(self.run, self.state.step, scores.illustrations, self.console)
        is_improved = self._keeper.add_scores(self.state.step, scores.metrics)
        if self.state.early is not None:
            self.state.early.count(self.state.step, scores.metrics)
        self._observers.record(
            EvaluationRecord(
                step=self.state.step,
                epoch=self.state.step / self.steps_per_epoch,
                metrics=scores.metrics,
                weights=weights,
                seconds=scores.seconds,
            )
        )
        return is_improved

    def _finish(self) -> None:
        """Write the last checkpoint and run the last evaluation, unless already done."""
        self._save()
        if self.task.eval_data is not None and self.state.step not in self._keeper.scores:
            self._evaluate()
            self._save()

    def _save(self) -> None:
        """Write a checkpoint of the current step, with its scores if there are any."""
        self._guard.raise_if_blocked(self._reason)
        self._keeper.save(self.state)

    def _report_unreadable(self) -> None:
        """Print the samples skipped as unreadable since the last call."""
        faults = self.tally.faults
        for fault in faults[self._reported :]:
            self.console.line(f"skipped: {fault}")
        self._reported = len(faults)

    def _write_results(self, outcome: Outcome) -> None:
        if not self.ranks.is_first:
            return
        write_results(
            self.run,
            outcome,
            plan=self.plan,
            device=self.device,
            ranks=self.ranks,
            policy=self.policy,
            clock=self.clock,
            headline=self.task.headline,
            best=self._keeper.best(),
            versions=self._versions,
            skipped_steps=self.state.skipped_steps,
            unreadable=self.unreadable,
            train_loss=self._train_loss,
            scores=self._scores,
            memory_peak_bytes=self.device.memory_peak_bytes(),
            elapsed_s=self.state.elapsed_s,
        )
