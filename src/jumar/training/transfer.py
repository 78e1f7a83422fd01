"""Transfer learning: starting from existing weights, optionally without some of them."""

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from jumar.ground.errors import UserError
from jumar.ground.paths import expanded, is_file, is_folder, missing
from jumar.training.checkpoint import (
    MODEL,
    RECORD,
    Checkpoint,
    check_weights_file,
    load_weights,
    read_checkpoint,
)
from jumar.training.checkpoint_parts import files_of, is_stored
from jumar.training.checkpoint_retention import find_checkpoint
from jumar.training.name_patterns import matches, matches_any
from jumar.training.run_directory import RunDirectory, read_json
from jumar.training.settings import TransferSettings
from jumar.weights.checkpoint_paths import is_checkpoint
from jumar.weights.torch_files import check_no_torch_file

_HUGGING_FACE = "config.json"
"""A file next to the weights in Hugging Face's folders, but not in ours."""


Fitting = Callable[[Mapping[str, Sequence[int]], Mapping[str, Any]], Sequence[str]]
"""Returns the assignments that make the network match weights of the given shapes and
configuration; see `Recipe.settings_of_weights`.
"""


@dataclass(frozen=True, kw_only=True)
class Transferred:
    """The fate of each weight of the file and of the model.

    Attributes:
        fitting: The assignments that would make the model match the weights.
    """

    source: str
    loaded: Sequence[str]
    left_out: Sequence[str]
    wrong_shape: Sequence[str]
    unknown: Sequence[str]
    initialised: Sequence[str]
    fitting: Sequence[str] = ()

    def lines(self) -> list[str]:
        """The lines that `jumar train` prints."""
        lines = [f"weights from {self.source}: {len(self.loaded)} loaded"]
        for title, names in (
            ("excluded by restore_exclude", self.left_out),
            ("not loaded, wrong shape", self.wrong_shape),
            ("only in the file", self.unknown),
            ("initialised", self.initialised),
        ):
            if names:
                listing = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
                lines.append(f"  {title} ({len(names)}): {listing}")
        if self.fitting:
            lines.append(
                f"  the weights belong to a network with other settings; {_advice(self.fitting)}"
            )
        return lines


def transfer_weights(
    model: nn.Module, settings: TransferSettings, fitting: Fitting | None = None
) -> Transferred:
    """Load weights into the model.

    Weights whose shape differs (a different number of classes) are not loaded, but reported. A
    file without any matching weight is rejected. Hugging Face's files of a bare encoder lack the
    first part of all names, which is added.

    Args:
        model: The network.
        settings: The path of the weights, and the weights to leave out.
        fitting: Finds the settings of the weights' original network, for the report.

    Raises:
        UserError: The file does not exist, is damaged or has no matching weight, or a pattern
            matches nothing.
    """
    source, path = weights_path(settings)
    tensors = {_renamed(name): tensor for name, tensor in load_weights(path).items()}
    prefix = _missing_prefix(model.state_dict(), tensors)
    tensors = {prefix + name: tensor for name, tensor in tensors.items()}
    unused = [
        pattern
        for pattern in settings.restore_exclude
        if not any(matches(name, pattern) for name in tensors)
    ]
    if unused:
        raise UserError(
            f"restore_exclude pattern '{unused[0]}' matches no weight of '{source}'",
            where="transfer.restore_exclude",
            todo=f"Examples of weight names: {', '.join(list(tensors)[-4:])}.",
        )
    fits: Sequence[str] = ()
    if fitting is not None:
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        fits = fitting(shapes, _configuration(path))
    try:
        transferred = load_matching(model, tensors, settings.restore_exclude, source)
    except UserError as error:
        if fits:
            error.todo = (
                f"{error.todo}\n  They belong to a network with other settings; {_advice(fits)}"
            )
        raise
    return replace(transferred, fitting=fits)


def _advice(assignments: Sequence[str]) -> str:
    return f"to match it: {' '.join(f'--set {assignment}' for assignment in assignments)}"


