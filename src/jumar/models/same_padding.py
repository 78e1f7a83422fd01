"""Convolution and max-pooling with TensorFlow's SAME padding.

SAME pads so that the output has ceil(size / stride) positions and puts the odd pixel after the
image. With stride 2 and an even size this is (0, 1), which torch's `padding=` cannot express:
`padding=1` moves every window by one pixel.
"""

import torch
import torch.nn.functional as F
from torch import nn

from jumar.models.export_mode import in_export_mode


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
    """A convolution with SAME padding, for images of any size.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel: The window in pixels; two numbers are its height and width.
        stride: Its step in pixels; two numbers are the vertical and the horizontal step.
        groups: Groups of channels that are convolved separately.
        bias: Whether a bias is added.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: int | tuple[int, int],
        *,
        stride: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel, stride=stride, groups=groups, bias=bias)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        top, bottom = same_padding(input.shape[2], self.kernel_size[0], self.stride[0])
        left, right = same_padding(input.shape[3], self.kernel_size[1], self.stride[1])
        padding = (top, left)
        if top != bottom or left != right:
            # Measured on a CPU, the copy costs about a tenth of the convolution. The other exact
            # method, a larger kernel with leading zeros, costs half of it or more.
            input = F.pad(input, (left, right, top, bottom))
            padding = (0, 0)
        return F.conv2d(input, self.weight, self.bias, self.stride, padding, groups=self.groups)


class SameMaxPool2d(nn.Module):
    """Max-pooling over 3x3 windows with stride 2 and SAME padding, without a padded copy.

    An even axis is padded by (0, 1): `ceil_mode` lets the last window extend over the edge. An
    odd axis is padded by (1, 1). Positions outside the image are never the maximum. If it is
    exported with dynamic sizes, the graph is valid for even sizes only.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        sides = (input.shape[2], input.shape[3])
        is_dynamic = in_export_mode() and any(isinstance(side, torch.SymInt) for side in sides)
        padding = (0, 0) if is_dynamic else (sides[0] % 2, sides[1] % 2)
        return F.max_pool2d(input, 3, stride=2, padding=padding, ceil_mode=True)
