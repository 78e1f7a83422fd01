"""Checkpoints: written atomically, kept by age and score, read without running code.

A checkpoint is a directory `step-00000120`. It is written under another name, flushed to
disk and renamed, so a `kill -9` at any moment leaves the earlier checkpoints untouched and at
most one directory whose name begins with a dot, which the next start removes. Any number of ranks
write its tensor files, one part each; `checkpoint.json` is written last and holds the size and
CRC-32C of every other file and its own CRC-32C. A directory without it is not a checkpoint.
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
from jumar.training.checkpoint_files import (
    DamagedError,
    FileMark,
    check_file,
    flush,
    is_intact,
    mark_of,
    sealed,
)
from jumar.training.checkpoint_parts import PartedTensors, whole_name, write_part
from jumar.training.checkpoint_state import SavedState, read_values, write_values
from jumar.training.older_checkpoints import OLDER_STATE, check_whole, load_older_state
from jumar.training.run_directory import finite, read_json, write_json

FORMAT = 2
"""Checkpoints with `state.json`; format 1, which was not recorded, has `state.pt`."""
MODEL = "model.safetensors"
EMA = "ema.safetensors"
OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"
RECORD = "checkpoint.json"
_ONLY_TO_RESUME = (OPTIMIZER, STATE, OLDER_STATE)
_NAME = re.compile(r"^step-(\d{8,})$")


class NotWrittenError(UserError):
    """A checkpoint could not be written; writing another one instead would fail too."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """One checkpoint on disk.

    Attributes:
        path: Its directory.
        step: Finished steps.
        epoch: Finished epochs, fractional.
        time: When it was written, in UTC.
        metrics: The scores of its weights, once they are evaluated.
        has_ema: Whether it was written with averaged weights.
        batch: What determines the order of samples.
        marks: Size and CRC-32C of each file; empty if one of the first versions wrote it.
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
        """The weights, possibly in parts; the averaged ones if requested and available."""
        return self.path / (EMA if ema and self.has_ema else MODEL)

    @property
    def files(self) -> Sequence[str]:
        """The names of its files, except the record."""
        return list(self.marks) or [MODEL, *([EMA] if self.has_ema else []), OLDER_STATE]

    def check(self, *, with_state: bool) -> None:
        """Check that the files are unchanged since they were written.

        Args:
            with_state: Also check the files that only a resumed run needs.

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
        state: Optimizers, loss scale and whatever else a resumed run needs.
        batch: What determines the order of samples: global batch size, epoch size, seed.

    Raises:
        NotWrittenError: The disk is full or cannot be written.
    """
    files = {MODEL: model, EMA: ema, OPTIMIZER: state.slots or None}
    beside = unfinished(directory, step)
    try:
        with not_written(beside):
            begin_checkpoint(beside)
            marks: dict[str, FileMark] = {}
            for name, tensors in files.items():
                if tensors is not None:
                    marks |= write_part(beside, name, tensors)
            return finish_checkpoint(
                beside, step=step, epoch=epoch, values=state.values, batch=batch, marks=marks
            )
    except NotWrittenError:
        shutil.rmtree(beside, ignore_errors=True)
        raise


@contextmanager
def not_written(beside: Path) -> Generator[None]:
    """Turn errors while writing a checkpoint in this context into `NotWrittenError`.

    Args:
        beside: From `unfinished`.
    """
    try:
        yield
    except (OSError, RuntimeError, UserError) as error:
        # If writing JSON failed, the operating system's error is the cause of ours.
        cause = error.__cause__ if isinstance(error, UserError) else error
        step = int(beside.name.split("-")[1].partition(".")[0])
        raise NotWrittenError(
            f"the checkpoint of step {step} could not be written: {_reason(cause or error)}",
            where=str(beside.parent),
            todo="Free some space or choose another --run-dir; earlier checkpoints are intact.",
        ) from error


def unfinished(directory: Path, step: int) -> Path:
    """Where all ranks write their parts of a checkpoint until it is finished."""
    return directory / f".step-{step:08d}.unfinished"


def begin_checkpoint(beside: Path) -> None:
    """Create the `unfinished` directory; called by the first rank before any part is written."""
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)


def finish_checkpoint(
    beside: Path,
    *,
    step: int,
    epoch: float,
    values: Mapping[str, Any],
    batch: Mapping[str, int],
    marks: Mapping[str, FileMark],
) -> Checkpoint:
    """Write the non-tensor state and then the record, and move the checkpoint into place.

    The first rank calls this once all ranks have written their parts.

    Args:
        beside: From `unfinished`.
        step: Finished steps.
        epoch: Finished epochs.
        values: `SavedState.values`.
        batch: What determines the order of samples.
        marks: What `write_part` returned on every rank.
    """
    write_values(beside / STATE, values)
    flush(beside / STATE)
    files = {**marks, STATE: mark_of(beside / STATE)}
    record = {
        "format": FORMAT,
        "step": step,
        "epoch": epoch,
        "time": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S"),
        "metrics": {},
        "batch": dict(batch),
        "files": {name: asdict(mark) for name, mark in files.items()},
    }
    write_json(beside / RECORD, sealed(record))
    flush(beside / RECORD)
    flush(beside)
    final = beside.parent / f"step-{step:08d}"
    if final.exists():
        shutil.rmtree(final)
    beside.replace(final)
    flush(beside.parent)
    return read_checkpoint(final)


def note_metrics(checkpoint: Checkpoint, metrics: Mapping[str, float]) -> Checkpoint:
    """Write the scores of a checkpoint's weights into its record."""
    record = read_json(checkpoint.path / RECORD)
    record["metrics"] = finite(metrics)
    write_json(checkpoint.path / RECORD, sealed(record))
    return read_checkpoint(checkpoint.path)


def read_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint's own record; its other files are not read.

    Raises:
        DamagedError: Its record is damaged.
        UserError: A newer version of jumar wrote it.
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
        marks = {
            str(name): FileMark(size=int(mark["size"]), crc32c=str(mark["crc32c"]))
            for name, mark in record.get("files", {}).items()
        }
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
            todo="Use the version that wrote it, or a newer one.",
        )
    return checkpoint


def step_of(path: Path) -> int | None:
    """The step in the name of a checkpoint's directory; None for any other name."""
    match = _NAME.match(path.name)
    return None if match is None else int(match[1])


def check_weights_file(path: Path) -> None:
    """Check a weights file inside a checkpoint; any other file has no recorded CRC to check.

    Raises:
        DamagedError: The file or the checkpoint's record is damaged.
    """
    if is_file(path.parent / RECORD):
        _check(path, read_checkpoint(path.parent).marks.get(path.name))


def load_weights(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file, possibly in parts, on the CPU.

    Raises:
        UserError: The file, or a part of it, is missing or damaged.
    """
    tensors = PartedTensors(path)
    return {name: tensors.read(name) for name in tensors.shapes}


def load_state(
    checkpoint: Checkpoint, names: Mapping[str, Sequence[Sequence[str]]] | None = None
) -> SavedState:
    """The trainer's saved state; nothing in the files can run code.

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
    """The error message, without the source lines of torch's own errors."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
