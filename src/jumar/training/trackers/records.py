"""The records of a run: log lines of the training, and scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jumar.ground.json_text import flattened
from jumar.training.state import TrainState, Window
from jumar.training.throughput import Pace

TRAIN_HEADER = "Step   Epoch   Speed   Loss   FinLoss   LR"


@dataclass(frozen=True, kw_only=True)
class TrainRecord:
    """One training log line.

    Attributes:
        step: Finished steps.
        epoch: Finished epochs, fractional.
        window: Losses, learning rates and gradient norms since the last line.
        pace: The speed since the last line; None during warm-up.
        loss_scale: The current scale; None if the loss is not scaled.
        skipped_steps: Number of updates skipped so far because of an overflow.
        elapsed_s: Time of the training so far.
    """

    step: int
    epoch: float
    window: Window
    pace: Pace | None
    loss_scale: float | None
    skipped_steps: int
    elapsed_s: float

    def line(self) -> str:
        """The line, with the columns of the original logs."""
        window, pace = self.window, self.pace
        fps = "     -" if pace is None else f"{pace.samples_per_second:6.1f}"
        parts = [f"step: {self.step:6d}  epoch: {self.epoch:6.2f}  FPS: {fps}"]
        for name, loss in window.losses.items():
            label = "" if len(window.losses) == 1 else f"{name} "
            parts.append(
                f"{label}loss: {loss:.3f}  total_loss: {window.total_losses[name]:.3f}  "
                f"lr:{window.learning_rates[name]:.7f}"
            )
            if name in window.gradient_norms:
                parts.append(f"grad_norm: {window.gradient_norms[name]:.4g}")
        parts += [
            f"{name.rpartition('/')[2]}: {value:.3f}"
            for name, value in window.terms.items()
            if name.endswith("_loss")  # the addends of a loss such as BERT's
        ]
        if pace is not None:
            parts.append(f"batch_time: {pace.step_ms:.1f} ms  data: {pace.data_ms:.1f} ms")
        if self.loss_scale is not None:
            parts.append(f"loss_scale: {self.loss_scale:g}  skipped: {self.skipped_steps}")
        return "  ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """The record as written to `metrics.jsonl`."""
        window, pace = self.window, self.pace
        has_several = len(window.losses) > 1
        record: dict[str, Any] = {
            "kind": "train",
            "step": self.step,
            "epoch": round(self.epoch, 6),
            "fps": None if pace is None else pace.samples_per_second,
            "loss": sum(window.losses.values()),
            "total_loss": sum(window.total_losses.values()),
            "learning_rate": next(iter(window.learning_rates.values())),
            "step_ms": None if pace is None else pace.step_ms,
            "data_ms": None if pace is None else pace.data_ms,
            "skipped": self.skipped_steps,
            "elapsed_s": round(self.elapsed_s, 3),
        }
        if self.loss_scale is not None:
            record["loss_scale"] = self.loss_scale
        if window.gradient_norms and not has_several:
            record["gradient_norm"] = next(iter(window.gradient_norms.values()))
        several = {
            "gradient_norms": window.gradient_norms,
            "losses": window.losses,
            "learning_rates": window.learning_rates,
        }
        record |= {name: dict(values) for name, values in several.items() if values and has_several}
        if window.terms:
            record["terms"] = dict(window.terms)
        return record


def train_record(
    state: TrainState, window: Window, pace: Pace | None, *, steps_per_epoch: int
) -> TrainRecord:
    """The log line of a window; waits for the device.

    Args:
        state: The state after the last step of the window.
        window: The means over the window.
        pace: The speed in the window; None during warm-up.
        steps_per_epoch: Steps per epoch, to compute the epoch.
    """
    scale = state.policy.loss_scale
    return TrainRecord(
        step=state.step,
        epoch=state.step / steps_per_epoch,
        window=window,
        pace=pace,
        loss_scale=None if scale is None else scale.scale.item(),
        skipped_steps=state.skipped_steps,
        elapsed_s=state.elapsed_s,
    )


@dataclass(frozen=True, kw_only=True)
class EvaluationRecord:
    """The scores at one step."""

    step: int
    epoch: float
    metrics: Mapping[str, float]
    weights: str
    seconds: float

    def line(self) -> str:
        """The line for the console."""
        scores = "  ".join(f"{name}: {value:.3f}" for name, value in self.metrics.items())
        averaged = "  (averaged weights)" if self.weights == "ema" else ""
        return f"evaluation at step {self.step}, epoch {self.epoch:.2f}: {scores}{averaged}"

    def to_json(self) -> dict[str, Any]:
        """The record as written to `metrics.jsonl`."""
        return {
            "kind": "evaluation",
            "step": self.step,
            "epoch": round(self.epoch, 6),
            **self.metrics,
            "weights": self.weights,
            "seconds": round(self.seconds, 3),
        }


def numbers_of(data: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a record in JSON form, by kind and path, such as `train/losses/g`."""
    return {
        f"{data['kind']}/{name}": value
        for name, value in flattened(data, separator="/").items()
        if name != "step" and isinstance(value, (int, float))
    }