def _configuration(weights: Path) -> Mapping[str, Any]:
    """The content of a Hugging Face folder's `config.json`; empty for weights from elsewhere."""
    path = weights.with_name(_HUGGING_FACE)
    return read_json(path) if weights.name == MODEL and is_file(path) else {}


def _missing_prefix(own_names: Collection[str], names: Collection[str]) -> str:
    """The prefix that all names in a file lack; empty if there is none or it is ambiguous."""
    if any(name in own_names for name in names):
        return ""
    prefixes = {
        own_name.removesuffix(name)
        for name in names
        for own_name in own_names
        if own_name.endswith(f".{name}")
    }
    return prefixes.pop() if len(prefixes) == 1 else ""


def load_matching(
    model: nn.Module, tensors: Mapping[str, torch.Tensor], exclude: Sequence[str], source: str
) -> Transferred:
    """Copy the matching tensors into the model; see `transfer_weights`."""
    weights = model.state_dict()
    loaded: list[str] = []
    left_out: list[str] = []
    wrong_shape: list[str] = []
    unknown_names: list[str] = []
    for name, tensor in tensors.items():
        if matches_any(name, exclude):
            left_out.append(name)
        elif name not in weights:
            unknown_names.append(name)
        elif weights[name].shape != tensor.shape:
            wrong_shape.append(f"{name} {_shape(tensor)} instead of {_shape(weights[name])}")
        else:
            weights[name].copy_(tensor)
            loaded.append(name)
    if not loaded:
        raise UserError(
            f"no weight of '{source}' matches the model",
            todo=f"The file has {', '.join(list(tensors)[:3])}, ...; "
            f"the model has {', '.join(list(weights)[:3])}, ...",
        )
    loaded_names = set(loaded)
    return Transferred(
        source=source,
        loaded=loaded,
        left_out=left_out,
        wrong_shape=wrong_shape,
        unknown=unknown_names,
        initialised=[name for name in weights if name not in loaded_names],
    )


def weights_path(settings: TransferSettings) -> tuple[str, Path]:
    """The weights file that `transfer.start_from` points to, or that is in the checkpoint, run or
    Hugging Face folder there.
    """
    path = expanded(settings.start_from)
    is_ours = any(is_file(path / name) for name in (MODEL, RECORD))
    if not (is_ours or RunDirectory(path).exists) and (is_checkpoint(path) or path.suffix == ".pb"):
        raise UserError(
            f"'{path}' contains TensorFlow weights",
            where="transfer.start_from",
            todo=f"Import them first: jumar weights import RECIPE {shlex.quote(str(path))} "
            "--to NAME.safetensors",
        )
    check_no_torch_file(path)
    has_model = is_stored(path / MODEL)
    if is_file(path / _HUGGING_FACE) and has_model and not is_file(path / RECORD):
        path, is_ours = path / MODEL, False
    if is_stored(path):
        for file in files_of(path):
            check_weights_file(file)
        return str(path), path
    if is_ours:
        checkpoint: Checkpoint = read_checkpoint(path)
        checkpoint.check(with_state=False)
    elif is_folder(path):
        checkpoint = find_checkpoint(RunDirectory(path).checkpoints, "last")
    else:
        raise missing(path, where="transfer.start_from")
    return str(checkpoint.path), checkpoint.model_file(ema=settings.use_ema)


def _renamed(name: str) -> str:
    """A weight's name in our networks.

    Hugging Face's oldest BERT files have TensorFlow's names of norms, and names in its NEZHA files
    begin with `nezha`.
    """
    if name.startswith("nezha."):
        name = f"bert.{name.removeprefix('nezha.')}"
    for old, new in (("LayerNorm.gamma", "weight"), ("LayerNorm.beta", "bias")):
        if name.endswith(old):
            return f"{name.rpartition('.')[0]}.{new}"
    return name


def _shape(tensor: torch.Tensor) -> str:
    return "x".join(str(size) for size in tensor.shape) or "scalar"
