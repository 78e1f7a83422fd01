"""Checkpoints: written whole or not at all, kept by age and score, read without running code.

A checkpoint is a directory `step-00000120`. It is written under another name, flushed to the
disk and renamed, so a `kill -9` at any moment leaves the earlier checkpoints as they were and at
most one directory whose name begins with a dot, which the next start removes. `checkpoint.json`
holds size and CRC-32C of the other files and of itself.
"""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from jumar.ground.errors import UserError
from jumar.ground.paths import is_file
from jumar.training.checkpoint_files import (
    DamagedError,
    FileMark,
    check_file,
    is_intact,
    mark_of,
    sealed,
)
from jumar.training.run_directory import finite, read_json, write_json

MODEL = "model.safetensors"
EMA = "ema.safetensors"
STATE = "state.pt"
RECORD = "checkpoint.json"
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
        marks: Size and CRC-32C of the files; empty where an earlier version wrote it.
    """

    path: Path
    step: int
    epoch: float
    time: str
    metrics: Mapping[str, float]
    has_ema: bool
    batch: Mapping[str, int]
    marks: Mapping[str, FileMark] = field(default_factory=dict[str, FileMark])

    def model_file(self, *, ema: bool) -> Path:
        """The weights; the averaged ones where asked for and there."""
        return self.path / (EMA if ema and self.has_ema else MODEL)

    def check(self, *, with_state: bool) -> None:
        """Check that the files are as they were written.

        Args:
            with_state: Also what only a run that goes on needs.

        Raises:
            DamagedError: One is missing or damaged.
        """
        names = [MODEL, *([EMA] if self.has_ema else []), *([STATE] if with_state else [])]
        for name in names:
            check_file(self.path / name, self.marks.get(name))


def write_checkpoint(
    directory: Path,
    *,
    step: int,
    epoch: float,
    model: Mapping[str, torch.Tensor],
    ema: Mapping[str, torch.Tensor] | None,
    state: Mapping[str, Any],
    batch: Mapping[str, int],
) -> Checkpoint:
    """Write `directory/step-N` so that it is there whole or not at all.

    Args:
        directory: The run's `checkpoints` directory.
        step: Finished steps.
        epoch: Finished epochs.
        model: The model's state dict.
        ema: The averaged weights, if any.
        state: Optimizers, loss scale and what else a resumed run needs: tensors, numbers,
            strings, lists and dicts only, since it is read with `weights_only=True`.
        batch: What fixes the order of samples: global batch size, size of an epoch, seed.

    Raises:
        NotWrittenError: The disk is full or cannot be written.
    """
    final = directory / f"step-{step:08d}"
    beside = directory / f".step-{step:08d}.{os.getpid()}"
    try:
        beside.mkdir(parents=True, exist_ok=True)
        save_file(_storable(model), beside / MODEL)
        if ema is not None:
            save_file(_storable(ema), beside / EMA)
        torch.save(dict(state), beside / STATE)
        marks = {file.name: asdict(mark_of(file)) for file in beside.iterdir()}
        record = {
            "step": step,
            "epoch": epoch,
            "time": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S"),
            "metrics": {},
            "batch": dict(batch),
            "files": marks,
        }
        write_json(beside / RECORD, sealed(record))
        for file in beside.iterdir():
            # safetensors makes its files readable for nobody else, whatever the umask says.
            file.chmod((beside / RECORD).stat().st_mode)
            _flush(file)
        if final.exists():
            shutil.rmtree(final)
        beside.replace(final)
        _flush(directory)
    except (OSError, RuntimeError, SafetensorError) as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise NotWrittenError(
            f"the checkpoint of step {step} could not be written: {_reason(error)}",
            where=str(directory),
            todo="Free some space or choose another --run-dir; earlier checkpoints are unharmed.",
        ) from error
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
            has_ema=EMA in marks if marks else is_file(path / EMA),
            batch={k: int(v) for k, v in record["batch"].items()},
            marks=marks,
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DamagedError(f"lacks or has a malformed field {error}", where=str(file)) from None
    if step_of(path) not in (None, checkpoint.step):
        raise DamagedError(f"is of step {checkpoint.step}", where=str(file))
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
        check_file(path, read_checkpoint(path.parent).marks.get(path.name))


def load_weights(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file, on the CPU.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        return load_file(path)
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise UserError(f"cannot be read as safetensors: {error}", where=str(path)) from None


def load_state(checkpoint: Checkpoint) -> dict[str, Any]:
    """The trainer's state; nothing in the file can run code.

    Raises:
        UserError: The file is missing or damaged.
    """
    path = checkpoint.path / STATE
    check_file(path, checkpoint.marks.get(STATE))
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:
        # torch raises a different class for each way a file can be damaged, and advises in some
        # texts to load the file in a way that runs the code in it.
        state = None
    if not isinstance(state, dict):
        raise UserError(
            "cannot be read: it is damaged, or holds more than tensors, numbers and texts",
            where=str(path),
            todo="Nothing else is read, since it could run code. Remove "
            f"'{checkpoint.path}' to go on from the checkpoint before it.",
        )
    return cast("dict[str, Any]", state)


def _reason(error: Exception) -> str:
    """What went wrong, without the source lines of torch's own errors."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _storable(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Contiguous copies on the CPU; tensors that share memory (tied weights) are each stored."""
    stored: dict[str, torch.Tensor] = {}
    seen: set[int] = set()
    for name, tensor in tensors.items():
        value = tensor.detach().to("cpu").contiguous()
        if value.numel() and value.untyped_storage().data_ptr() in seen:
            value = value.clone()
        if value.numel():
            seen.add(value.untyped_storage().data_ptr())
        stored[name] = value
    return stored


def _flush(path: Path) -> None:
    """Make a file or a directory's entries survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
