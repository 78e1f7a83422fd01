"""Dropout whose mask is determined by key, sample row and feature.

`nn.Dropout` draws from a stateful generator; see `jumar.models.keyed_random` for why that is not
good enough.
"""

import math
import warnings
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

from jumar.models.keyed_random import (
    Keyed,
    RandomPosition,
    hashes_of_columns,
    hashes_of_rows,
    mixed,
    mixed_in_blocks,
)

_BITS32 = 0xFFFFFFFF


class _Dropout(Keyed):
    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"the probability of dropping must be in [0, 1), not {p}")
        self.p = p

    def extra_repr(self) -> str:
        return f"p={self.p}"


class KeyedDropout(_Dropout):
    """Dropout with a mask from `set_random_position`; the identity in evaluation.

    Features are kept with probability 1 - p and divided by it. Works on [N, ...]; the first
    axis is the sample.

    Args:
        p: Probability of dropping a feature, at least 0 and below 1.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training or self.p == 0:
            return x
        return x * keyed_mask(x, self.p, self.known_position())


class KeyedTokenDropout(_Dropout):
    """Dropout of tokens [tokens, features], whose mask does not depend on padding.

    Args:
        p: Probability of dropping a feature, at least 0 and below 1.
    """

    def forward(self, x: torch.Tensor, samples: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Drop features.

        Args:
            x: [tokens, features].
            samples: int [tokens], the row of each token's sample in the batch.
            places: int [tokens], different for each token of a sample.
        """
        if not self.training or self.p == 0:
            return x
        position = self.known_position()
        return x * _mask(position.start, position.key, samples, places, x.shape[1], self.p, x.dtype)


def keyed_mask(x: torch.Tensor, p: float, position: RandomPosition) -> torch.Tensor:
    """The mask of a batch: 0 where a feature is dropped, 1 / (1 - p) elsewhere.

    Args:
        x: The batch [N, ...], for its shape, dtype and device.
        p: Probability of dropping, in [0, 1).
        position: The batch's position.
    """
    samples = torch.arange(len(x), dtype=torch.int32, device=x.device)
    features = math.prod(x.shape[1:])
    mask = _mask(position.start, position.key, samples, None, features, p, x.dtype)
    return mask.view(x.shape)


# A custom operator for the same reason as `jumar::hashed`.
@torch.library.custom_op("jumar::dropout_mask", mutates_args=())
def _mask(
    start: torch.Tensor,
    key: torch.Tensor,
    samples: torch.Tensor,
    places: torch.Tensor | None,
    features: int,
    p: float,
    dtype: torch.dtype,
) -> torch.Tensor:
    position, device = RandomPosition(start=start, key=key), samples.device
    # The kernel computes in float32.
    if device.type == "cuda" and places is not None and dtype.itemsize <= 4:
        kernel = _mask_kernel(device)
        if kernel is not None:
            kept = _kept(p, dtype)
            return kernel.mask_of(samples, places, features, position, _threshold(p), kept)
    rows, columns = hashes_of_rows(samples, places, position), hashes_of_columns(features, device)
    if device.type != "cpu":
        return (mixed(rows, columns) >= _threshold(p)).to(dtype).mul_(1 / (1 - p))
    mask, kept = torch.empty((len(rows), features), dtype=dtype), _kept(p, dtype)
    threshold = torch.tensor(_threshold(p), dtype=torch.int32)
    for first, bits in mixed_in_blocks(rows, columns):
        part = mask[first : first + len(bits)]
        torch.ge(bits, threshold, out=part)
        part *= kept
    return mask


@_mask.register_fake
def _(
    start: torch.Tensor,
    key: torch.Tensor,
    samples: torch.Tensor,
    places: torch.Tensor | None,
    features: int,
    p: float,
    dtype: torch.dtype,
) -> torch.Tensor:
    del start, key, places, p
    return torch.empty((len(samples), features), dtype=dtype, device=samples.device)


@cache
def _mask_kernel(device: torch.device) -> Any:
    """The module with the Triton kernel; None where it does not work, which is reported."""
    if find_spec("triton") is None:
        return None
    try:
        kernel = import_module("jumar.models.mask_kernel")
        kernel.check_kernel(device)
    except Exception as error:  # Triton passes on whatever its compiler and the driver raise.
        warnings.warn(
            f"the Triton kernel for dropout masks does not work on {device}, so slower torch ops "
            f"compute them: {error}",
            stacklevel=2,
        )
        return None
    return kernel


def _kept(p: float, dtype: torch.dtype) -> torch.Tensor:
    """The value of a kept feature in the dtype of the mask: a scalar on the CPU."""
    return torch.ones((), dtype=dtype, device="cpu").mul_(1 / (1 - p))


def _threshold(p: float) -> int:
    # The comparison is signed, so the p * 2**32 lowest of the numbers start at -2**31; a
    # threshold of 2**31, for a p next to 1, would not be an int32.
    return min(round(p * 2**32), _BITS32) - 2**31
