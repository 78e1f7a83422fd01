"""Tensors in any number of files: written by any number of ranks, and read by any other number.

`optimizer.safetensors` may be split into parts, `optimizer-00001-of-00004.safetensors` and so on,
one per rank. A tensor is either whole in one part or split across several as slices along its first
axis; the header of a part lists the rows of each slice. A reader requests rows without knowing
their part, and only those are read from disk.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from jumar.ground.errors import UserError
from jumar.ground.json_text import parse_json
from jumar.precision.dumps.tensor_file import write_tensors
from jumar.training.checkpoint_files import FileMark, RunningMark

_PART = re.compile(r"^(.+)-(\d{5,})-of-(\d{5,})(\.safetensors)$")
_SLICES = "jumar_slices"


@dataclass(frozen=True, kw_only=True)
class Slice:
    """The rows of a tensor that a part contains.

    Attributes:
        start: The first row, along the first axis.
        rows: Number of rows in the whole tensor.
    """

    start: int
    rows: int


def write_part(
    folder: Path,
    name: str,
    tensors: Mapping[str, torch.Tensor],
    *,
    part: int = 1,
    parts: int = 1,
    slices: Mapping[str, Slice] | None = None,
) -> dict[str, FileMark]:
    """Write one part of a tensor file, and flush it to disk.

    Args:
        folder: The directory to write to.
        name: Name of the whole file, such as `optimizer.safetensors`.
        tensors: The tensors and slices of this part.
        part: The number of this part, counted from 1.
        parts: The number of parts; a single part has the name of the whole file.
        slices: The rows of each tensor that is a slice.

    Returns:
        The mark of the file, keyed by its name.
    """
    path = folder / (name if parts == 1 else _part_name(name, part, parts))
    rows = {
        key: [part_slice.start, part_slice.rows]
        for key, part_slice in sorted((slices or {}).items())
    }
    metadata = {_SLICES: json.dumps(rows)} if rows else None
    running = RunningMark()
    write_tensors(path, _storable(tensors), metadata, on_block=running.add, flushed=True)
    return {path.name: running.mark}


def whole_name(name: str) -> str:
    """The name of the whole file, given its own name or the name of one of its parts."""
    match = _PART.match(name)
    return name if match is None else match[1] + match[4]


class PartedTensors:
    """The tensors of a file that may be in parts; opens the files without reading the tensors.

    Args:
        path: Path of the whole file.

    Attributes:
        shapes: Shapes of the whole tensors, by name.
        dtypes: Their dtypes by name, as safetensors spells them, such as `BF16`.

    Raises:
        UserError: A part is missing or cannot be read, or rows of a tensor are missing.
    """

    def __init__(self, path: Path) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.dtypes: dict[str, str] = {}
        self._pieces: dict[str, list[tuple[int, int, Any]]] = {}
        try:
            for file in files_of(path):
                self._add(safe_open(file, framework="pt"))
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise UserError(f"cannot be read as safetensors: {error}", where=str(path)) from None
        for name, pieces in self._pieces.items():
            pieces.sort(key=lambda piece: piece[:2])
            starts, ends = [start for start, _, _ in pieces], [end for _, end, _ in pieces]
            if [*starts, *(self.shapes[name] or (1,))[:1]] != [0, *ends]:
                raise UserError(
                    f"its parts do not contain each row of '{name}' exactly once", where=str(path)
                )

    def read(self, name: str, start: int = 0, stop: int | None = None) -> torch.Tensor:
        """A tensor, or some of its rows, on the CPU.

        Args:
            name: The tensor's name.
            start: The first row.
            stop: The row after the last one; None for all remaining rows.
        """
        pieces = self._pieces[name]
        if len(pieces) == 1 and start == 0 and stop is None:
            return pieces[0][2].get_tensor(name)
        stop = self.shapes[name][0] if stop is None else stop
        slices = [
            file.get_slice(name)[max(start - first, 0) : min(stop, end) - first]
            for first, end, file in pieces
            if max(start, first) < min(stop, end)
        ]
        if not slices:
            return pieces[0][2].get_slice(name)[:0]
        return slices[0] if len(slices) == 1 else torch.cat(slices)

    def _add(self, file: Any) -> None:
        slices: dict[str, list[int]] = parse_json((file.metadata() or {}).get(_SLICES, "{}"))
        for name in file.keys():  # noqa: SIM118, the file is not a mapping
            view = file.get_slice(name)
            shape_here, dtype = tuple(view.get_shape()), str(view.get_dtype())
            length = shape_here[0] if shape_here else 1
            start, rows = slices.get(name, (0, length))
            shape = (rows, *shape_here[1:]) if shape_here else shape_here
            if self.shapes.setdefault(name, shape) != shape:
                raise ValueError(f"the parts of '{name}' have different shapes")
            if self.dtypes.setdefault(name, dtype) != dtype:
                raise ValueError(f"the parts of '{name}' have different dtypes")
            self._pieces.setdefault(name, []).append((start, start + length, file))


def _part_name(name: str, part: int, parts: int) -> str:
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}-{part:05}-of-{parts:05}{dot}{suffix}"


def files_of(path: Path) -> list[Path]:
    """The file itself, or its parts if it does not exist as a whole."""
    if path.exists() or not path.parent.is_dir():
        return [path]
    for candidate in path.parent.iterdir():
        match = _PART.match(candidate.name)
        if match is not None and whole_name(candidate.name) == path.name:
            parts = int(match[3])
            return [path.with_name(_part_name(path.name, n, parts)) for n in range(1, parts + 1)]
    return [path]


def is_stored(path: Path) -> bool:
    """Whether the file, or a part of it, exists."""
    return any(file.is_file() for file in files_of(path))


def _storable(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Contiguous CPU copies; tensors that share memory (tied weights) are stored separately."""
    copies: dict[str, torch.Tensor] = {}
    pointers: set[int] = set()
    for name, tensor in tensors.items():
        value = tensor.detach().to("cpu").contiguous()
        if value.numel() and value.untyped_storage().data_ptr() in pointers:
            value = value.clone()
        if value.numel():
            pointers.add(value.untyped_storage().data_ptr())
        copies[name] = value
    return copies
