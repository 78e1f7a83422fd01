"""Random numbers that are determined by key, sample row and feature.

A stateful generator gives numbers that depend on how a batch was split over ranks and
micro-batches, on the device, and on everything drawn before. Here each number is an integer hash.
Before each forward pass in training, the trainer sets which rows of which step it passes in; then a
resumed run, two ranks, or a batch in parts see exactly the same numbers.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

BLOCK = 2**16
"""Numbers per thread that a CPU computes at once: two int32 buffers of 256 KB stay in a core's
cache. Forward and backward with whole tensors took twice as long."""
_BITS32 = 0xFFFFFFFF
_BITS64 = 0xFFFFFFFFFFFFFFFF
_ROUNDS = ((16, 0x7FEB352D), (15, 0x846CA68B - 2**32))
"""Shift and factor of each round of `_mix32`; the factors as signed numbers of 32 bits."""


@dataclass(frozen=True, eq=False)
class RandomPosition:
    """The position of the current batch, as two int32 scalars.

    They are on the CPU, since an operation on any device can take a CPU scalar without a copy.
    Python numbers would make `torch.compile` recompile at each step, and buffers would be
    broadcast from rank 0 by DistributedDataParallel.
    """

    start: torch.Tensor
    """Half of the key, plus the row of the batch's first sample."""
    key: torch.Tensor
    """The other half of the key."""


class Keyed(nn.Module):
    """A layer that needs random numbers and takes them from its position."""

    position: RandomPosition | None = None

    def known_position(self) -> RandomPosition:
        """The position, which must have been set."""
        if self.position is None:
            # Any default would silently repeat the same numbers at every step.
            raise RuntimeError(
                f"{type(self).__name__} does not know which rows it gets: call "
                "set_random_position(model, key, first_row) before each forward in training"
            )
        return self.position


class KeyedNormal(Keyed):
    """Normally distributed numbers for a generator's latent vectors.

    Args:
        features: Numbers per row.
        truncation: Truncate at this many standard deviations: a truncated normal, not clipped to
            the edges. Infinity for no truncation.
    """

    def __init__(self, features: int, *, truncation: float = math.inf) -> None:
        super().__init__()
        self.features = features
        self.truncation = truncation

    def forward(self, rows: int, device: torch.device) -> torch.Tensor:
        """float32 [rows, features]."""
        position = self.known_position()
        return keyed_normal(rows, self.features, position, device, truncation=self.truncation)


def set_random_position(module: nn.Module, key: int, first_row: int) -> None:
    """Set for every keyed layer of a module which rows of which step come next.

    Args:
        module: The network; its layers get different numbers by their order in it.
        key: Determines the numbers of a step, for instance a hash of seed and step. Only its
            lowest 64 bits count.
        first_row: Row of the next batch's first sample in the whole batch of the step, counted
            over all ranks and micro-batches; below 2**31.
    """
    layers = (layer for layer in module.modules() if isinstance(layer, Keyed))
    for number, layer in enumerate(layers):
        layer.position = random_position(_mix64(key) + number, first_row)


def random_position(key: int, first_row: int = 0) -> RandomPosition:
    """The position of a batch whose first sample is `first_row`, for a 64-bit key."""
    mixed = _mix64(key)
    return RandomPosition(start=_scalar(mixed + first_row), key=_scalar(mixed >> 32))


def keyed_bits(
    rows: int, features: int, position: RandomPosition, device: torch.device
) -> torch.Tensor:
    """int32 [rows, features] with every bit random.

    The same numbers on every device: uses only wrapping 32-bit integer operations that torch_npu
    has (`>>` but not `bitwise_right_shift`).
    """
    return _hashed(position.start, position.key, rows, features, device)


# A custom operator, which torch.compile does not touch: in the C++ that inductor generates for
# processors without vector units, signed overflow is undefined, and g++ produced different masks
# from every other device.
@torch.library.custom_op("jumar::hashed", mutates_args=())
def _hashed(
    start: torch.Tensor, key: torch.Tensor, rows: int, features: int, device: torch.device
) -> torch.Tensor:
    samples = torch.arange(rows, dtype=torch.int32, device=device)
    hashes = hashes_of_rows(samples, None, RandomPosition(start=start, key=key))
    return mixed(hashes, hashes_of_columns(features, device))


@_hashed.register_fake
def _(
    start: torch.Tensor, key: torch.Tensor, rows: int, features: int, device: torch.device
) -> torch.Tensor:
    del start, key
    return torch.empty((rows, features), dtype=torch.int32, device=device)


