"""1x1 convolution, computed as a matrix product where that is faster."""

import torch
import torch.nn.functional as F
from torch import nn

from jumar.models.export_mode import in_export_mode


class PointwiseConv2d(nn.Conv2d):
    """A 1x1 convolution.

    On a CPU with channels_last, the pixels are already the rows of a matrix in memory. A training
    step over 2x2 maps is then two to four times as fast with a matrix product as with a
    convolution, and about as fast over large maps. The mathematics and the weight are those of the
    convolution; an op list sees `linear` instead of `conv2d`.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        stride: Step in pixels; SAME padding of a 1x1 window adds nothing.
        matrix_product: False to use a convolution on every device.
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
        rows_are_faster = self.matrix_product and input.device.type == "cpu" and pixels_are_rows
        if in_export_mode() or not rows_are_faster:
            return super().forward(input)
        if self.stride != (1, 1):
            input = input[:, :, :: self.stride[0], :: self.stride[1]]
        # The weight is viewed through channels_last so that its gradient gets the weight's own
        # strides; DistributedDataParallel copies gradients with other strides, and warns about
        # them.
        matrix = self.weight.permute(0, 2, 3, 1).flatten(1)
        # As one matrix: for four non-contiguous dimensions, torch computes one product per image
        # with a copy of the weight each, which takes seconds for 1x1 maps in bf16.
        pixels = input.permute(0, 2, 3, 1)
        product = F.linear(pixels.reshape(-1, pixels.shape[3]), matrix, self.bias)
        return product.unflatten(0, pixels.shape[:3]).permute(0, 3, 1, 2)
