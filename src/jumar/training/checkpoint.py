"""Checkpoints: written atomically, kept by age and score, read without running code.

A checkpoint is a directory `step-00000120`. It is written under another name, flushed to disk and
renamed, so a `kill -9` at any moment leaves the earlier checkpoints untouched and at most one
directory whose name begins with a dot, which the next start removes. Any number of ranks write its
tensor files, one part each. `checkpoint.json` is written last and contains the size and CRC-32C of
every other file and its own CRC-32C. A directory without it is not a checkpoint.
"""

import re
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

from jumar.ground.errors import UserError
from jumar.ground.paths import is_file
from jumar.ground.text import first_line
from jumar.training.checkpoint_files import (
    DamagedError,
    FileMark,
    check_file,
    flush,
    is_intact,
    mark_of,
    marks_from_json,
    sealed,
)
from jumar.training.checkpoint_parts import PartedTensors, whole_name, write_part
from jumar.training.checkpoint_state import SavedState, read_values, write_values
from jumar.training.older_checkpoints import OLDER_STATE, check_whole, load_older_state
from jumar.training.run_directory import finite, read_json, write_json

FORMAT = 2
"""Checkpoints with `state.json`; those without a recorded format are format 1, with `state.pt`."""
MODEL = "model.safetensors"
EMA = "ema.safetensors"
OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"
RECORD = "checkpoint.json"
_ONLY_TO_RESUME = (OPTIMIZER, STATE, OLDER_STATE)
_NAME = re.compile(r"^step-(\d{8,})$")


class NotWrittenError(UserError):
    """A checkpoint could not be written, so another attempt would fail too."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """One checkpoint on disk.

    Attributes:
        path: Its directory.
        step: Finished steps.
        epoch: Finished epochs, fractional.
        time: When it was written, in UTC.
        metrics: The scores of its weights; empty until they are evaluated.
        has_ema: Whether it was written with averaged weights.
        batch: The values that determine the order of samples.
        marks: Size and CRC-32C of each file; empty in a checkpoint of the first versions.
        format: Version of the file layout.
    """

    path: Path
    step: int
    epoch: float
    time: str
    metrics: Mapping[str, float]
    has_ema: bool
    batch: Mapping[str, int]
    marks: Mapping[str, FileMark] = field(default_factory=dict[str, FileMark])
    format: int = FORMAT

    def model_file(self, *, ema: bool) -> Path:
        """The file of weights, possibly in parts; the averaged ones if requested and available."""
        return self.path / (EMA if ema and self.has_ema else MODEL)

    @property
    def files(self) -> Sequence[str]:
        """The names of its files, except the record."""
        return list(self.marks) or [MODEL, *([EMA] if self.has_ema else []), OLDER_STATE]

    def check(self, *, with_state: bool) -> None:
        """Check that the files are unchanged since they were written.

        Args:
            with_state: Whether to check the files that only a resumed run needs too.

        Raises:
            DamagedError: A file is missing or damaged.
        """
        for name in self.files:
            if with_state or whole_name(name) not in _ONLY_TO_RESUME:
                _check(self.path / name, self.marks.get(name))


def write_checkpoint(
    directory: Path,
    *,
    step: int,
    epoch: float,
    model: Mapping[str, torch.Tensor],
    ema: Mapping[str, torch.Tensor] | None,
    state: SavedState,
    batch: Mapping[str, int],
) -> Checkpoint:
    """Write `directory/step-N` atomically.

    Args:
        directory: The run's `checkpoints` directory.
        step: Finished steps.
        epoch: Finished epochs.
        model: The model's state dict.
        ema: The averaged weights, if any.
        state: Optimizers, loss scale and everything else that a resumed run needs.
        batch: The values that determine the order of samples: global batch size, epoch size, seed.

    Raises:
        NotWrittenError: The disk is full or cannot be written to.
    """
    files = {MODEL: model, EMA: ema, OPTIMIZER: state.slots or None}
    temporary = unfinished(directory, step)
    try:
        with not_written(temporary):
            begin_checkpoint(temporary)
            marks: dict[str, FileMark] = {}
            for name, tensors in files.items():
                if tensors is not None:
                    marks |= write_part(temporary, name, tensors)
            return finish_checkpoint(
                temporary, step=step, epoch=epoch, values=state.values, batch=batch, marks=marks
            )
    except NotWrittenError:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@contextmanager
def not_written(temporary: Path) -> Generator[None]:
    """Turn errors while writing a checkpoint in this context into `NotWrittenError`.

    Args:
        temporary: The directory returned by `unfinished`.
    """
    try:
        yield
    except (OSError, RuntimeError, UserError) as error:
        # If writing JSON failed, the operating system's error is the cause of ours.
        cause = error.__cause__ if isinstance(error, UserError) else error
        step = int(temporary.name.split("-")[1].partition(".")[0])
        raise NotWrittenError(
            f"the checkpoint of step {step} could not be written: {_reason(cause or error)}",
            where=str(temporary.parent),
            todo="Free some space or choose another --run-dir; earlier checkpoints are intact.",
        ) from error


def unfinished(directory: Path, step: int) -> Path:
    """The directory to which all ranks write their parts of a checkpoint until it is finished."""
    return directory / f".step-{step:08d}.unfinished"


def begin_checkpoint(temporary: Path) -> None:
    """Create the `unfinished` directory; the first rank calls this before any part is written."""
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)


def finish_checkpoint(
    temporary: Path,
    *,
    step: int,
    epoch: float,
    values: Mapping[str, Any],
    batch: Mapping[str, int],
    marks: Mapping[str, FileMark],
) -> Checkpoint:
    """Write the non-tensor state and the record, and move the checkpoint into place.

    The first rank calls this once all ranks have written their parts.

    Args:
        temporary: The directory returned by `unfinished`.
        step: Finished steps.
        epoch: Finished epochs.
        values: `SavedState.values`.
        batch: The values that determine the order of samples.
        marks: The marks returned by `write_part` on all ranks.
    """
    write_values(temporary / STATE, values)
    flush(temporary / STATE)
    files = {**marks, STATE: mark_of(temporary / STATE)}
    record = {
        "format": FORMAT,
        "step": step,
        "epoch": epoch,
        "time": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S"),
        "metrics": {},
        "batch": dict(batch),
        "files": {name: asdict(mark) for name, mark in files.items()},
    }
    write_json(temporary / RECORD, sealed(record))
    flush(temporary / RECORD)
    flush(temporary)
    final = temporary.parent / f"step-{step:08d}"
    if final.exists():
        shutil.rmtree(final)
    temporary.replace(final)
    flush(temporary.parent)
    return read_checkpoint(final)


def record_metrics(checkpoint: Checkpoint, metrics: Mapping[str, float]) -> Checkpoint:
    """Write the scores of a checkpoint's weights into its record."""
    record = read_json(checkpoint.path / RECORD)
    record["metrics"] = finite(metrics)
    write_json(checkpoint.path / RECORD, sealed(record))
    return read_checkpoint(checkpoint.path)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint's record, but none of its other files.

    Raises:
        DamagedError: The record is damaged.
        UserError: A newer version of jumar wrote the checkpoint.
    """
    file = path / RECORD
    try:
        record = read_json(file)
    except UserError as error:
        raise DamagedError(error.what, where=error.where) from None
    if not is_intact(record):
        raise DamagedError(
            "is damaged: its content has changed since it was written", where=str(file)
        )
    try:
        marks = marks_from_json(record.get("files", {}))
        checkpoint = Checkpoint(
            path=path,
            step=int(record["step"]),
            epoch=float(record["epoch"]),
            time=str(record["time"]),
            metrics={
                k: float("nan") if v is None else float(v) for k, v in record["metrics"].items()
            },
            has_ema=EMA in map(whole_name, marks) if marks else is_file(path / EMA),
            batch={k: int(v) for k, v in record["batch"].items()},
            marks=marks,
            format=int(record.get("format", 1)),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DamagedError(f"has a missing or malformed field: {error}", where=str(file)) from None
    if step_of(path) not in (None, checkpoint.step):
        raise DamagedError(f"belongs to step {checkpoint.step}", where=str(file))
    if checkpoint.format > FORMAT:
        raise UserError(
            f"has format {checkpoint.format}, but this version of jumar reads up to {FORMAT}",
            where=str(file),
            todo="Use the version that wrote the checkpoint, or a newer one.",
        )
    return checkpoint


def step_of(path: Path) -> int | None:
    """The step in the name of a checkpoint's directory; None for any other name."""
    match = _NAME.match(path.name)
    return None if match is None else int(match[1])


