"""Convolution and max-pooling with TensorFlow's SAME padding.

SAME pads so that the output has ceil(size / stride) positions and puts the odd pixel after the
image. With stride 2 and an even size this is (0, 1), which no `padding=` of torch expresses:
`padding=1` moves every window by one pixel.
"""

import torch
import torch.nn.functional as F
from torch import nn


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Pixels that SAME padding adds before and after an axis.

    Args:
        size: Length of the axis in pixels.
        kernel: Length of the window in pixels.
        stride: Step of the window in pixels.
    """
    positions = -(-size // stride)
    total = max((positions - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


class SameConv2d(nn.Conv2d):
    """A square convolution with SAME padding, for images of any size."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: int,
        *,
        stride: int = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel, stride=stride, groups=groups, bias=bias)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        top, bottom = same_padding(input.shape[2], kernel, stride)
        left, right = same_padding(input.shape[3], kernel, stride)
        padding = (top, left)
        if top != bottom or left != right:
            # Measured on a CPU, the copy costs about a tenth of the convolution, and the other
            # exact way, a larger kernel with zeros before it, half of it or more.
            input = F.pad(input, (left, right, top, bottom))
            padding = (0, 0)
        return F.conv2d(input, self.weight, self.bias, stride, padding, groups=self.groups)


class SameMaxPool2d(nn.Module):
    """Max-pooling over 3x3 windows with stride 2 and SAME padding, without a padded copy.

    An even axis is padded by (0, 1): `ceil_mode` lets the last window hang over the edge. An
    odd axis is padded by (1, 1). Positions outside the image never win in either.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        padding = (input.shape[2] % 2, input.shape[3] % 2)
        return F.max_pool2d(input, 3, stride=2, padding=padding, ceil_mode=True)
