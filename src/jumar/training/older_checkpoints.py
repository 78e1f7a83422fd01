"""Checkpoints of earlier versions, with their state in `state.pt`; the oldest have no checksums.

The file was written by `torch.save`; only tensors, numbers and strings are loaded from it. It is
no longer written, but converted to the state of current checkpoints.
"""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open

from jumar.ground.errors import UserError
from jumar.training.checkpoint_files import DamagedError, damage_of
from jumar.training.checkpoint_state import SavedState
from jumar.training.optimizers.slots import named_state

OLDER_STATE = "state.pt"


def check_whole(path: Path) -> None:
    """Check that a file without a recorded checksum is complete.

    Args:
        path: A safetensors file, or one written by `torch.save`.

    Raises:
        DamagedError: The file is damaged, or cannot be read.
    """
    with damage_of(path):
        try:
            if path.suffix == ".safetensors":
                with safe_open(path, framework="pt"):  # compares the header with the file's length
                    return
            with zipfile.ZipFile(path) as archive:
                broken_entry = archive.testzip()
        except (SafetensorError, zipfile.BadZipFile) as error:
            raise DamagedError(f"is damaged: {error}", where=str(path)) from None
        if broken_entry is not None:
            raise DamagedError(
                f"is damaged: its entry '{broken_entry}' is corrupt", where=str(path)
            )


def load_older_state(path: Path, names: Mapping[str, Sequence[Sequence[str]]]) -> SavedState:
    """Read the state from a `state.pt`; nothing in the file can run code.

    Args:
        path: The file.
        names: By objective, the parameters of each group in the optimizer's order, for
            checkpoints written before parameter names were stored.

    Raises:
        UserError: The file is damaged, or belongs to another recipe.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:
        # torch raises a different class for each way a file can be damaged, and some of its
        # messages suggest loading the file in a way that runs code from it.
        state = None
    if not isinstance(state, dict):
        raise UserError(
            "cannot be read: it is damaged, or contains more than tensors, numbers and strings",
            where=str(path),
            todo="Anything else could run code and is not read. Remove "
            f"'{path.parent}' to resume from the checkpoint before it.",
        )
    older = cast("dict[str, Any]", state)
    try:
        if "optimizers" in older:
            return _state_of_run(older, names)
        return _imported_state(older) if "slots" in older else SavedState()
    except (KeyError, ValueError, TypeError) as error:
        raise UserError(f"does not fit this recipe: {error}", where=str(path)) from None


def _state_of_run(
    older: Mapping[str, Any], names: Mapping[str, Sequence[Sequence[str]]]
) -> SavedState:
    stored_names: Mapping[str, Sequence[Sequence[str]]] = older.get("parameters", names)
    slots: dict[str, torch.Tensor] = {}
    objectives: dict[str, Any] = {}
    for objective in stored_names:
        tensors, groups = named_state(
            older["optimizers"][objective], stored_names[objective], objective
        )
        slots |= tensors
        window = older["windows"][objective]
        objectives[objective] = {
            # The oldest versions did not count updates; assume one per step.
            "updates": older.get("updates", {}).get(objective, older["step"]),
            "window": {"sums": _numbers(window["sums"]), "steps": window["steps"]},
            "groups": groups,
        }
    scale = older["loss_scale"]
    values = {
        "step": older["step"],
        "elapsed_s": older["elapsed_s"],
        "objectives": objectives,
        "loss_scale": None if scale is None else _numbers(scale),
    }
    return SavedState(values=values, slots=slots)


def _imported_state(older: Mapping[str, Any]) -> SavedState:
    slots = {
        f"{parameter}/{key}": value
        for parameter, parameter_slots in older["slots"].items()
        for key, value in parameter_slots.items()
    }
    return SavedState(values={"step": older["step"], "powers": older["powers"]}, slots=slots)


def _numbers(tensors: Mapping[str, torch.Tensor]) -> dict[str, float]:
    return {name: tensor.item() for name, tensor in tensors.items()}
