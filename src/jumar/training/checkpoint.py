"""Checkpoints: written whole or not at all, kept by age and score, read without running code.

A checkpoint is a directory `step-00000120`. It is written under another name, flushed to the
disk and renamed, so a `kill -9` at any moment leaves the earlier checkpoints as they were and at
most one directory whose name begins with a dot, which the next start removes. Nothing points at
the newest or best checkpoint: both are read from what is there, so no pointer can be stale.
"""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from jumar.errors import UserError
from jumar.paths import is_file, is_folder
from jumar.training.run_directory import read_json, write_json

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
        has_ema: Whether averaged weights are there.
    """

    path: Path
    step: int
    epoch: float
    time: str
    metrics: Mapping[str, float]
    has_ema: bool
    batch: Mapping[str, int]

    def model_file(self, *, ema: bool) -> Path:
        """The weights; the averaged ones where asked for and there."""
        return self.path / (EMA if ema and self.has_ema else MODEL)


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
        record = {
            "step": step,
            "epoch": epoch,
            "time": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S"),
            "metrics": {},
            "batch": dict(batch),
        }
        write_json(beside / RECORD, record)
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
    record["metrics"] = dict(metrics)
    write_json(checkpoint.path / RECORD, record)
    return read_checkpoint(checkpoint.path)


def read_checkpoint(path: Path) -> Checkpoint:
    """What a checkpoint says of itself.

    Raises:
        UserError: It is damaged.
    """
    record = read_json(path / RECORD)
    try:
        return Checkpoint(
            path=path,
            step=int(record["step"]),
            epoch=float(record["epoch"]),
            time=str(record["time"]),
            metrics={
                k: float("nan") if v is None else float(v) for k, v in record["metrics"].items()
            },
            has_ema=is_file(path / EMA),
            batch={k: int(v) for k, v in record["batch"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"lacks or spoils the field {error}", where=str(path / RECORD)) from None


def list_checkpoints(directory: Path) -> list[Checkpoint]:
    """The checkpoints of a run, oldest first."""
    if not is_folder(directory):
        return []
    found = [path for path in directory.iterdir() if _NAME.match(path.name)]
    return [read_checkpoint(path) for path in sorted(found, key=lambda path: int(path.name[5:]))]


def find_checkpoint(
    directory: Path, which: str, headline: tuple[str, bool] | None = None
) -> Checkpoint:
    """A checkpoint by `last`, `best` or its step.

    Args:
        directory: The run's `checkpoints` directory.
        which: `last`, `best`, or a number of steps.
        headline: Metric name and whether higher is better, for `best`.

    Raises:
        UserError: There is none of that description.
    """
    checkpoints = list_checkpoints(directory)
    if not checkpoints:
        raise UserError(f"there is no checkpoint in '{directory}'")
    if which == "last":
        return checkpoints[-1]
    if which == "best":
        best = best_checkpoint(checkpoints, headline) if headline else None
        if best is None:
            raise UserError(
                "no checkpoint has been scored yet", where=str(directory), todo="Use 'last'."
            )
        return best
    for checkpoint in checkpoints:
        if which == str(checkpoint.step):
            return checkpoint
    steps = ", ".join(str(checkpoint.step) for checkpoint in checkpoints)
    raise UserError(
        f"there is no checkpoint '{which}'",
        where=str(directory),
        todo=f"There are: {steps}, last, best.",
    )


def best_checkpoint(
    checkpoints: Sequence[Checkpoint], headline: tuple[str, bool]
) -> Checkpoint | None:
    """The best-scored checkpoint, the later one of equals; None where none is scored."""
    name, higher = headline
    scored = [
        c
        for c in checkpoints
        if c.metrics.get(name) is not None and c.metrics[name] == c.metrics[name]
    ]
    if not scored:
        return None
    sign = 1.0 if higher else -1.0
    return max(scored, key=lambda c: (sign * c.metrics[name], c.step))


def drop_checkpoints(
    directory: Path, *, keep: int, keep_best: bool, headline: tuple[str, bool]
) -> None:
    """Remove all but the newest `keep` checkpoints and, if asked, the best one."""
    checkpoints = list_checkpoints(directory)
    kept = {c.path for c in checkpoints[-keep:]}
    best = best_checkpoint(checkpoints, headline) if keep_best else None
    if best is not None:
        kept.add(best.path)
    for checkpoint in checkpoints:
        if checkpoint.path not in kept:
            hidden = directory / f".{checkpoint.path.name}.dropped"
            checkpoint.path.replace(hidden)
            shutil.rmtree(hidden, ignore_errors=True)


def remove_leftovers(directory: Path) -> None:
    """Remove what a killed process left half-written."""
    if is_folder(directory):
        for path in directory.glob(".step-*"):
            shutil.rmtree(path, ignore_errors=True)


def load_weights(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file, on the CPU.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise UserError(f"cannot be read as safetensors: {error}", where=str(path)) from None


def load_state(checkpoint: Checkpoint) -> dict[str, Any]:
    """The trainer's state; nothing in the file can run code.

    Raises:
        UserError: The file is missing or damaged.
    """
    path = checkpoint.path / STATE
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises a different class for each way a file can be damaged
        raise UserError(
            f"cannot be read: {str(error).splitlines()[0]}",
            where=str(path),
            todo=f"Remove '{checkpoint.path}' to go on from the checkpoint before it.",
        ) from None


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
