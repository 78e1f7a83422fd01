"""Collates samples into a batch: arrays of the same shape are stacked, others are padded."""

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
"""Suffix of the tensor with the unpadded shape of each sample, int64 [N, dimensions]."""


class Collate(Protocol):
    """Collates samples into a batch."""

    def __call__(self, samples: Iterator[Arrays], count: int, /) -> Batch:
        """Return the batch; empty if there is no sample.

        Args:
            samples: The samples; the arrays of one may change when the next one is requested.
            count: Maximum number of samples.

        Raises:
            UserError: The samples do not match, or do not fit into memory.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Stacked:
    """Stacks arrays of the same shape in memory allocated once for the whole batch.

    Attributes:
        what: Name of the samples in messages, in the plural.
        fields: Settings to lower if the samples do not fit into memory.
        sample_bytes: Minimum size of a sample; checked before the first one is produced.
        pictures: Names of arrays [height, width, channels], which become tensors
            [N, channels, height, width] in channels_last memory.
    """

    what: str
    fields: str
    sample_bytes: int = 0
    pictures: tuple[str, ...] = ()

    def __call__(self, samples: Iterator[Arrays], count: int) -> dict[str, Tensor]:
        """Return the batch; see `Collate`."""
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
                    f"the preprocessing returned {', '.join(sample)} for one sample and "
                    f"{', '.join(stacked)} for another",
                    todo="All samples of a batch need the same names.",
                )
            for name, array in sample.items():
                target = stacked[name]
                if target.shape[1:] != array.shape or target.dtype != array.dtype:
                    raise UserError(
                        f"the preprocessing returned '{name}' as {array.dtype} "
                        f"{list(array.shape)} for one sample and as {target.dtype} "
                        f"{list(target.shape[1:])} for another",
                        todo="Resize or pad, so that all samples of a batch have the same shape "
                        "and type.",
                    )
                target[filled - 1] = array
        return {name: self._finished(name, tensor[:filled]) for name, tensor in tensors.items()}

    def _allocated(self, count: int, array: NDArray[np.generic]) -> Tensor:
        check_fits(count, array.nbytes, self.what, self.fields)
        dtype = torch.from_numpy(np.empty(0, array.dtype)).dtype
        return torch.empty((count, *array.shape), dtype=dtype)

    def _finished(self, name: str, tensor: Tensor) -> Tensor:
        is_picture = name in self.pictures and tensor.ndim == 4
        return tensor.permute(0, 3, 1, 2) if is_picture else tensor


@dataclass(frozen=True, kw_only=True)
class Padded(Stacked):
    """`Stacked`, but some arrays differ in size between samples: polygons, lists of tokens.

    These arrays are padded to the largest size in the batch in every dimension, and a tensor named
    with the suffix `_sizes` has the unpadded shapes; `unpadded` returns the arrays as a list.

    Attributes:
        fill: The padding value of each array of variable size, by name.
    """

    fill: Mapping[str, float] = field(default_factory=dict[str, float])

    def __call__(self, samples: Iterator[Arrays], count: int) -> dict[str, Tensor]:
        """Return the batch; see `Collate`."""
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
                f"the preprocessing returned '{name}' with different types or dimensions: "
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
    """Return the arrays of variable size in a batch of `Padded`, without the padding."""
    return [
        row[tuple(map(slice, sizes))]
        for row, sizes in zip(batch[name], batch[name + SIZES].tolist(), strict=True)
    ]
