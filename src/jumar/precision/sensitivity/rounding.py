"""Noise as large as the rounding to a low dtype, whatever dtype a tensor has.

A rounding error is spread evenly over plus or minus half a unit in the last place (ulp). A tensor
of a wider dtype gets just such an error. One that has the low dtype already cannot hold it: there
an element moves by a whole ulp with a probability of 1/12, which has the same variance.
"""

from typing import Final

import torch
from torch import Tensor

BITS: Final = {torch.float16: 11, torch.bfloat16: 8}
"""Bits of a dtype's significand, with the implicit one."""
_MIN_EXPONENT: Final = {torch.float16: -24, torch.bfloat16: -133}
"""The exponent of the smallest subnormal number, the lower limit of an ulp."""
_MOVES: Final = 1 / 12


def add_noise(tensor: Tensor, dtype: torch.dtype, generator: torch.Generator) -> None:
    """Add rounding errors to a tensor, in place; non-finite elements are kept.

    Args:
        tensor: Of floating point.
        dtype: float16 or bfloat16: the dtype to whose precision it is rounded.
        generator: Draws them; on the tensor's device.
    """
    wide = tensor.double() if tensor.dtype == torch.float64 else tensor.float()
    shares = torch.rand(
        tensor.shape, dtype=wide.dtype, device=tensor.device, generator=generator
    ).sub_(0.5)
    if BITS.get(tensor.dtype, 53) <= BITS[dtype]:
        # The outer twelfths of the interval move an element, down or up.
        shares = torch.sign(shares) * (shares.abs() > 0.5 * (1 - _MOVES))
        dtype = tensor.dtype
    _, exponents = torch.frexp(wide)
    lowest = torch.full_like(exponents, _MIN_EXPONENT[dtype])
    exponents = torch.maximum(exponents - BITS[dtype], lowest)
    largest = torch.finfo(tensor.dtype).max
    noisy = (wide + torch.ldexp(shares, exponents)).clamp(-largest, largest)
    tensor.copy_(torch.where(wide.isfinite() & (wide != 0), noisy, wide))
