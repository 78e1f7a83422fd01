"""DS-CNN: keyword spotting with depthwise separable convolutions.

Paper: Zhang, Suda, Lai and Chandra, "Hello Edge: Keyword Spotting on Microcontrollers",
arXiv 1711.07128. Original: ARM-software/ML-KWS-for-MCU, `create_ds_cnn_model` in models.py, also
trained on Ascend as DS-CNN_ID1769 of the ModelZoo for TensorFlow. The only differences are the
order of axes, and that any number of frames and coefficients is accepted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from jumar.models.initializers import glorot_uniform_
from jumar.models.pointwise import PointwiseConv2d
from jumar.models.same_padding import SameConv2d
from jumar.models.tf_layout import (
    Array,
    ConvolutionKernel,
    DenseKernel,
    Layout,
    TfCounting,
    TfNames,
    TfVariable,
    adam_state,
    unchanged,
)

_SMALL_BLOCK = (64, 3, 3, 1, 1)
_MEDIUM_BLOCK = (172, 3, 3, 1, 1)
_LARGE_BLOCK = (276, 3, 3, 1, 1)

SIZES: dict[str, tuple[int, ...]] = {
    "S": (5, 64, 10, 4, 2, 2, *_SMALL_BLOCK * 4),
    "M": (5, 172, 10, 4, 2, 1, 172, 3, 3, 2, 2, *_MEDIUM_BLOCK * 3),
    "L": (6, 276, 10, 4, 2, 1, 276, 3, 3, 2, 2, *_LARGE_BLOCK * 4),
}
"""The original's `model_size_info` for the three published networks; see `read_size`."""

BATCH_NORM_EPSILON = 1e-3
BATCH_NORM_MOMENTUM = 0.04
TF_SCOPE = "DS-CNN"


@dataclass(frozen=True, kw_only=True)
class LayerSize:
    """A layer's output channels, and its window and stride as (frames, coefficients)."""

    channels: int
    kernel: tuple[int, int]
    stride: tuple[int, int]


def read_size(numbers: Sequence[int]) -> list[LayerSize]:
    """The layers described by a `model_size_info` list of the original.

    Args:
        numbers: The number of layers, then for each layer: channels, height and width of the
            kernel, and strides in time and frequency.

    Raises:
        ValueError: The list does not have the length its first number implies, or a number is
            not positive.
    """
    if not numbers or min(numbers) < 1 or len(numbers) != 1 + 5 * numbers[0]:
        raise ValueError(
            "a size is the number of layers and five positive numbers for each "
            f"(channels, kernel height and width, stride in time and frequency), not {[*numbers]}"
        )
    rows = [numbers[start : start + 5] for start in range(1, len(numbers), 5)]
    return [LayerSize(channels=c, kernel=(h, w), stride=(t, f)) for c, h, w, t, f in rows]


class BetaBatchNorm2d(nn.BatchNorm2d):
    """Batch norm with an offset but no scale, as TF-slim creates it by default.

    The scale is a constant of ones instead of None, since cuDNN's and the NPU's kernels take
    offset and scale together.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels, eps=BATCH_NORM_EPSILON, momentum=BATCH_NORM_MOMENTUM)
        del self.weight
        self.register_buffer("weight", torch.ones(channels), persistent=False)


class ConvNorm(nn.Module):
    """A convolution, its batch norm and a ReLU."""

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self.conv = conv
        self.norm = BetaBatchNorm2d(conv.out_channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.norm(self.conv(x)))


class DepthwiseSeparable(nn.Module):
    """A convolution within each channel, then one across the channels at each position."""

    def __init__(self, in_channels: int, size: LayerSize, *, matrix_product: bool) -> None:
        super().__init__()
        self.depthwise = ConvNorm(
            SameConv2d(
                in_channels, in_channels, size.kernel, stride=size.stride, groups=in_channels
            )
        )
        self.pointwise = ConvNorm(
            PointwiseConv2d(in_channels, size.channels, bias=True, matrix_product=matrix_product)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pointwise(self.depthwise(x))


class DSCNN(nn.Module):
    """DS-CNN; 23,180 (S), 136,580 (M) or 413,736 (L) parameters with 12 labels.

    Takes features [N, frames, coefficients] or [N, 1, frames, coefficients] and returns logits
    [N, num_labels].

    Args:
        num_labels: Length of the logits.
        size: The original's `model_size_info`; one of `SIZES` or a list of the same form.
        matrix_product: Whether the 1x1 convolutions may be computed as matrix products on a CPU.
            Pass False if an op list treats convolutions and matrix products differently.

    Raises:
        ValueError: The size is not a valid list.
    """

    def __init__(
        self, *, num_labels: int, size: Sequence[int] = SIZES["S"], matrix_product: bool = True
    ) -> None:
        super().__init__()
        first, *later_layers = read_size(size)
        self.first = ConvNorm(SameConv2d(1, first.channels, first.kernel, stride=first.stride))
        channels = first.channels
        blocks: list[DepthwiseSeparable] = []
        for layer in later_layers:
            blocks.append(DepthwiseSeparable(channels, layer, matrix_product=matrix_product))
            channels = layer.channels
        self.blocks = nn.Sequential(*blocks)
        self.classifier = nn.Linear(channels, num_labels)
        self.reset_parameters()

    def layer_order(self) -> list[str]:
        """The prefixes of the layers' parameters, from the input to the output."""
        blocks = [f"blocks.{number}" for number in range(len(self.blocks))]
        return ["first", *blocks, "classifier"]

    def reset_parameters(self) -> None:
        """Initialise as the original does: Glorot uniform weights and zero biases."""
        glorot_uniform_(self)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        x = features[:, None] if features.ndim == 3 else features
        return self.classifier(self.blocks(self.first(x)).mean((2, 3)))


