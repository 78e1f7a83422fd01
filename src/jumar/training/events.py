"""What a run reports, and where it goes: console, log file, JSON lines, TensorBoard.

The trainer creates records; it does not know who reads them.
"""

import contextlib
import importlib
import importlib.util
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, cast

from jumar.ground.errors import UserError
from jumar.ground.paths import unwritable
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory, finite
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
        total_losses: The same plus the regularisation of the current weights.
        terms: Further terms of the objectives, by `objective/term`.
        learning_rates: Of each objective at the last step.
        step_ms: Mean time of a step.
        data_ms: The part of it spent waiting for data.
        loss_scale: The current scale; None if the loss is not scaled.
        skipped_steps: Updates skipped so far because of an overflow.
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
        if self.step_ms is not None and self.data_ms is not None:
            parts.append(f"batch_time: {self.step_ms:.1f} ms  data: {self.data_ms:.1f} ms")
        if self.loss_scale is not None:
            parts.append(f"loss_scale: {self.loss_scale:g}  skipped: {self.skipped_steps}")
        return "  ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """The record as written to `metrics.jsonl`."""
        many = len(self.losses) > 1
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
        if many:
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
        window: Its means.
        pace: Its speed; None during warm-up.
        steps_per_epoch: To compute the epoch.
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


Record = TrainRecord | EvaluationRecord


class Writer(Protocol):
    """Something that receives records."""

    def write(self, record: Record) -> None:
        """Write a record."""
        ...

    def close(self) -> None:
        """Close the writer; no more records follow."""
        ...


class ConsoleWriter:
    """Lines on the console and in `log.txt`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._headed = False

    def write(self, record: Record) -> None:
        """Print the record's line, preceded the first time by the column names."""
        if isinstance(record, TrainRecord) and not self._headed:
            self._console.line(TRAIN_HEADER)
            self._headed = True
        self._console.line(record.line())

    def close(self) -> None:
        """Do nothing: the console belongs to the caller."""


class JsonLinesWriter:
    """`metrics.jsonl`: one line per record, flushed immediately."""

    def __init__(self, run: RunDirectory) -> None:
        self._file = run.metrics.open("a", encoding="utf-8")

    def write(self, record: Record) -> None:
        """Append the record."""
        self._file.write(json.dumps(finite(record.to_json())) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class TensorBoardWriter:
    """TensorBoard events; only created if tensorboard is installed.

    Uses tensorboard's own record writer, because `torch.utils.tensorboard` writes in a thread that
    dies with a traceback on a full disk.

    Raises:
        ImportError: tensorboard is installed but cannot be loaded.
    """

    def __init__(self, run: RunDirectory, first_step: int) -> None:
        proto = "tensorboard.compat.proto"
        self._event: Any = importlib.import_module(f"{proto}.event_pb2")
        self._summary: Any = importlib.import_module(f"{proto}.summary_pb2")
        records = importlib.import_module("tensorboard.summary.writer.record_writer")
        run.tensorboard.mkdir(exist_ok=True)
        now, host = int(time.time()), socket.gethostname()
        name = f"events.out.tfevents.{now:010d}.{host}.{os.getpid()}"
        self._file = (run.tensorboard / name).open("ab")
        self._records: Any = records.RecordWriter(self._file)
        self._append(file_version="brain.Event:2")
        start = self._event.SessionLog(status=self._event.SessionLog.START)
        # Hides what an interrupted run wrote after the checkpoint; it will be written again.
        self._append(session_log=start, step=first_step + 1)

    def write(self, record: Record) -> None:
        """Write every number of the record as a scalar."""
        data = record.to_json()
        kind = data.pop("kind")
        values = [
            self._summary.Summary.Value(tag=f"{kind}/{name}", simple_value=value)
            for name, value in _numbers(data)
            if name != "step"
        ]
        self._append(summary=self._summary.Summary(value=values), step=record.step)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _append(self, **content: Any) -> None:
        event = self._event.Event(wall_time=time.time(), **content)
        self._records.write(event.SerializeToString())
        self._file.flush()


class Events:
    """Passes every record to all writers."""

    def __init__(self, writers: Sequence[Writer], where: str = "") -> None:
        self._writers = writers
        self._where = where

    def write(self, record: Record) -> None:
        """Pass a record to every writer.

        Raises:
            UserError: The disk is full or cannot be written.
        """
        for writer in self._writers:
            try:
                writer.write(record)
            except OSError as error:
                raise _unwritable(error, self._where) from error

    def __enter__(self) -> "Events":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for writer in self._writers:
            # `write` has already reported a full disk.
            with contextlib.suppress(OSError):
                writer.close()


def _unwritable(error: OSError, where: str) -> UserError:
    return unwritable(
        where,
        error,
        what="the training log cannot be written",
        more="Existing checkpoints are intact.",
    )


def create_events(run: RunDirectory, console: Console, *, first_step: int) -> Events:
    """The writers of the first rank.

    Raises:
        UserError: The run directory cannot be written.
    """
    writers: list[Writer] = [ConsoleWriter(console)]
    try:
        writers.append(JsonLinesWriter(run))
        if importlib.util.find_spec("tensorboard") is not None:
            writers.append(TensorBoardWriter(run, first_step))
    except ImportError as error:
        console.line(f"no TensorBoard events, because tensorboard cannot be loaded: {error}")
    except OSError as error:
        raise _unwritable(error, str(run)) from error
    return Events(writers, str(run))


def _numbers(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of a record, nested ones as `part/name`."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _numbers(cast("Mapping[str, Any]", value), f"{prefix}{name}/")
        elif isinstance(value, (int, float)):
            yield f"{prefix}{name}", value
