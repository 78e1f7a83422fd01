"""The records of a run: log lines of the training, and scores."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from jumar.training.state import TrainState, Window
from jumar.training.throughput import Pace

TRAIN_HEADER = "Step   Epoch   Speed   Loss   FinLoss   LR"


@dataclass(frozen=True, kw_only=True)
class TrainRecord:
    """One training log line.

    Attributes:
        step: Finished steps.
        epoch: Finished epochs, fractional.
        fps: Samples per second over all ranks since the last line; None during warm-up.
        losses: Mean loss of each objective since the last line.
        total_losses: The losses plus the regularisation of the current weights.
        terms: Further terms of the objectives, by `objective/term`.
        learning_rates: Learning rate of each objective at the last step.
        gradient_norms: Mean norm of each objective's gradients since the last line, before
            clipping and without the loss scale; empty where it was not computed.
        step_ms: Mean time of a step.
        data_ms: The part of it spent waiting for data.
        loss_scale: The current scale; None if the loss is not scaled.
        skipped_steps: Number of updates skipped so far because of an overflow.
    """

    step: int
    epoch: float
    fps: float | None
    losses: Mapping[str, float]
    total_losses: Mapping[str, float]
    terms: Mapping[str, float]
    learning_rates: Mapping[str, float]
    step_ms: float | None
    data_ms: float | None
    loss_scale: float | None
    skipped_steps: int
    elapsed_s: float
    gradient_norms: Mapping[str, float] = field(default_factory=dict[str, float])

    def line(self) -> str:
        """The line, with the columns of the original logs."""
        fps = "     -" if self.fps is None else f"{self.fps:6.1f}"
        parts = [f"step: {self.step:6d}  epoch: {self.epoch:6.2f}  FPS: {fps}"]
        for name, loss in self.losses.items():
            label = "" if len(self.losses) == 1 else f"{name} "
            parts.append(
                f"{label}loss: {loss:.3f}  total_loss: {self.total_losses[name]:.3f}  "
                f"lr:{self.learning_rates[name]:.7f}"
            )
            if name in self.gradient_norms:
                parts.append(f"grad_norm: {self.gradient_norms[name]:.4g}")
        parts += [
            f"{name.rpartition('/')[2]}: {value:.3f}"
            for name, value in self.terms.items()
            if name.endswith("_loss")  # the addends of a loss such as BERT's
        ]
        if self.step_ms is not None and self.data_ms is not None:
            parts.append(f"batch_time: {self.step_ms:.1f} ms  data: {self.data_ms:.1f} ms")
        if self.loss_scale is not None:
            parts.append(f"loss_scale: {self.loss_scale:g}  skipped: {self.skipped_steps}")
        return "  ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """The record as written to `metrics.jsonl`."""
        has_several = len(self.losses) > 1
        record: dict[str, Any] = {
            "kind": "train",
            "step": self.step,
            "epoch": round(self.epoch, 6),
            "fps": self.fps,
            "loss": sum(self.losses.values()),
            "total_loss": sum(self.total_losses.values()),
            "learning_rate": next(iter(self.learning_rates.values())),
            "step_ms": self.step_ms,
            "data_ms": self.data_ms,
            "skipped": self.skipped_steps,
            "elapsed_s": round(self.elapsed_s, 3),
        }
        if self.loss_scale is not None:
            record["loss_scale"] = self.loss_scale
        if self.gradient_norms:
            if has_several:
                record["gradient_norms"] = dict(self.gradient_norms)
            else:
                record["gradient_norm"] = next(iter(self.gradient_norms.values()))
        if has_several:
            record["losses"] = dict(self.losses)
            record["learning_rates"] = dict(self.learning_rates)
        if self.terms:
            record["terms"] = dict(self.terms)
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
        fps=None if pace is None else pace.samples_per_second,
        losses=window.losses,
        total_losses=window.total_losses,
        terms=window.terms,
        learning_rates=window.learning_rates,
        gradient_norms=window.gradient_norms,
        step_ms=None if pace is None else pace.step_ms,
        data_ms=None if pace is None else pace.data_ms,
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


def numbers_of(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """The numbers in a record's JSON form, by name; those of nested objects as `object/name`."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from numbers_of(cast("Mapping[str, Any]", value), f"{prefix}{name}/")
        elif isinstance(value, (int, float)):
            yield f"{prefix}{name}", value
