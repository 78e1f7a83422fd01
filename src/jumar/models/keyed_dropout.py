"""Dropout whose mask is a pure function of key, sample row and feature.

`nn.Dropout` draws from a generator with a state, so its mask depends on how a batch was split
over ranks and micro-batches, on the device, and on everything drawn before. Here each element
of the mask is an integer hash. The trainer says before each forward in training which rows of
which step it feeds; then a resumed run, two ranks, or a batch in pieces drop exactly the same
features.
"""

import math
from dataclasses import dataclass

import torch
from torch import nn

_BITS32 = 0xFFFFFFFF
_BITS64 = 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True, eq=False)
class DropoutPosition:
    """Where the current batch stands, as two int32 scalars.

    They lie on the CPU, from where an operation on any device takes a scalar without a copy.
    Python numbers would make `torch.compile` compile each step anew, and buffers would be
    broadcast from rank 0 by DistributedDataParallel.
    """

    start: torch.Tensor
    """Half of the key, plus the row of the batch's first sample."""
    key: torch.Tensor
    """The other half of the key."""


class KeyedDropout(nn.Module):
    """Dropout with a mask from `set_dropout_position`; the identity in evaluation.

    Features are kept with probability 1 - p and divided by it. Works on [N, ...]; the first
    axis is the sample.

    Args:
        p: Probability of dropping a feature, at least 0 and below 1.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"the probability of dropping must be in [0, 1), not {p}")
        self.p = p
        self.position: DropoutPosition | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training or self.p == 0:
            return x
        if self.position is None:
            # Any default would drop the same features at every step without a word.
            raise RuntimeError(
                "KeyedDropout does not know which rows it sees: call "
                "set_dropout_position(model, key, first_row) before each forward in training"
            )
        return x * keyed_mask(x, self.p, self.position)

    def extra_repr(self) -> str:
        return f"p={self.p}"


def set_dropout_position(module: nn.Module, key: int, first_row: int) -> None:
    """Say to every `KeyedDropout` of a module which rows of which step come next.

    Args:
        module: The network; its layers get different masks by their order in it.
        key: What the masks of a step derive from, for instance a hash of seed and step. Its
            lowest 64 bits count.
        first_row: Row of the next batch's first sample in the whole batch of the step, counted
            over all ranks and micro-batches; below 2**31.
    """
    layers = (layer for layer in module.modules() if isinstance(layer, KeyedDropout))
    for number, layer in enumerate(layers):
        mixed = _mix64(_mix64(key) + number)
        layer.position = DropoutPosition(start=_scalar(mixed + first_row), key=_scalar(mixed >> 32))


def keyed_mask(x: torch.Tensor, p: float, position: DropoutPosition) -> torch.Tensor:
    """The mask of a batch: 0 where a feature is dropped, 1 / (1 - p) elsewhere.

    The same numbers on every device: only 32-bit integer operations that wrap around, and those
    that torch_npu has (`>>` and no `bitwise_right_shift`).

    Args:
        x: The batch [N, ...], which gives shape, type and device.
        p: Probability of dropping, in [0, 1).
        position: Where the batch stands.
    """
    features = math.prod(x.shape[1:])
    rows = torch.arange(x.shape[0], dtype=torch.int32, device=x.device)
    rows = _mix32(_mix32(rows + position.start) + position.key)
    columns = _mix32(torch.arange(features, dtype=torch.int32, device=x.device))
    bits = _mix32(rows[:, None] + columns)
    # The comparison is signed, so the p * 2**32 lowest of the numbers start at -2**31; a
    # threshold of 2**31, for a p next to 1, would not be an int32.
    kept = bits >= min(round(p * 2**32), _BITS32) - 2**31
    return kept.to(x.dtype).mul_(1 / (1 - p)).view(x.shape)


def _mix32(bits: torch.Tensor) -> torch.Tensor:
    """Spread every bit of an int32 tensor over the whole word.

    The rounds and constants are "lowbias32" of C. Wellons, "Prospecting for Hash Functions"
    (2018, public domain), without the last shift, which the upper bits do not need.
    """
    bits = bits ^ _shifted_right(bits, 16)
    bits *= 0x7FEB352D
    bits ^= _shifted_right(bits, 15)
    bits *= _signed32(0x846CA68B)
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
    """The signed number with the same lowest 32 bits."""
    low = number & _BITS32
    return low - 2**32 if low >= 2**31 else low


def _scalar(number: int) -> torch.Tensor:
    return torch.tensor(_signed32(number), dtype=torch.int32, device="cpu")
