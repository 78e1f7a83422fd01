"""Collating samples into a batch: arrays of one shape are stacked, others padded."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jumar.data.samples import Arrays, Batch
from jumar.ground.errors import UserError
from jumar.ground.machine import check_fits

SIZES = "_sizes"
"""Suffix of the tensor with each sample's own shape, int64 [N, dimensions]."""


class Collate(Protocol):
    """Collates samples into a batch."""

    def __call__(self, samples: Iterator[Arrays], count: int, /) -> Batch:
        """The batch; empty if there is no sample.

        Args:
            samples: Produced one by one; the arrays of one may change when the next is requested.
            count: Maximum number of samples.

        Raises:
            UserError: They do not match, or do not fit in memory.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Stacked:
    """Stacks arrays of one shape in memory allocated once for the whole batch.

    Attributes:
        what: Name of the samples in messages, in the plural.
        fields: Settings to lower if they do not fit in memory.
        sample_bytes: The least memory a sample takes; checked before the first one is produced.
        pictures: Names of arrays [height, width, channels], which become tensors
            [N, channels, height, width] in channels_last memory.
    """

    what: str
    fields: str
    sample_bytes: int = 0
    pictures: tuple[str, ...] = ()

    def __call__(self, samples: Iterator[Arrays], count: int) -> dict[str, Tensor]:
        """The batch; see `Collate`."""
        check_fits(count, self.sample_bytes, self.what, self.fields)
        tensors: dict[str, Tensor] = {}
        stacked: Arrays = {}
        filled = 0
        for filled, sample in enumerate(samples, start=1):
            if not stacked:
                tensors = {name: self._allocated(count, array) for name, array in sample.items()}
                stacked = {name: tensor.numpy() for name, tensor in tensors.items()}
            elif sample.keys() != stacked.keys():
                raise UserError(
                    f"the preprocessing gave {', '.join(sample)} for one sample and "
                    f"{', '.join(stacked)} for another",
                    todo="Every sample of a batch needs the same names.",
                )
            for name, array in sample.items():
                target = stacked[name]
                if target.shape[1:] != array.shape or target.dtype != array.dtype:
                    raise UserError(
                        f"the preprocessing gave '{name}' as {array.dtype} {list(array.shape)} "
                        f"for one sample and as {target.dtype} {list(target.shape[1:])} for "
                        "another",
                        todo="Resize or pad so that the samples of a batch have one shape and "
                        "type.",
                    )
                target[filled - 1] = array
        return {name: self._finished(name, tensor[:filled]) for name, tensor in tensors.items()}

    def _allocated(self, count: int, array: NDArray[np.generic]) -> Tensor:
        check_fits(count, array.nbytes, self.what, self.fields)
        kind = torch.from_numpy(np.empty(0, array.dtype)).dtype
        return torch.empty((count, *array.shape), dtype=kind)

    def _finished(self, name: str, tensor: Tensor) -> Tensor:
        is_picture = name in self.pictures and tensor.ndim == 4
        return tensor.permute(0, 3, 1, 2) if is_picture else tensor


@dataclass(frozen=True, kw_only=True)
class Padded(Stacked):
    """`Stacked`, with arrays whose size differs between samples: polygons, lists of tokens.

    Each of these is padded to the largest in the batch in every dimension, and a tensor of its
    name with `_sizes` holds each sample's own shape; `unpadded` returns them as a list.

    Attributes:
        fill: The padding value of each array of variable size, by name.
    """

    fill: Mapping[str, float] = field(default_factory=dict[str, float])

    def __call__(self, samples: Iterator[Arrays], count: int) -> dict[str, Tensor]:
        """The batch; see `Collate`."""
        variable: dict[str, list[NDArray[np.generic]]] = {name: [] for name in self.fill}

        def fixed() -> Iterator[Arrays]:
            for sample in samples:
                for name, arrays in variable.items():
                    arrays.append(sample[name].copy())
                yield {name: array for name, array in sample.items() if name not in variable}

        batch = super().__call__(fixed(), count)
        for name, arrays in variable.items():
            if arrays:
                batch[name], batch[name + SIZES] = self._padded(name, arrays)
        return batch

    def _padded(self, name: str, arrays: list[NDArray[np.generic]]) -> tuple[Tensor, Tensor]:
        kinds = {(array.dtype, array.ndim) for array in arrays}
        if len(kinds) > 1:
            raise UserError(
                f"the preprocessing gave '{name}' with different types or dimensions: "
                + ", ".join(sorted(f"{dtype} in {ndim} dimensions" for dtype, ndim in kinds)),
                todo="Only the sizes may differ between samples.",
            )
        sizes = np.array([array.shape for array in arrays], dtype=np.int64)
        shape = sizes.max(axis=0).tolist()
        check_fits(len(arrays), arrays[0].itemsize * int(np.prod(shape)), self.what, self.fields)
        padded = np.full((len(arrays), *shape), self.fill[name], dtype=arrays[0].dtype)
        for row, array in zip(padded, arrays, strict=True):
            row[tuple(map(slice, array.shape))] = array
        return torch.from_numpy(padded), torch.from_numpy(sizes)


def unpadded(batch: Batch, name: str) -> list[Tensor]:
    """The arrays of variable size that `Padded` put into a batch, each with its own size."""
    return [
        row[tuple(map(slice, sizes))]
        for row, sizes in zip(batch[name], batch[name + SIZES].tolist(), strict=True)
    ]