def check_weights_file(path: Path) -> None:
    """Check a weights file if it is in a checkpoint; for other files no CRC is recorded.

    Raises:
        DamagedError: The file or the checkpoint's record is damaged.
    """
    if is_file(path.parent / RECORD):
        _check(path, read_checkpoint(path.parent).marks.get(path.name))


def load_weights(path: Path) -> dict[str, torch.Tensor]:
    """Load the tensors of a safetensors file, possibly in parts, on the CPU.

    Raises:
        UserError: The file, or a part of it, is missing or damaged.
    """
    tensors = PartedTensors(path)
    return {name: tensors.read(name) for name in tensors.shapes}


def load_state(
    checkpoint: Checkpoint, names: Mapping[str, Sequence[Sequence[str]]] | None = None
) -> SavedState:
    """Load the trainer's saved state; nothing in the files can run code.

    Args:
        checkpoint: The checkpoint to read.
        names: See `load_older_state`.

    Raises:
        UserError: A file is missing or damaged.
    """
    files = [name for name in checkpoint.files if whole_name(name) in _ONLY_TO_RESUME]
    for name in files:
        _check(checkpoint.path / name, checkpoint.marks.get(name))
    if checkpoint.format == 1:
        return load_older_state(checkpoint.path / OLDER_STATE, names or {})
    has_slots = OPTIMIZER in map(whole_name, files)
    return SavedState(
        values=read_values(checkpoint.path / STATE),
        slots=load_weights(checkpoint.path / OPTIMIZER) if has_slots else {},
    )


def _check(path: Path, mark: FileMark | None) -> None:
    if mark is None:
        check_whole(path)
    else:
        check_file(path, mark)


def _reason(error: BaseException) -> str:
    """The error message, without the C++ source lines that torch's errors contain."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return first_line(str(error), type(error).__name__)
