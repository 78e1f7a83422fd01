"""Checkpoints: written whole or not at all, kept by age and score, read without running code.

A checkpoint is a directory `step-00000120`. It is written under another name, flushed to the
disk and renamed, so a `kill -9` at any moment leaves the earlier checkpoints as they were and at
most one directory whose name begins with a dot, which the next start removes. Any number of ranks
write its files of tensors, each a part; `checkpoint.json` is written last and holds size and
CRC-32C of every other file and of itself. Without it a directory is no checkpoint.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

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
"""Of a checkpoint with `state.json`; 1, which was not recorded, is one with `state.pt`."""
MODEL = "model.safetensors"
EMA = "ema.safetensors"
OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"
RECORD = "checkpoint.json"
_TO_GO_ON = (OPTIMIZER, STATE, OLDER_STATE)
_NAME = re.compile(r"^step-(\d{8,})$")


class NotWrittenError(UserError):
    """A checkpoint could not be written; to write another one instead would fail too."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """One checkpoint on the disk.

    Attributes:
        path: Its directory.
        step: Finished steps.
        epoch: Finished epochs, with fraction.
        time: When it was written, in UTC.
        metrics: The scores of its weights, once evaluated.
        has_ema: Whether it was written with averaged weights.
        batch: What fixes the order of samples.
        marks: Size and CRC-32C of the files; empty where one of the first versions wrote it.
        format: By which its files are read.
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
        """The weights, which may lie in parts; the averaged ones where asked for and there."""
        return self.path / (EMA if ema and self.has_ema else MODEL)

    @property
    def files(self) -> Sequence[str]:
        """The names of its files, apart from its record."""
        return list(self.marks) or [MODEL, *([EMA] if self.has_ema else []), OLDER_STATE]

    def check(self, *, with_state: bool) -> None:
        """Check that the files are as they were written.

        Args:
            with_state: Also what only a run that goes on needs.

        Raises:
            DamagedError: One is missing or damaged.
        """
        for name in self.files:
            if with_state or whole_name(name) not in _TO_GO_ON:
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
    """Write `directory/step-N` so that it is there whole or not at all.

    Args:
        directory: The run's `checkpoints` directory.
        step: Finished steps.
        epoch: Finished epochs.
        model: The model's state dict.
        ema: The averaged weights, if any.
        state: Optimizers, loss scale and what else a resumed run needs.
        batch: What fixes the order of samples: global batch size, size of an epoch, seed.

    Raises:
        NotWrittenError: The disk is full or cannot be written.
    """
    files = {MODEL: model, EMA: ema, OPTIMIZER: state.slots or None}
    beside = unfinished(directory, step)
    try:
        begin_checkpoint(beside)
        marks: dict[str, FileMark] = {}
        for name, tensors in files.items():
            if tensors is not None:
                marks |= write_part(beside, name, tensors)
        return finish_checkpoint(
            beside, step=step, epoch=epoch, values=state.values, batch=batch, marks=marks
        )
    except (OSError, RuntimeError, SafetensorError, UserError) as error:
        shutil.rmtree(beside, ignore_errors=True)
        # Where JSON was to be written, the system's own error is the cause of ours.
        cause = error.__cause__ if isinstance(error, UserError) else error
        raise NotWrittenError(
            f"the checkpoint of step {step} could not be written: {_reason(cause or error)}",
            where=str(directory),
            todo="Free some space or choose another --run-dir; earlier checkpoints are unharmed.",
        ) from error


def unfinished(directory: Path, step: int) -> Path:
    """Where all ranks write the parts of a checkpoint until it is finished."""
    return directory / f".step-{step:08d}.unfinished"


def begin_checkpoint(beside: Path) -> None:
    """Make the place of `unfinished`; the first rank does, before any other writes its part."""
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
    """Write what is no tensor and then the record, and move the checkpoint to its place.

    The first rank does, when all have written their parts.

    Args:
        beside: From `unfinished`.
        step: Finished steps.
        epoch: Finished epochs.
        values: Of the saved state.
        batch: What fixes the order of samples.
        marks: What `write_part` returned on all ranks.
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
    """What a checkpoint says of itself; its other files are not looked at.

    Raises:
        DamagedError: Its record is damaged.
        UserError: A later version wrote it.
    """
    file = path / RECORD
    try:
        record = read_json(file)
    except UserError as error:
        raise DamagedError(error.what, where=error.where) from None
    if not is_intact(record):
        raise DamagedError("is damaged: its content is not what was written", where=str(file))
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
        raise DamagedError(f"lacks or has a malformed field {error}", where=str(file)) from None
    if step_of(path) not in (None, checkpoint.step):
        raise DamagedError(f"is of step {checkpoint.step}", where=str(file))
    if checkpoint.format > FORMAT:
        raise UserError(
            f"is of format {checkpoint.format}, and this version of jumar reads up to {FORMAT}",
            where=str(file),
            todo="Use the version that wrote it, or a later one.",
        )
    return checkpoint


def step_of(path: Path) -> int | None:
    """The step in the name of a checkpoint's directory; None for any other name."""
    match = _NAME.match(path.name)
    return None if match is None else int(match[1])


def check_weights_file(path: Path) -> None:
    """Check a file of weights that lies in a checkpoint; any other has no mark to hold it to.

    Raises:
        DamagedError: It is damaged, or the checkpoint's record is.
    """
    if is_file(path.parent / RECORD):
        _check(path, read_checkpoint(path.parent).marks.get(path.name))


def load_weights(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file, which may lie in parts, on the CPU.

    Raises:
        UserError: The file or a part of it is missing or damaged.
    """
    tensors = PartedTensors(path)
    return {name: tensors.read(name) for name in tensors.shapes}


def load_state(
    checkpoint: Checkpoint, names: Mapping[str, Sequence[Sequence[str]]] | None = None
) -> SavedState:
    """The trainer's state; nothing in the files can run code.

    Args:
        checkpoint: Whose state.
        names: See `load_older_state`.

    Raises:
        UserError: A file is missing or damaged.
    """
    needed = [name for name in checkpoint.files if whole_name(name) in _TO_GO_ON]
    for name in needed:
        _check(checkpoint.path / name, checkpoint.marks.get(name))
    if checkpoint.format == 1:
        return load_older_state(checkpoint.path / OLDER_STATE, names or {})
    has_slots = OPTIMIZER in map(whole_name, needed)
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
    """What went wrong, without the source lines of torch's own errors."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
