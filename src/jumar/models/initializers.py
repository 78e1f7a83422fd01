"""Initialisers of TensorFlow 1.15 that torch lacks."""

import math

import torch
from torch import nn

_STD_OF_TRUNCATED_NORMAL = 0.87962566103423978
"""Standard deviation of a unit normal truncated at two standard deviations."""


def variance_scaling_(weight: torch.Tensor) -> None:
    """Fill a weight as TensorFlow's `variance_scaling_initializer()` does by default.

    A normal truncated at two standard deviations, with variance 1 / fan_in after truncation.

    Args:
        weight: [out, in / groups, height, width] or [out, in], changed in place.
    """
    std = math.sqrt(1.0 / weight[0].numel()) / _STD_OF_TRUNCATED_NORMAL
    nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std)
