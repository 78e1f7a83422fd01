"""ViDeNN: a spatial network for single frames, a temporal one for three frames, and both chained.

Paper: M. Claus and J. van Gemert, "ViDeNN: Deep Blind Video Denoising", arXiv 1904.10898.
Original: clausmichele/ViDeNN in TensorFlow 1.15 (the spatial network also as ViDeNN_ID1146 of
Ascend's ModelZoo). Each has twenty 3x3 convolutions that predict the noise to subtract from the
input. Values are 8-bit levels divided by 255.

The original reads images with OpenCV, so its weights expect blue, green, red; `bgr=True` reverses
the channels on the way in and out, so that images here stay red, green, blue.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional

from jumar.models.initializers import glorot_uniform_
from jumar.models.tf_layout import (
    TfNames,
    TfVariable,
    adam_state,
    batch_norm_variables,
    convolution_variables,
)

DEPTH = 20
WIDTH = 64
BATCH_NORM_EPSILON = 1e-3
BATCH_NORM_MOMENTUM = 0.01
LEAKY_SLOPE = 0.2


class _Convolutions(nn.Module):
    """The common part of both networks: 3x3 convolutions from frames to the noise in one of them.

    Args:
        channels: Channels of a frame: 3, or 1 for grey, which the original does not support.
        bgr: Whether the weights expect blue, green, red; see the module's docstring.
        output_bias: A bias in the last convolution. The original's code has none, but its
            published `ckpt_awgn` and `ckpt_videnn` were trained with one.
        depth: Number of convolutions; the original has 20.
        width: Hidden channels; the original has 64, twice as many after the first convolution.
    """

    frames: ClassVar[int]
    """Number of input frames, concatenated along the channels."""
    has_norms: ClassVar[bool]
    """Whether batch norms follow the convolutions between the first and the last."""
    norms: nn.ModuleList

    def __init__(
        self,
        *,
        channels: int = 3,
        bgr: bool = False,
        output_bias: bool = False,
        depth: int = DEPTH,
        width: int = WIDTH,
    ) -> None:
        super().__init__()
        if bgr and channels != 3:
            raise ValueError("only colour images have channels to reverse")
        self.channels = channels
        self.bgr = bgr
        self.head = nn.Conv2d(self.frames * channels, 2 * width, 3, padding=1)
        self.body = nn.ModuleList(
            nn.Conv2d(2 * width if index == 0 else width, width, 3, padding=1, bias=False)
            for index in range(depth - 2)
        )
        if self.has_norms:
            self.norms = nn.ModuleList(
                nn.BatchNorm2d(width, eps=BATCH_NORM_EPSILON, momentum=BATCH_NORM_MOMENTUM)
                for _ in range(depth - 2)
            )
        self.tail = nn.Conv2d(width, channels, 3, padding=1, bias=output_bias)
        glorot_uniform_(self)


class SpatialCNN(_Convolutions):
    """Denoises single frames [N, channels, height, width] of any size.

    A convolution with 128 channels, bias and ReLU, eighteen with 64 channels, batch norm and ReLU,
    and one with 3 channels whose output is subtracted from the input.
    """

    frames = 1
    has_norms = True

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        x = _reversed_channels(frames) if self.bgr else frames
        y = functional.relu_(self.head(x))
        for conv, norm in zip(self.body, self.norms, strict=True):
            # In place: the backward pass of a ReLU needs only its output, and on a CPU a second
            # copy of every feature map costs a tenth of the step.
            y = functional.relu_(norm(conv(y)))
        y = x - self.tail(y)
        return _reversed_channels(y) if self.bgr else y


class Temp3CNN(_Convolutions):
    """Denoises the middle one of three frames: from [N, 9, height, width] to [N, 3, ...].

    The channels are those of the previous, the current and the next frame, each already denoised by
    the spatial network. Like `SpatialCNN`, but with leaky ReLUs of slope 0.2 and no batch norms.
    """

    frames = 3
    has_norms = False

    def forward(self, triplets: torch.Tensor) -> torch.Tensor:
        x = _reversed_channels(triplets) if self.bgr else triplets
        y = functional.leaky_relu_(self.head(x), LEAKY_SLOPE)
        for conv in self.body:
            y = functional.leaky_relu_(conv(y), LEAKY_SLOPE)
        y = x[:, self.channels : 2 * self.channels] - self.tail(y)
        return _reversed_channels(y) if self.bgr else y


class ViDeNN(nn.Module):
    """Denoises the middle one of three noisy frames [N, 9, height, width] with both networks.

    The spatial network is already trained: it stays in evaluation mode and gets no gradients.

    Args:
        spatial: Denoises each frame.
        temporal: Processes the three denoised frames.
        margin: In training, by how many pixels the frames exceed the output on each side. They are
            cut off between the two networks; if the margin equals the radius of the spatial one,
            the temporal one gets the same input as for whole frames.
    """

    def __init__(self, spatial: SpatialCNN, temporal: Temp3CNN, *, margin: int = 0) -> None:
        super().__init__()
        self.spatial = spatial.requires_grad_(False)
        self.temporal = temporal
        self.margin = margin
        self.train(self.training)

    def train(self, mode: bool = True) -> "ViDeNN":
        super().train(mode)
        self.spatial.eval()
        return self

    def forward(self, triplets: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            frames = self.spatial(triplets.unflatten(1, (3, -1)).flatten(0, 1))
            if self.training and self.margin:
                inner = slice(self.margin, -self.margin)
                frames = frames[:, :, inner, inner]
            neighbours = frames.unflatten(0, (-1, 3)).flatten(1, 2)
        return self.temporal(neighbours)


def tf_names(model: SpatialCNN | Temp3CNN, *, prefix: str = "") -> TfNames:
    """The names of one of the two networks' weights in the original's checkpoints.

    The checkpoint with both networks (`ckpt_videnn`) fits either: the other one's variables are
    ignored. ID1146 stores the trained variables under `static_graph/`, and their copies for
    evaluation under `dynamic_graph/`.

    Args:
        model: The network.
        prefix: Its prefix in a larger model, for instance `spatial.`.
    """
    own_prefix, other_prefix = ("temp-", "") if isinstance(model, Temp3CNN) else ("", "temp-")
    return TfNames(
        variables=tf_variables(model, prefix=prefix),
        averages="none",
        optimizers=(adam_state("AdamOptimizer"),),
        renamings=[(rf"^static_graph/({own_prefix}block\d+/.*)$", r"\1")],
        ignored=[
            *_IGNORED_NAMES,
            *(
                []
                if model.tail.bias is not None
                else [rf"^(static_graph/)?{own_prefix}block20/conv2d/bias$"]
            ),
            rf"^(static_graph/)?{other_prefix}block\d+/",
        ],
    )


def joint_tf_names(
    spatial: SpatialCNN, temporal: Temp3CNN, *, spatial_prefix: str, temporal_prefix: str
) -> TfNames:
    """The names of both networks' weights in a checkpoint that has both."""
    first = tf_names(spatial, prefix=spatial_prefix)
    second = tf_names(temporal, prefix=temporal_prefix)
    biases = [
        pattern
        for names in (first, second)
        for pattern in names.ignored
        if "conv2d/bias" in pattern
    ]
    return TfNames(
        variables=[*first.variables, *second.variables],
        averages="none",
        renamings=[*first.renamings, *second.renamings],
        ignored=[*_IGNORED_NAMES, *biases],
    )


