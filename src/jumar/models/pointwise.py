"""Convolution over single pixels, as a matrix product where that is faster."""

import torch
import torch.nn.functional as F
from torch import nn


class PointwiseConv2d(nn.Conv2d):
    """A 1x1 convolution.

    On a CPU and with channels_last the pixels already lie in memory as the rows of a matrix. A
    training step over maps of 2x2 pixels is then two to four times as fast by a matrix product as
    by a convolution, and over large maps as fast within some percent. The mathematics and the
    weight are those of the convolution; an operator list sees `linear` instead of `conv2d`.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        stride: Step in pixels; SAME padding of a 1x1 window adds nothing.
        matrix_product: False to compute a convolution on every device.
        bias: Whether a bias is added.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        stride: int = 1,
        matrix_product: bool = True,
        bias: bool = False,
    ) -> None:
        super().__init__(in_channels, out_channels, 1, stride=stride, bias=bias)
        self.matrix_product = matrix_product

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        pixels_are_rows = input.is_contiguous(memory_format=torch.channels_last)
        if not (self.matrix_product and input.device.type == "cpu" and pixels_are_rows):
            return super().forward(input)
        if self.stride != (1, 1):
            input = input[:, :, :: self.stride[0], :: self.stride[1]]
        # The weight is viewed through channels_last so that its gradient gets the weight's own
        # strides; DistributedDataParallel copies gradients with other strides, and warns about
        # them.
        matrix = self.weight.permute(0, 2, 3, 1).flatten(1)
        # As one matrix: for four dimensions that are not contiguous, torch makes a product for
        # each picture with a copy of the weight each, seconds for maps of 1x1 pixels in bf16.
        pixels = input.permute(0, 2, 3, 1)
        product = F.linear(pixels.reshape(-1, pixels.shape[3]), matrix, self.bias)
        return product.unflatten(0, pixels.shape[:3]).permute(0, 3, 1, 2)
