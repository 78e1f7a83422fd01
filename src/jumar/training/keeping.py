"""What a run keeps: its checkpoints, and the scores by which the best of them is known."""

from collections.abc import Mapping

from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.tasks.task import Headline
from jumar.training.checkpoint import Checkpoint, note_metrics, write_checkpoint
from jumar.training.kept_checkpoints import best_checkpoint, drop_checkpoints, list_checkpoints
from jumar.training.parallel.ranks import Ranks
from jumar.training.run_directory import RunDirectory
from jumar.training.settings import Plan
from jumar.training.state import TrainState


class Keeper:
    """The checkpoints and scores of one run.

    Args:
        run: Where.
        plan: How many, and what the order of samples depends on.
        ranks: The first one writes.
        headline: The metric that decides.
        epoch_size: Samples of the training set.
        steps_per_epoch: Steps of an epoch.

    Attributes:
        scores: By the step after which the weights were scored.
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
        self.scores: dict[int, Mapping[str, float]] = {}

    def go_on_from(self, checkpoint: Checkpoint, *, total_steps: int | None) -> None:
        """Check that a run can go on from a checkpoint, and take in the scores up to it.

        Raises:
            UserError: The batch or the data changed, so the order of samples would not be the
                same; or the run is to be shorter than it is already.
        """
        if total_steps is not None and checkpoint.step > total_steps:
            raise UserError(
                f"this run has done {counted(checkpoint.step, 'step')}, more than the "
                f"{total_steps} of "
                f"{self._plan.training.duration}",
                where="training.duration",
                todo="Give a longer one to go on, or choose another --run-dir.",
            )
        changed = [
            name
            for name, value in self._identity.items()
            if checkpoint.batch.get(name, value) != value
        ]
        if changed:
            name = changed[0]
            raise UserError(
                f"the {name.replace('_', ' ')} was {checkpoint.batch[name]}, now "
                f"{self._identity[name]}: the order of samples would not be the same",
                where=str(checkpoint.path),
                todo="Resume with the same data, batch and number of ranks (batch size times "
                "ranks), or start a new run with transfer.start_from.",
            )
        self.scores = {
            known.step: known.metrics
            for known in list_checkpoints(self._directory)
            if known.metrics and known.step <= checkpoint.step
        }

    @property
    def most_kept(self) -> int:
        """How many checkpoints are kept at most."""
        return self._plan.checkpoints.keep + int(self._plan.checkpoints.keep_best)

    def most_new(self, written: int | None) -> int:
        """How many checkpoints the disk must take beside those that are there.

        One more than are kept, since the oldest goes when the newest is complete.

        Args:
            written: How many the rest of the run writes at most; None where that is not known.
        """
        there = len(list_checkpoints(self._directory))
        room = max(self.most_kept + 1 - there, 1)
        return room if written is None else min(room, written)

    def add_scores(self, step: int, metrics: Mapping[str, float]) -> bool:
        """Take in the scores of the present weights; returns whether they are the best so far."""
        name = self._headline.name
        sign = 1.0 if self._headline.higher_is_better else -1.0
        earlier = [known[name] for known in self.scores.values() if name in known]
        self.scores[step] = metrics
        return all(sign * metrics[name] > sign * other for other in earlier)

    def save(self, state: TrainState) -> None:
        """Write a checkpoint of the present step, or only its scores where it is there already.

        All ranks call this together.

        Raises:
            NotWrittenError: The disk is full or cannot be written.
        """
        self._ranks.share_buffers(state.task.model)
        step = state.step
        if self._ranks.is_first and step > 0:
            there = [known for known in list_checkpoints(self._directory) if known.step == step]
            checkpoint = there[0] if there else self._write(state)
            if step in self.scores:
                note_metrics(checkpoint, self.scores[step])
            drop_checkpoints(
                self._directory,
                keep=self._plan.checkpoints.keep,
                keep_best=self._plan.checkpoints.keep_best,
                headline=self._order,
            )
        self._ranks.wait()

    def best(self) -> Checkpoint | None:
        """The best-scored checkpoint that is there."""
        return best_checkpoint(list_checkpoints(self._directory), self._order)

    @property
    def _order(self) -> tuple[str, bool]:
        return self._headline.name, self._headline.higher_is_better

    def _write(self, state: TrainState) -> Checkpoint:
        return write_checkpoint(
            self._directory,
            step=state.step,
            epoch=state.step / self._steps_per_epoch,
            model=state.task.model.state_dict(),
            ema=None if state.ema is None else state.ema.state_dict(),
            state=state.capture(),
            batch=self._identity,
        )