def keyed_token_bits(
    samples: torch.Tensor, places: torch.Tensor, features: int, position: RandomPosition
) -> torch.Tensor:
    """int32 [tokens, features] with every bit random, by sample, place and feature.

    A token has the same numbers however its sample is padded and wherever it is in the batch.
    Not to be traced by torch.compile, which is why `_hashed` and dropout masks are operators.

    Args:
        samples: int [tokens], rows of the batch.
        places: int [tokens], different for each token of a sample.
        features: Numbers per token.
        position: The batch's position.
    """
    hashes = hashes_of_rows(samples, places, position)
    return mixed(hashes, hashes_of_columns(features, samples.device))


def hashes_of_rows(
    samples: torch.Tensor, places: torch.Tensor | None, position: RandomPosition
) -> torch.Tensor:
    """Hash each row: int32 [rows], the row's part of `keyed_bits`, with places of
    `keyed_token_bits`.
    """
    hashes = _mix32(_mix32(samples.to(torch.int32) + position.start) + position.key)
    return hashes if places is None else _mix32(hashes + _mix32(places.to(torch.int32) + 1))


def hashes_of_columns(features: int, device: torch.device) -> torch.Tensor:
    """Hash each feature: int32 [features], the feature's part of `keyed_bits`."""
    return _mix32(torch.arange(features, dtype=torch.int32, device=device))


def mixed(rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Combine `hashes_of_rows` and `hashes_of_columns` into bits: int32 [rows, features]."""
    return _mix32(rows[:, None] + columns)


def mixed_in_blocks(
    rows: torch.Tensor, columns: torch.Tensor
) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield the bits of `mixed` on a CPU, some rows at a time.

    Yields:
        The first row, and int32 [some rows, features], which the next block overwrites.
    """
    count = max(1, BLOCK * torch.get_num_threads() // max(1, len(columns)))
    bits = torch.empty((min(count, len(rows)), len(columns)), dtype=torch.int32)
    shifted = torch.empty_like(bits)
    # Python numbers would be copied to an int32 tensor in each op.
    rounds = [
        (_scalar(shift), _scalar(_BITS32 >> shift), _scalar(factor)) for shift, factor in _ROUNDS
    ]
    for first in range(0, len(rows), count):
        hashes = rows[first : first + count, None]
        block, buffer = bits[: len(hashes)], shifted[: len(hashes)]
        torch.add(hashes, columns, out=block)
        for shift, unsigned, factor in rounds:
            torch.bitwise_right_shift(block, shift, out=buffer)
            block ^= buffer.bitwise_and_(unsigned)
            block *= factor
        yield first, block


def keyed_uniform(
    rows: int, features: int, position: RandomPosition, device: torch.device
) -> torch.Tensor:
    """float32 [rows, features], uniform in the open interval (0, 1), in steps of 2**-23."""
    bits = _shifted_right(keyed_bits(rows, features, position, device), 9)
    return (bits.to(torch.float32) + 0.5) * 2.0**-23


def keyed_normal(
    rows: int,
    features: int,
    position: RandomPosition,
    device: torch.device,
    *,
    truncation: float = math.inf,
) -> torch.Tensor:
    """float32 [rows, features] from a unit normal, truncated at `truncation` standard deviations.

    Computed from uniform numbers by the inverse of the distribution function, so that each number
    needs one hash, and truncation needs no second try. The last bits differ between devices.
    """
    share = math.erf(truncation / math.sqrt(2))
    quantiles = (2 * keyed_uniform(rows, features, position, device) - 1) * share
    return torch.erfinv(quantiles) * math.sqrt(2)


def _mix32(bits: torch.Tensor) -> torch.Tensor:
    """Spread every bit of an int32 tensor over the whole word.

    The rounds and constants are "lowbias32" of C. Wellons, "Prospecting for Hash Functions"
    (2018, public domain), without the last shift, which the upper bits do not need.
    """
    for shift, factor in _ROUNDS:
        bits = bits ^ _shifted_right(bits, shift)
        bits *= factor
    return bits


def _shifted_right(bits: torch.Tensor, count: int) -> torch.Tensor:
    """Logical shift: `>>` alone would repeat the sign of a negative number."""
    shifted = bits >> count
    shifted &= _BITS32 >> count
    return shifted


def _mix64(number: int) -> int:
    """Spread every bit of a number over 64 bits.

    This is SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators",
    2014).
    """
    number = (number + 0x9E3779B97F4A7C15) & _BITS64
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _BITS64
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _BITS64
    return number ^ (number >> 31)


def _signed32(number: int) -> int:
    """The signed 32-bit number with the same lowest 32 bits."""
    low = number & _BITS32
    return low - 2**32 if low >= 2**31 else low


def _scalar(number: int) -> torch.Tensor:
    return torch.tensor(_signed32(number), dtype=torch.int32, device="cpu")
