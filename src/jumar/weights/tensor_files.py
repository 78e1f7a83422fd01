"""One interface for every kind of weights file: names, shapes, types, values."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError, safe_open

from jumar.ground.errors import UserError
from jumar.ground.paths import is_file, is_folder, missing
from jumar.weights.frozen_graph import read_constants
from jumar.weights.tensor_bundle import open_checkpoint
from jumar.weights.tensor_types import Array, TensorEntry
from jumar.weights.torch_files import check_no_torch_file

SAFETENSORS = ".safetensors"
FROZEN_GRAPH = ".pb"
_NAMES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "half",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3",
    "F8_E5M2": "float8_e5m2",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}
"""TensorFlow's names for the element types of safetensors, so that two files can be compared."""


class TensorFile(Protocol):
    """A file of named tensors; values are read on demand."""

    def names(self) -> list[str]:
        """Return the tensors' names, in the order of the file."""
        ...

    def entry(self, name: str) -> TensorEntry:
        """Return the shape and element type of a tensor."""
        ...

    def read(self, name: str) -> Array:
        """Return the values of a tensor."""
        ...


class SafetensorsFile:
    """A `.safetensors` file.

    Args:
        path: The file.

    Raises:
        UserError: It cannot be read.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = safe_open(path, framework="pt")
            self._entries = {name: self._entry(name) for name in self._file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise UserError(f"cannot be read as safetensors: {error}", where=str(path)) from None

    def names(self) -> list[str]:
        """Return the tensors' names, in the order of the file."""
        return list(self._entries)

    def entry(self, name: str) -> TensorEntry:
        """Return the shape and element type of a tensor."""
        return self._entries[name]

    def read(self, name: str) -> Array:
        """Return the values of a tensor; bfloat16 becomes float32."""
        values: torch.Tensor = self._file.get_tensor(name)
        return (values.float() if values.dtype == torch.bfloat16 else values).numpy()

    def _entry(self, name: str) -> TensorEntry:
        view = self._file.get_slice(name)
        return stored_entry(name, view.get_shape(), str(view.get_dtype()))


def stored_entry(name: str, shape: Sequence[int], dtype: str) -> TensorEntry:
    """Return the entry of a tensor from the header fields of a safetensors file, such as `F32`."""
    return TensorEntry(name=name, shape=tuple(shape), dtype=_NAMES.get(dtype, dtype.lower()))


def open_tensors(path: Path) -> TensorFile:
    """Open a safetensors file, a frozen TensorFlow graph or a TensorFlow checkpoint.

    Args:
        path: The suffix `.safetensors` or `.pb` decides; any other path is a checkpoint.

    Raises:
        UserError: There is no such file, it is damaged, or `torch.save` wrote it.
    """
    if path.suffix == SAFETENSORS and not is_folder(path):
        if not is_file(path):
            raise missing(path, "file")
        check_no_torch_file(path)
        return SafetensorsFile(path)
    return open_tensorflow(path)


def open_tensorflow(path: Path) -> TensorFile:
    """Open a frozen graph or a checkpoint of TensorFlow.

    Raises:
        UserError: There is no such file, it is damaged, or another program wrote it.
    """
    check_no_torch_file(path)
    if path.suffix == FROZEN_GRAPH and not is_folder(path):
        return read_constants(path)
    if path.suffix == SAFETENSORS and is_file(path):
        raise UserError(
            "contains weights written by jumar, not by TensorFlow",
            where=str(path),
            todo="It needs no import: train with --set transfer.start_from=FILE.",
        )
    return open_checkpoint(path)