_IGNORED_NAMES: Sequence[str] = (
    r"/AdamOptimizer(_1)?$",
    r"^(static_graph/)?beta[12]_power(_1)?$",
    r"^dynamic_graph/",
    r"^(global_step|learning_rate)$",
)


def tf_variables(model: SpatialCNN | Temp3CNN, *, prefix: str = "") -> list[TfVariable]:
    """The variables of one of the two networks in the original's graph order.

    93 of the spatial network and 21 of the temporal one, both with the original's depth.

    Args:
        model: The network.
        prefix: Its prefix in a larger model, for instance `spatial.`.
    """
    scope = "block" if model.has_norms else "temp-block"
    variables = convolution_variables(f"{scope}1/conv2d", f"{prefix}head", bias=True)
    last = len(model.body) + 2
    for index in range(len(model.body)):
        number = index + 2
        variables += convolution_variables(
            f"{scope}{number}/conv{number}", f"{prefix}body.{index}", bias=False
        )
        if model.has_norms:
            variables += batch_norm_variables(
                f"{scope}{number}/batch_normalization", f"{prefix}norms.{index}"
            )
    has_bias = model.tail.bias is not None
    return variables + convolution_variables(
        f"{scope}{last}/conv2d", f"{prefix}tail", bias=has_bias
    )


def _reversed_channels(x: torch.Tensor) -> torch.Tensor:
    """The input with the three channels of each frame in reverse order."""
    return x.unflatten(1, (-1, 3)).flip(2).flatten(1, 2)
