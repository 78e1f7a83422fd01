"""The convolution of TF-Slim, from which both text detectors are built.

`slim.conv2d` adds either a batch norm or a bias, and by default a ReLU. Kernels have odd sides
here, and both sides are padded equally if there is a stride, as in slim's `conv2d_same`.
"""

from collections.abc import Sequence

import torch
from torch import nn

from jumar.models.pointwise import PointwiseConv2d
from jumar.models.tf_layout import (
    TfNames,
    TfVariable,
    adam_state,
    batch_norm_variables,
    convolution_variables,
)

_EPSILON = 1e-5
_MOMENTUM = 0.003
"""1 minus TensorFlow's decay of 0.997."""


def set_norm_decay(network: nn.Module, decay: float) -> None:
    """Set the decay of the running averages of all batch norms."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1 - decay


class SlimConv2d(nn.Module):
    """A convolution with a batch norm or a bias, and optionally a ReLU.

    The kernel starts as `slim.conv2d` draws it by default, uniform within Glorot's bounds; a bias
    starts at zero.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel: Its odd side in pixels.
        stride: Its step in pixels.
        norm: Whether to use a batch norm instead of a bias.
        relu: Whether the output goes through a ReLU.
        matrix_product: See `PointwiseConv2d`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: int,
        *,
        stride: int = 1,
        norm: bool,
        relu: bool = True,
        matrix_product: bool = True,
    ) -> None:
        super().__init__()
        bias = not norm
        if kernel == 1:
            self.conv = PointwiseConv2d(
                in_channels, out_channels, stride=stride, matrix_product=matrix_product, bias=bias
            )
        else:
            self.conv = nn.Conv2d(
                in_channels, out_channels, kernel, stride=stride, padding=kernel // 2, bias=bias
            )
        self.norm = nn.BatchNorm2d(out_channels, eps=_EPSILON, momentum=_MOMENTUM) if norm else None
        self.relu = nn.ReLU(inplace=True) if relu else None
        nn.init.xavier_uniform_(self.conv.weight)
        if self.conv.bias is not None:
            nn.init.zeros_(self.conv.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        if self.norm is not None:
            x = self.norm(x)
        return x if self.relu is None else self.relu(x)

    def tf_variables(self, tf_name: str, name: str) -> list[TfVariable]:
        """The variables, given this convolution's scope in the original and its path here."""
        variables = convolution_variables(
            tf_name, f"{name}.conv", bias=self.norm is None, parts=("weights", "biases")
        )
        if self.norm is not None:
            variables += batch_norm_variables(f"{tf_name}/BatchNorm", f"{name}.norm")
        return variables


def decays(name: str, parameter: nn.Parameter) -> bool:
    """Whether weight decay applies to a parameter: to kernels, as slim's `weights_regularizer`.

    Args:
        name: The parameter's name in a network of `SlimConv2d`.
        parameter: The parameter.
    """
    del parameter
    return name.endswith("conv.weight")


def detector_names(variables: Sequence[TfVariable]) -> TfNames:
    """The names in a detector's checkpoints, with Adam's state and averages next to the weights.

    The classifier and the mean color in slim's ImageNet checkpoint are ignored.

    Args:
        variables: The detector's variables in graph order.
    """
    return TfNames(
        variables=variables,
        optimizers=(adam_state(),),
        ignored=(r"^resnet_v1_50/(logits/|mean_rgb$)",),
    )
