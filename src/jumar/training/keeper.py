"""The checkpoints of a run, and the scores that determine the best one."""

from collections.abc import Mapping

from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.tasks.task import Headline
from jumar.training.checkpoint import Checkpoint, record_metrics
from jumar.training.checkpoint_retention import best_checkpoint, drop_checkpoints, list_checkpoints
from jumar.training.checkpoint_writer import CheckpointWriter, Content
from jumar.training.parallel.ranks import Ranks
from jumar.training.run_directory import RunDirectory
from jumar.training.settings import Plan
from jumar.training.state import TrainState


class CheckpointKeeper:
    """The checkpoints and scores of one run.

    Args:
        run: The run directory.
        plan: The plan of the run.
        ranks: The ranks, which write checkpoints together.
        headline: The metric that determines the best checkpoint.
        epoch_size: Number of training samples.
        steps_per_epoch: Steps per epoch.

    Attributes:
        scores: The metrics, by the step after which the weights were scored.
    """

    def __init__(
        self,
        run: RunDirectory,
        plan: Plan,
        ranks: Ranks,
        headline: Headline,
        *,
        epoch_size: int,
        steps_per_epoch: int,
    ) -> None:
        self._directory = run.checkpoints
        self._plan, self._ranks, self._headline = plan, ranks, headline
        self._steps_per_epoch = steps_per_epoch
        self._identity = {
            "global_batch_size": plan.batch_size * ranks.world,
            "epoch_size": epoch_size,
            "seed": plan.seed,
        }
        if plan.training.sums == "exact":
            self._identity["micro_batch_size"] = plan.training.micro_batch_size
        self.scores: dict[int, Mapping[str, float]] = {}
        self._writer = CheckpointWriter(run.checkpoints, ranks)
        self._saved: int | None = None

    def resume_from(self, checkpoint: Checkpoint, *, total_steps: int | None) -> None:
        """Check that a run can resume from a checkpoint, and load the scores up to it.

        Raises:
            UserError: The batch or the data changed, so the order of samples would differ; or the
                run has already passed the requested duration.
        """
        if total_steps is not None and checkpoint.step > total_steps:
            raise UserError(
                f"this run has already done {counted(checkpoint.step, 'step')}, more than the "
                f"{total_steps} of {self._plan.training.duration}",
                where="training.duration",
                todo="Set a longer duration to resume, or choose another --run-dir.",
            )
        changed_fields = [
            name
            for name, value in self._identity.items()
            if checkpoint.batch.get(name, value) != value
        ]
        if changed_fields:
            name = changed_fields[0]
            elements = "additions" if name == "micro_batch_size" else "samples"
            raise UserError(
                f"the {name.replace('_', ' ')} was {checkpoint.batch[name]}, now "
                f"{self._identity[name]}: the order of {elements} would differ",
                where=str(checkpoint.path),
                todo="Resume with the same data and global batch size (batch size times ranks), or "
                "start a new run with transfer.start_from.",
            )
        self._saved = checkpoint.step
        self.scores = {
            scored.step: scored.metrics
            for scored in list_checkpoints(self._directory)
            if scored.metrics and scored.step <= checkpoint.step
        }

    @property
    def max_kept(self) -> int:
        """Maximum number of checkpoints to keep."""
        return self._plan.checkpoints.keep + int(self._plan.checkpoints.keep_best)

    def max_new(self, written: int | None) -> int:
        """Maximum number of checkpoints on the disk in addition to the existing ones.

        It allows for one more than are kept, since the oldest is removed only when the newest is
        complete.

        Args:
            written: Maximum number that the rest of the run can write; None if unknown.
        """
        existing = len(list_checkpoints(self._directory))
        room = max(self.max_kept + 1 - existing, 1)
        return room if written is None else min(room, written)

    def add_scores(self, step: int, metrics: Mapping[str, float]) -> bool:
        """Record the scores of the current weights; returns whether they are the best so far."""
        name = self._headline.name
        sign = 1.0 if self._headline.higher_is_better else -1.0
        earlier = [scores[name] for scores in self.scores.values() if name in scores]
        self.scores[step] = metrics
        return all(sign * metrics[name] > sign * earlier_score for earlier_score in earlier)

    def save(self, state: TrainState) -> None:
        """Begin to write a checkpoint of the current step, or only its scores if it exists.

        All ranks call this together. Weights, averages and the optimizer's state may change only
        after `state.before_change`.

        Raises:
            NotWrittenError: This checkpoint or the previous one could not be written.
        """
        step = state.step
        if step == 0:
            return
        if step != self._saved:
            self._ranks.share_buffers(state.task.model)
            self._writer.begin(self._content(state))
            state.before_change = self._writer.wait_for_copy
            self._saved = step
        if self._ranks.is_first:
            scores = self.scores.get(step)
            self._writer.afterwards(lambda: self._tidy(step, scores))

    def check(self) -> None:
        """Raise pending errors of checkpoints being written.

        Raises:
            NotWrittenError: A checkpoint could not be written.
        """
        self._writer.check()

    def finish(self) -> None:
        """Wait until all checkpoints are written; all ranks call this together.

        Raises:
            NotWrittenError: A checkpoint could not be written.
        """
        self._writer.finish()
        self._ranks.wait()

    def close(self) -> None:
        """Wait for pending writes, successful or not."""
        self._writer.close()

    def best(self) -> Checkpoint | None:
        """The existing checkpoint with the best score."""
        return best_checkpoint(list_checkpoints(self._directory), self._order)

    @property
    def _order(self) -> tuple[str, bool]:
        return self._headline.name, self._headline.higher_is_better

    def _tidy(self, step: int, scores: Mapping[str, float] | None) -> None:
        """Record the scores of a checkpoint, and remove checkpoints that are not kept."""
        for checkpoint in list_checkpoints(self._directory):
            if checkpoint.step == step and scores is not None:
                record_metrics(checkpoint, scores)
        drop_checkpoints(
            self._directory,
            keep=self._plan.checkpoints.keep,
            keep_best=self._plan.checkpoints.keep_best,
            headline=self._order,
        )

    def _content(self, state: TrainState) -> Content:
        saved = state.capture()
        return Content(
            step=state.step,
            epoch=state.step / self._steps_per_epoch,
            model=state.task.model.state_dict(),
            ema=None if state.ema is None else state.ema.state_dict(),
            slots=saved.slots,
            values=saved.values,
            batch=self._identity,
            changing=frozenset(buffer.data_ptr() for buffer in state.task.model.buffers()),
        )
