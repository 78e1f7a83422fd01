"""ResNeXt-50 as the Ascend ModelZoo trained it in TensorFlow 1.15.

Architecture: Xie et al., "Aggregated Residual Transformations for Deep Neural Networks",
arXiv 1611.05431, 32x4d. Original: Ascend/ModelZoo-TensorFlow, ResNext50_ID0070. Unlike
torchvision's network of the same name, it has SAME padding (asymmetric on even sizes) in the
strided 3x3 convolutions and the max-pooling, batch norms with epsilon 1e-4, 1001 classes of which
0 is the background, and other initialisers.
"""

from collections.abc import Iterator
from typing import cast

import torch
from torch import nn

from jumar.models.initializers import variance_scaling_
from jumar.models.pointwise import PointwiseConv2d
from jumar.models.same_padding import SameConv2d, SameMaxPool2d
from jumar.models.tf_layout import (
    TfVariable,
    batch_norm_variables,
    convolution_kernel,
    convolution_variables,
    dense_variables,
    numbered,
)

BLOCKS_PER_STAGE = (3, 4, 6, 3)
BATCH_NORM_EPSILON = 1e-4
BATCH_NORM_MOMENTUM = 0.1
TF_SCOPE = "fp32_vars"


class ConvNorm(nn.Module):
    """A convolution without bias and the batch norm after it."""

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self.conv = conv
        self.norm = nn.BatchNorm2d(
            conv.out_channels, eps=BATCH_NORM_EPSILON, momentum=BATCH_NORM_MOMENTUM
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x))


class Bottleneck(nn.Module):
    """A residual block: 1x1, grouped 3x3 with the stride, 1x1, added to the shortcut.

    Args:
        in_channels: Channels of the input.
        width: Channels of the grouped convolution.
        out_channels: Channels of the output.
        groups: Groups of the 3x3 convolution.
        stride: Stride of the block in pixels.
        matrix_product: See `PointwiseConv2d`.
    """

    def __init__(
        self,
        in_channels: int,
        width: int,
        out_channels: int,
        *,
        groups: int,
        stride: int,
        matrix_product: bool,
    ) -> None:
        super().__init__()

        def pointwise(channels_in: int, channels_out: int, stride: int = 1) -> ConvNorm:
            return ConvNorm(
                PointwiseConv2d(
                    channels_in, channels_out, stride=stride, matrix_product=matrix_product
                )
            )

        self.shortcut = (
            None if in_channels == out_channels else pointwise(in_channels, out_channels, stride)
        )
        self.reduce = pointwise(in_channels, width)
        self.grouped = ConvNorm(
            SameConv2d(width, width, 3, stride=stride, groups=groups, bias=False)
        )
        self.expand = pointwise(width, out_channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x if self.shortcut is None else self.shortcut(x)
        y = self.relu(self.reduce(x))
        y = self.relu(self.grouped(y))
        return self.relu(self.expand(y) + shortcut)

    def convolutions(self) -> Iterator[tuple[str, ConvNorm]]:
        """Name and module of each convolution, in the original's creation order."""
        if self.shortcut is not None:
            yield "shortcut", self.shortcut
        yield "reduce", self.reduce
        yield "grouped", self.grouped
        yield "expand", self.expand


class ResNeXt50(nn.Module):
    """ResNeXt-50; 25,030,953 parameters with 1001 classes.

    Takes images [N, 3, height, width] with sides of at least 32 px, and returns logits
    [N, num_classes].

    Args:
        num_classes: Length of the logits; the original has 1001, of which 0 is the background.
        cardinality: Groups of the 3x3 convolutions.
        width: Channels of a group in the first stage; each stage doubles it.
        matrix_product: Whether the 1x1 convolutions may be computed as matrix products on a
            CPU. Pass False if an op list treats convolutions and matrix products differently.
    """

    def __init__(
        self,
        *,
        num_classes: int,
        cardinality: int = 32,
        width: int = 4,
        matrix_product: bool = True,
    ) -> None:
        super().__init__()
        channels = 64
        self.stem = ConvNorm(nn.Conv2d(3, channels, 7, stride=2, padding=3, bias=False))
        self.relu = nn.ReLU(inplace=True)
        self.pool = SameMaxPool2d()
        stages: list[nn.Sequential] = []
        for stage, depth in enumerate(BLOCKS_PER_STAGE):
            blocks: list[Bottleneck] = []
            for index in range(depth):
                block = Bottleneck(
                    channels,
                    cardinality * width * 2**stage,
                    256 * 2**stage,
                    groups=cardinality,
                    stride=2 if stage > 0 and index == 0 else 1,
                    matrix_product=matrix_product,
                )
                blocks.append(block)
                channels = 256 * 2**stage
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.classifier = nn.Linear(channels, num_classes)
        self.reset_parameters()

    def layer_order(self) -> list[str]:
        """The prefixes of the layers' parameters, from the input to the output."""
        return ["stem", *(name for name, _ in _blocks(self)), "classifier"]

    def reset_parameters(self) -> None:
        """Draw the weights as the original does.

        Convolutions and the classifier use variance scaling. The grouped kernels were created
        without an initialiser and so got TensorFlow's default, Glorot's. The last batch norm of
        each block starts at zero, so that the block starts as its shortcut.
        """
        variance_scaling_(self.stem.conv.weight)
        for _, block in _blocks(self):
            for name, module in block.convolutions():
                if name == "grouped":
                    nn.init.xavier_uniform_(module.conv.weight)
                else:
                    variance_scaling_(module.conv.weight)
            nn.init.zeros_(block.expand.norm.weight)
        variance_scaling_(self.classifier.weight)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.relu(self.stem(images)))
        return self.classifier(self.stages(x).mean((2, 3)))


def decays(name: str, parameter: nn.Parameter) -> bool:
    """Whether weight decay applies to a parameter: to all except those of batch norms.

    The original's rule is "the name lacks BatchNorm", so the bias of the classifier decays.

    Args:
        name: The parameter's name in `ResNeXt50.named_parameters()`.
        parameter: The parameter.
    """
    del parameter
    return "norm" not in name.split(".")


def tf_variables(model: ResNeXt50) -> list[TfVariable]:
    """The 267 variables of the original in graph order, with their names here.

    The original numbers convolutions and batch norms throughout the graph and creates the
    shortcut of a block first.
    """
    convolution_name, norm_name = f"{TF_SCOPE}/conv2d", f"{TF_SCOPE}/BatchNorm"
    convolutions, norms = 0, 0
    variables = [
        *convolution_variables(convolution_name, "stem.conv", bias=False),
        *batch_norm_variables(norm_name, "stem.norm"),
    ]
    for path, block in _blocks(model):
        for part, _ in block.convolutions():
            name = f"{path}.{part}"
            if part == "grouped":
                _, stage, index = path.split(".")
                tf_name = f"{TF_SCOPE}/bottleneck_{stage}_{index}"
                variables.append(convolution_kernel(tf_name, f"{name}.conv.weight"))
            else:
                convolutions += 1
                tf_name = numbered(convolution_name, convolutions)
                variables += convolution_variables(tf_name, f"{name}.conv", bias=False)
            norms += 1
            variables += batch_norm_variables(numbered(norm_name, norms), f"{name}.norm")
    return variables + dense_variables(f"{TF_SCOPE}/dense", "classifier")


def _blocks(model: ResNeXt50) -> Iterator[tuple[str, Bottleneck]]:
    """Path and module of each block, in network order."""
    for stage, blocks in enumerate(model.stages):
        for index, block in enumerate(cast(nn.Sequential, blocks)):
            yield f"stages.{stage}.{index}", cast(Bottleneck, block)
