"""Add noise of the size of rounding to a low dtype, to tensors of any dtype.

A rounding error is uniformly distributed between plus and minus half a unit in the last place
(ulp). A tensor of a wider dtype gets exactly this error. A tensor that already has the low dtype
cannot represent it: its elements change by a whole ulp with a probability of 1/12, which has the
same variance.
"""

from typing import Final

import torch
from torch import Tensor

BITS: Final = {torch.float16: 11, torch.bfloat16: 8}
"""Number of bits in a dtype's significand, including the implicit bit."""
_MIN_EXPONENT: Final = {torch.float16: -24, torch.bfloat16: -133}
"""The exponent of the smallest subnormal number, the lower limit of an ulp."""
_CHANGE_PROBABILITY: Final = 1 / 12


def add_noise(tensor: Tensor, dtype: torch.dtype, generator: torch.Generator) -> None:
    """Add rounding errors to a tensor in place; non-finite elements do not change.

    Args:
        tensor: A floating-point tensor.
        dtype: The dtype whose rounding errors are imitated, float16 or bfloat16.
        generator: A random number generator on the tensor's device.
    """
    wide = tensor.double() if tensor.dtype == torch.float64 else tensor.float()
    ulps = torch.rand(
        tensor.shape, dtype=wide.dtype, device=tensor.device, generator=generator
    ).sub_(0.5)
    if BITS.get(tensor.dtype, 53) <= BITS[dtype]:
        # The outer twelfth of the interval, half of it at each end, changes an element.
        ulps = torch.sign(ulps) * (ulps.abs() > 0.5 * (1 - _CHANGE_PROBABILITY))
        dtype = tensor.dtype
    _, exponents = torch.frexp(wide)
    lowest = torch.full_like(exponents, _MIN_EXPONENT[dtype])
    exponents = torch.maximum(exponents - BITS[dtype], lowest)
    largest = torch.finfo(tensor.dtype).max
    noisy = (wide + torch.ldexp(ulps, exponents)).clamp(-largest, largest)
    tensor.copy_(torch.where(wide.isfinite() & (wide != 0), noisy, wide))