@dataclass(frozen=True)
class DepthwiseKernel(Layout):
    """Between [height, width, channels, 1] and [channels, 1, height, width]."""

    def to_torch(self, array: Array) -> Array:
        return array.transpose(2, 3, 0, 1)

    def to_tensorflow(self, array: Array) -> Array:
        return array.transpose(2, 3, 0, 1)


def tf_variables(model: DSCNN) -> list[TfVariable]:
    """The variables of the original in graph order, with their names here."""
    variables = _layer_variables(f"{TF_SCOPE}/conv_1", "first", "weights", ConvolutionKernel())
    for number in range(len(model.blocks)):
        scope, name = f"{TF_SCOPE}/conv_ds_{number + 1}", f"blocks.{number}"
        variables += _layer_variables(
            f"{scope}/dw_conv", f"{name}.depthwise", "depthwise_weights", DepthwiseKernel()
        )
        variables += _layer_variables(
            f"{scope}/pw_conv", f"{name}.pointwise", "weights", ConvolutionKernel()
        )
    return [
        *variables,
        TfVariable(
            tf_name=f"{TF_SCOPE}/fc1/weights", name="classifier.weight", layout=DenseKernel()
        ),
        unchanged(f"{TF_SCOPE}/fc1/biases", "classifier.bias"),
    ]


def tf_names(model: DSCNN) -> TfNames:
    """Names in checkpoints of the original, and in the frozen graphs that were published with it.

    Those graphs were created by older code with other scopes. Their constants of ones, which
    replace the batch norms' missing scale, are ignored.
    """
    return TfNames(
        variables=tf_variables(model),
        averages="none",
        optimizers=(adam_state(scope="train"),),
        # `create_train_op` counts, and so does the script's own `increment_global_step`.
        counting=TfCounting(global_step=2),
        renamings=(
            (r"^MobileNet/(conv_ds_\d+)/depthwise_conv/(\w+)$", rf"{TF_SCOPE}/\1/dw_conv/\2"),
            (r"^MobileNet/(conv_ds_\d+)/pointwise_conv/(\w+)$", rf"{TF_SCOPE}/\1/pw_conv/\2"),
            (
                r"^MobileNet/(conv_ds_\d+)/(dw|pw)_batch_norm/(beta|moving_\w+)$",
                rf"{TF_SCOPE}/\1/\2_conv/batch_norm/\3",
            ),
            (r"^MobileNet/((?:conv_1|fc1)/\w+)$", rf"{TF_SCOPE}/\1"),
            (
                r"^MobileNet/(conv_1/batch_norm)/(beta|moving_\w+)$",
                rf"{TF_SCOPE}/\1/\2",
            ),
        ),
        ignored=(
            r"^.*batch_norm/Const(_\d+)?$",
            r"^.*/Adam(_1)?$",
            r"^(.*/)?beta[12]_power$",
            r"^global_step$",
            r"^(.*/)?(Reshape|wav_data|Mfcc|AudioSpectrogram|DecodeWav)[^/]*(/.*)?$",
        ),
    )


def _layer_variables(scope: str, name: str, weights: str, kernel: Layout) -> list[TfVariable]:
    parts = {
        "biases": "conv.bias",
        "batch_norm/beta": "norm.bias",
        "batch_norm/moving_mean": "norm.running_mean",
        "batch_norm/moving_variance": "norm.running_var",
    }
    return [
        TfVariable(tf_name=f"{scope}/{weights}", name=f"{name}.conv.weight", layout=kernel),
        *(unchanged(f"{scope}/{tf_part}", f"{name}.{part}") for tf_part, part in parts.items()),
    ]
