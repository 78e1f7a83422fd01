"""The tensors of a dump: safetensors files, read one by one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open

from jumar.ground.errors import UserError
from jumar.ground.paths import is_file, missing, unreadable
from jumar.precision.dumps.dump import Call, dtype_name
from jumar.precision.dumps.tensor_file import write_tensors

SHARD_BYTES: Final = 1 << 30
AGAIN: Final = "Dump that step again; other steps in the folder are not affected."


@dataclass(frozen=True, slots=True)
class View:
    """A tensor that is stored as a view of another one."""

    base: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]


class Shards:
    """The tensors of a dump; a file is opened when one of its tensors is read, and stays open.

    Args:
        folder: The folder of the step and rank.
        sizes: The size of each file in bytes.
        views: Tensors that are stored as views of others.
        calls: The calls with these tensors.
    """

    def __init__(
        self,
        folder: Path,
        sizes: Mapping[str, int],
        views: Mapping[str, View],
        calls: Sequence[Call],
    ) -> None:
        self._folder, self._sizes, self._views = folder, sizes, views
        self._open: dict[Path, Any] = {}
        self._values = {
            value.tensor: value for call in calls for value in call.values if value.tensor
        }

    def read(self, name: str) -> torch.Tensor:
        """See `Tensors.read`."""
        view = self._views.get(name)
        stored_name = name if view is None else view.base
        path = self._files.get(stored_name)
        if path is None:
            raise UserError(f"the tensor '{name}' is missing", where=str(self._folder), todo=AGAIN)
        try:
            # Open each file only once, because that reads the names of all its tensors.
            if path not in self._open:
                self._open[path] = safe_open(path, framework="pt")
            tensor: torch.Tensor = self._open[path].get_tensor(stored_name)
        except (OSError, SafetensorError) as error:
            raise unreadable(path, error, more=AGAIN) from error
        try:
            if view is not None:
                tensor = tensor.as_strided(view.shape, view.stride)
        except RuntimeError as error:
            raise self._wrong_tensor(name, tensor, path) from error
        value = self._values.get(name)
        if value is not None and dtype_name(tensor.dtype) != value.dtype:
            raise self._wrong_tensor(name, tensor, path)
        return tensor

    def _wrong_tensor(self, name: str, tensor: torch.Tensor, path: Path) -> UserError:
        dtype, shape = dtype_name(tensor.dtype), list(tensor.shape)
        return UserError(
            f"the tensor '{name}' in the file is not the dumped one: {dtype} {shape}",
            where=str(path),
            todo=AGAIN,
        )

    @cached_property
    def _files(self) -> dict[str, Path]:
        """Return the file of every tensor, by name."""
        files: dict[str, Path] = {}
        for name, size in self._sizes.items():
            path = self._folder / name
            if not is_file(path):
                raise missing(path, "file of tensors", more=AGAIN)
            if path.stat().st_size != size:
                raise UserError(
                    f"has {path.stat().st_size:,} bytes instead of {size:,}",
                    where=str(path),
                    todo=AGAIN,
                )
            try:
                with safe_open(path, framework="pt") as file:
                    files |= dict.fromkeys(file.keys(), path)
            except (OSError, SafetensorError) as error:
                raise unreadable(path, error, more=AGAIN) from error
        return files


def write_shards(
    folder: Path, tensors: Mapping[str, torch.Tensor], shard_bytes: int
) -> dict[str, int]:
    """Write tensors to files of limited size; return the size of each file in bytes."""
    parts: list[dict[str, torch.Tensor]] = []
    bytes_left = 0
    for name, tensor in tensors.items():
        if not parts or tensor.nbytes > bytes_left:
            parts.append({})
            bytes_left = shard_bytes
        parts[-1][name] = tensor
        bytes_left -= tensor.nbytes
    sizes: dict[str, int] = {}
    for number, part in enumerate(parts, 1):
        path = folder / f"tensors-{number:05d}-of-{len(parts):05d}.safetensors"
        write_tensors(path, part)
        sizes[path.name] = path.stat().st_size
    return sizes
