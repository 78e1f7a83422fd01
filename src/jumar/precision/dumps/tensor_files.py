"""Read tensors of other tools in torch's or numpy's format, one per file, executing no code."""

from collections.abc import Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Final

import numpy as np
import torch

from jumar.ground.errors import UserError
from jumar.ground.paths import is_file, missing, open_to_read, unreadable

_AGAIN: Final = "Copy the folder again, with all of its tensor files, or dump that step again."


class TensorFiles:
    """The tensors of a dump with one file per tensor.

    Args:
        paths: The file of every tensor, by `Value.tensor`.
    """

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = paths

    def read(self, name: str) -> torch.Tensor:
        """See `Tensors.read`."""
        path = self._paths.get(name)
        if path is None:
            raise UserError(f"the dump contains no tensor '{name}'")
        if not is_file(path):
            raise missing(path, "tensor file", more=_AGAIN)
        return read_npy(path) if path.suffix == ".npy" else _read_torch(path)


def read_npy(path: Path, *, header_only: bool = False) -> torch.Tensor:
    """Read a tensor in numpy's format; pickled objects are refused.

    Args:
        path: The file.
        header_only: Whether to read only dtype and shape, not the elements.

    Raises:
        UserError: The file cannot be read, is truncated, or contains elements other than numbers.
    """
    try:
        with open_to_read(path) as file:
            if header_only:
                array = np.load(path, mmap_mode="r", allow_pickle=False)
                return torch.empty(array.shape, dtype=_torch_dtype(array.dtype), device="meta")
            array = np.load(file, allow_pickle=False)
        _torch_dtype(array.dtype)
        return torch.from_numpy(np.ascontiguousarray(array).reshape(array.shape).copy())
    except (
        OSError,
        EOFError,
        ValueError,
        TypeError,
        SyntaxError,
        TokenError,
        OverflowError,
    ) as error:
        # numpy parses the header as Python, without handling errors or checking sizes.
        raise unreadable(path, error, more=_AGAIN) from error


def _torch_dtype(dtype: "np.dtype[np.generic]") -> torch.dtype:
    return torch.from_numpy(np.empty(0, dtype)).dtype


def _read_torch(path: Path) -> torch.Tensor:
    try:
        tensor = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise unreadable(path, error, more=_AGAIN) from error
    except Exception as error:
        # torch raises many kinds of errors for damaged files, and some of its messages suggest
        # loading the file in a way that executes code in it.
        raise UserError(
            "is damaged, or contains more than a tensor", where=str(path), todo=_AGAIN
        ) from error
    if not isinstance(tensor, torch.Tensor):
        raise UserError(f"contains a {type(tensor).__name__}, not a tensor", where=str(path))
    return tensor.detach()
