"""ResNet v1 as TF-Slim built it, a backbone for detectors: feature maps at four sizes.

Architecture: He et al., "Deep Residual Learning for Image Recognition", arXiv 1512.03385.
Differences from torchvision's network of the same name: the stride of a block is in its last unit
instead of its first, whose shortcut then takes every second pixel; SAME max-pooling; batch norms
with a decay of 0.997.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from jumar.models.initializers import slim_variance_scaling_
from jumar.models.same_padding import SameMaxPool2d
from jumar.models.slim_convolution import SlimConv2d
from jumar.models.tf_layout import TfVariable

STRIDE = 32
"""Ratio of the image's side to that of the smallest feature map."""
IMAGE_MEAN = (123.68, 116.78, 103.94)
"""Mean red, green and blue, which the originals subtract."""


class _Form(NamedTuple):
    """The architecture for a depth.

    Attributes:
        units: Number of residual units in each block.
        bottleneck: Whether a unit consists of 1x1, 3x3 and 1x1 convolutions, the last with four
            times the width, instead of two 3x3 convolutions.
    """

    units: Sequence[int]
    bottleneck: bool


_FORMS = {18: _Form((2, 2, 2, 2), False), 50: _Form((3, 4, 6, 3), True)}
DEPTHS = tuple(_FORMS)


class ResidualUnit(nn.Module):
    """Convolutions added to a shortcut.

    Args:
        in_channels: Channels of the input.
        width: Channels of the 3x3 convolutions.
        bottleneck: See `_Form`.
        stride: Stride of the unit in pixels: of its first 3x3 convolution and of the shortcut.
        matrix_product: See `PointwiseConv2d`.
    """

    def __init__(
        self,
        in_channels: int,
        width: int,
        *,
        bottleneck: bool,
        stride: int,
        matrix_product: bool,
    ) -> None:
        super().__init__()
        self.stride = stride
        out_channels = width * 4 if bottleneck else width

        def convolution(
            inner: int, outer: int, kernel: int, *, stride: int = 1, relu: bool = True
        ) -> SlimConv2d:
            return SlimConv2d(
                inner,
                outer,
                kernel,
                stride=stride,
                norm=True,
                relu=relu,
                matrix_product=matrix_product,
            )

        self.shortcut = (
            None
            if in_channels == out_channels
            else convolution(in_channels, out_channels, 1, stride=stride, relu=False)
        )
        if bottleneck:
            self.conv1 = convolution(in_channels, width, 1)
            self.conv2 = convolution(width, width, 3, stride=stride)
            self.conv3 = convolution(width, out_channels, 1, relu=False)
        else:
            self.conv1 = convolution(in_channels, width, 3, stride=stride)
            self.conv2 = convolution(width, width, 3, relu=False)
            self.conv3 = None
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        if self.shortcut is not None:
            shortcut = self.shortcut(x)
        else:
            shortcut = x if self.stride == 1 else x[:, :, :: self.stride, :: self.stride]
        y = self.conv2(self.conv1(x))
        return self.relu((y if self.conv3 is None else self.conv3(y)) + shortcut)

    def convolutions(self) -> Iterator[tuple[str, SlimConv2d]]:
        """Name and module of each convolution, in the original's creation order."""
        for name in ("shortcut", "conv1", "conv2", "conv3"):
            module = getattr(self, name)
            if module is not None:
                yield name, module


class ResNetV1(nn.Module):
    """ResNet without its classifier.

    Takes RGB images [N, 3, height, width] with levels from 0 to 255 and returns four feature maps,
    from a quarter of the image's sides to a thirty-second: the first pooling, and the first,
    second and last of the four blocks.

    Args:
        depth: 50 is slim's `resnet_v1_50`. 18, with two 3x3 convolutions per unit, is our addition
            for small machines; slim has no such network.
        width: Channels of the first convolution; each block has twice as many as the one before.
        matrix_product: Whether the 1x1 convolutions may be computed as matrix products on a CPU.

    Attributes:
        channels: Channels of the four maps.

    Raises:
        ValueError: There is no network of this depth.
    """

    image_mean: Tensor

    def __init__(self, depth: int, *, width: int = 64, matrix_product: bool = True) -> None:
        super().__init__()
        if depth not in _FORMS:
            raise ValueError(f"a ResNet has {' or '.join(map(str, DEPTHS))} layers, not {depth}")
        form = _FORMS[depth]
        self.depth = depth
        self.register_buffer(
            "image_mean", torch.tensor(IMAGE_MEAN).view(1, 3, 1, 1), persistent=False
        )
        self.conv1 = SlimConv2d(3, width, 7, stride=2, norm=True)
        self.pool1 = SameMaxPool2d()
        channels, widths = width, [width]
        for number, units in enumerate(form.units, start=1):
            block: list[ResidualUnit] = []
            inner = width * 2 ** (number - 1)
            for unit in range(units):
                last = unit == units - 1 and number < len(form.units)
                block.append(
                    ResidualUnit(
                        channels,
                        inner,
                        bottleneck=form.bottleneck,
                        stride=2 if last else 1,
                        matrix_product=matrix_product,
                    )
                )
                channels = inner * 4 if form.bottleneck else inner
            self.add_module(f"block{number}", nn.Sequential(*block))
            widths.append(channels)
        self.channels = (widths[0], widths[1], widths[2], widths[4])
        for _, _, convolution in self.convolutions():
            slim_variance_scaling_(convolution.conv.weight)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        pooled = self.pool1(self.conv1(images - self.image_mean))
        first = self.get_submodule("block1")(pooled)
        second = self.get_submodule("block2")(first)
        last = self.get_submodule("block4")(self.get_submodule("block3")(second))
        return pooled, first, second, last

    def convolutions(self) -> Iterator[tuple[str, str, SlimConv2d]]:
        """Original scope, path here, and module of each convolution, in creation order."""
        kind = "bottleneck_v1" if _FORMS[self.depth].bottleneck else "basic_v1"
        scope = f"resnet_v1_{self.depth}"
        yield f"{scope}/conv1", "conv1", self.conv1
        for block in range(1, 5):
            units = cast(nn.Sequential, self.get_submodule(f"block{block}"))
            for number, unit in enumerate(units):
                for name, convolution in cast(ResidualUnit, unit).convolutions():
                    yield (
                        f"{scope}/block{block}/unit_{number + 1}/{kind}/{name}",
                        f"block{block}.{number}.{name}",
                        convolution,
                    )

    def tf_variables(self, path: str) -> list[TfVariable]:
        """The variables in graph order; `path` is the network's prefix in the `state_dict`."""
        return [
            variable
            for scope, name, convolution in self.convolutions()
            for variable in convolution.tf_variables(scope, f"{path}.{name}")
        ]
