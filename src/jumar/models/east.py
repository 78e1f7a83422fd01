"""EAST predicts for every pixel whether it is text, and the rotated box around the text.

Paper: Zhou et al., "EAST: An Efficient and Accurate Scene Text Detector", arXiv 1704.03155. Written
from the paper and from outputs of a TensorFlow implementation, not from its code, which is GPL.
The backbone is ResNet-50 as in that implementation and in Ascend's ModelZoo (ID0238); the paper
has PVANET and VGG-16.
"""

import math
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from jumar.models.legacy_bilinear import enlarge
from jumar.models.resnet_v1 import ResNetV1
from jumar.models.slim_convolution import SlimConv2d, detector_names
from jumar.models.tf_layout import TfNames, TfVariable, numbered

_WIDTHS = (128, 64, 32)


class EastMaps(NamedTuple):
    """The output of EAST, at a quarter of the image's sides and in float32.

    Attributes:
        score: Probability of text, [N, 1, height / 4, width / 4].
        geometry: [N, 5, height / 4, width / 4]: distances in pixels of the image to the top,
            right, bottom and left side of the box, and its angle from -pi / 4 to pi / 4.
    """

    score: Tensor
    geometry: Tensor


class _Merge(nn.Module):
    """A step of the feature fusion: two maps concatenated, reduced by 1x1 and merged by 3x3."""

    def __init__(self, channels: int, width: int, *, matrix_product: bool) -> None:
        super().__init__()
        self.reduce = SlimConv2d(channels, width, 1, norm=True, matrix_product=matrix_product)
        self.mix = SlimConv2d(width, width, 3, norm=True)

    def forward(self, coarse: Tensor, features: Tensor) -> Tensor:
        return self.mix(self.reduce(torch.cat([enlarge(coarse, 2), features], dim=1)))


class East(nn.Module):
    """EAST with rotated boxes; 24,068,294 parameters with a depth of 50.

    Takes RGB images [N, 3, height, width] with levels from 0 to 255 and sides that are multiples
    of 32; see `EastMaps` for its output.

    Args:
        depth: Depth of the backbone; see `ResNetV1`.
        backbone_width: Channels of its first convolution.
        text_scale: The largest distance in pixels; in the original, the side of its training
            images.
        matrix_product: See `PointwiseConv2d`.

    Raises:
        ValueError: There is no backbone of this depth.
    """

    def __init__(
        self,
        *,
        depth: int = 50,
        backbone_width: int = 64,
        text_scale: int = 512,
        matrix_product: bool = True,
    ) -> None:
        super().__init__()
        self.text_scale = text_scale
        self.backbone = ResNetV1(depth, width=backbone_width, matrix_product=matrix_product)
        *finer, channels = self.backbone.channels
        merges: list[_Merge] = []
        for features, width in zip(reversed(finer), _WIDTHS, strict=True):
            merges.append(_Merge(channels + features, width, matrix_product=matrix_product))
            channels = width
        self.merges = nn.ModuleList(merges)
        self.last = SlimConv2d(channels, channels, 3, norm=True)
        self.score, self.distances, self.angle = (
            SlimConv2d(channels, maps, 1, norm=False, relu=False, matrix_product=matrix_product)
            for maps in (1, 4, 1)
        )

    def forward(self, images: Tensor) -> EastMaps:
        *finer, x = self.backbone(images)
        for merge, features in zip(self.merges, reversed(finer), strict=True):
            x = merge(x, features)
        x = self.last(x)
        distances = self.distances(x).float().sigmoid() * self.text_scale
        angle = (self.angle(x).float().sigmoid() - 0.5) * (math.pi / 2)
        score = self.score(x).float().sigmoid()
        return EastMaps(score=score, geometry=torch.cat([distances, angle], dim=1))


def tf_variables(model: East) -> list[TfVariable]:
    """The variables of the original in graph order (306 for a depth of 50), with their names here.

    The backbone's variables have the same names as slim's ImageNet classifier, so that its
    checkpoints can initialise the backbone.
    """
    parts: list[tuple[str, SlimConv2d]] = []
    for number, merge in enumerate(model.merges):
        stage = cast(_Merge, merge)
        parts += [
            (f"merges.{number}.reduce", stage.reduce),
            (f"merges.{number}.mix", stage.mix),
        ]
    parts += [("last", model.last), ("score", model.score)]
    parts += [("distances", model.distances), ("angle", model.angle)]
    variables = model.backbone.tf_variables("backbone")
    for number, (name, convolution) in enumerate(parts):
        variables += convolution.tf_variables(numbered("feature_fusion/Conv", number), name)
    return variables


def tf_names(model: East) -> TfNames:
    """The names in the original's checkpoints."""
    return detector_names(tf_variables(model))
