"""Ending a run whose main metric no longer improves."""

from collections.abc import Mapping
from typing import Any

from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.tasks.task import Headline
from jumar.training.settings import EarlyStoppingSettings, Plan


class EarlyStopping:
    """Counts evaluations without an improvement; its state is part of a checkpoint.

    Every rank counts separately, because scores are the same on all of them.

    Args:
        settings: The tolerated number of evaluations, and the smallest improvement.
        headline: The metric, and whether higher is better.
    """

    def __init__(self, settings: EarlyStoppingSettings, headline: Headline) -> None:
        self._settings, self._headline = settings, headline
        self._best: float | None = None
        self._best_step = 0
        self._last_step = 0
        self._without_gain = 0

    def count(self, step: int, metrics: Mapping[str, float]) -> None:
        """Count an evaluation, unless it has already been counted.

        Args:
            step: Finished steps.
            metrics: The scores; NaN is no improvement.
        """
        if step <= self._last_step:
            return
        self._last_step = step
        value = metrics[self._headline.name]
        if self._is_gain(value):
            self._best, self._best_step, self._without_gain = value, step, 0
        else:
            self._without_gain += 1

    @property
    def reason(self) -> str:
        """Why the run ends; empty if it continues."""
        if not 0 < self._settings.patience <= self._without_gain:
            return ""
        name, delta = self._headline.name, self._settings.min_delta
        best = "never a number" if self._best is None else f"{self._best:.6g}"
        margin = f" by more than {delta:g}" if delta else ""
        return (
            f"{name} has not improved{margin} in {counted(self._without_gain, 'evaluation')}; "
            f"best {best} at step {self._best_step}"
        )

    def state_dict(self) -> dict[str, Any]:
        """The state to store in a checkpoint."""
        return {
            "best": self._best,
            "best_step": self._best_step,
            "last_step": self._last_step,
            "without_gain": self._without_gain,
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore a state returned by `state_dict`."""
        best = saved["best"]
        self._best = None if best is None else float(best)
        self._best_step, self._last_step = int(saved["best_step"]), int(saved["last_step"])
        self._without_gain = int(saved["without_gain"])

    def _is_gain(self, value: float) -> bool:
        if self._best is None:
            return value == value
        sign = 1.0 if self._headline.higher_is_better else -1.0
        return sign * (value - self._best) > self._settings.min_delta


def check_early_stopping(plan: Plan, *, has_eval_data: bool) -> None:
    """Check that a run that may stop early is scored during training.

    Raises:
        UserError: It is scored only at its end.
    """
    if plan.early_stopping.patience and not (has_eval_data and plan.training.evaluate_every):
        cause = "there is no evaluation data" if not has_eval_data else "evaluate_every is empty"
        raise UserError(
            f"a run is scored only at its end: {cause}",
            where="early_stopping.patience",
            todo="Set data.eval_path and training.evaluate_every, or early_stopping.patience=0.",
        )
