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


def slim_variance_scaling_(weight: torch.Tensor) -> None:
    """Fill a weight as `tf.contrib.slim.variance_scaling_initializer()` does by default.

    A normal truncated at two standard deviations, with variance 2 / fan_in. TF-Slim corrects for
    the truncation by a rounded factor, so the variance is off by 0.6 percent.

    Args:
        weight: [out, in / groups, height, width] or [out, in], changed in place.
    """
    std = math.sqrt(1.3 * 2.0 / weight[0].numel())
    nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std)
