"""Initialisers of TensorFlow 1.15 that torch lacks."""

import math
from collections.abc import Callable

import torch
from torch import nn

_STD_OF_TRUNCATED_NORMAL = 0.87962566103423978
"""Standard deviation of a unit normal truncated at two standard deviations."""


def fill_layers_(network: nn.Module, draw: Callable[[torch.Tensor], object]) -> None:
    """Draw the weights of convolutions, transposed or not, and dense layers, with zero biases.

    Args:
        network: The network, changed in place.
        draw: Fills a weight in place.
    """
    for layer in network.modules():
        if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
            draw(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def glorot_uniform_(network: nn.Module) -> None:
    """Initialise convolutions and dense layers as TensorFlow's layers do by default.

    Weights are uniform within Glorot's bounds and biases are zero.

    Args:
        network: The network, changed in place.
    """
    fill_layers_(network, nn.init.xavier_uniform_)


def truncated_normal_(weight: torch.Tensor, std: float) -> None:
    """Fill a weight from a normal truncated at two standard deviations.

    Args:
        weight: The weight, changed in place.
        std: Standard deviation before truncation.
    """
    nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std)


def variance_scaling_(weight: torch.Tensor) -> None:
    """Fill a weight as TensorFlow's `variance_scaling_initializer()` does by default.

    A normal truncated at two standard deviations, with variance 1 / fan_in after truncation.

    Args:
        weight: [out, in / groups, height, width] or [out, in], changed in place.
    """
    std = math.sqrt(1.0 / weight[0].numel()) / _STD_OF_TRUNCATED_NORMAL
    truncated_normal_(weight, std)


def slim_variance_scaling_(weight: torch.Tensor) -> None:
    """Fill a weight as `tf.contrib.slim.variance_scaling_initializer()` does by default.

    A normal truncated at two standard deviations, with variance 2 / fan_in. TF-Slim corrects for
    the truncation by a rounded factor, so the variance is off by 0.6 percent.

    Args:
        weight: [out, in / groups, height, width] or [out, in], changed in place.
    """
    std = math.sqrt(1.3 * 2.0 / weight[0].numel())
    truncated_normal_(weight, std)
