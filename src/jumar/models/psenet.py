"""PSENet predicts text as nested kernels, from the smallest to the whole text.

Paper: Wang et al., "Shape Robust Text Detection with Progressive Scale Expansion Network",
arXiv 1806.02559. The graph is that of liuheng92/tensorflow_PSENet (MIT), which Ascend's ModelZoo
ported (ID0239). Unlike the authors' network, it has a ReLU after every convolution of the pyramid,
and enlarges maps without aligning pixels.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jumar.models.legacy_bilinear import enlarge
from jumar.models.resnet_v1 import ResNetV1
from jumar.models.slim_convolution import SlimConv2d, detector_names
from jumar.models.tf_layout import TfNames, TfVariable


class _Level(nn.Module):
    """A level of the feature pyramid: the level below is enlarged and added to a feature map."""

    def __init__(self, channels: int, width: int, *, matrix_product: bool) -> None:
        super().__init__()
        self.reduce = SlimConv2d(channels, width, 1, norm=False, matrix_product=matrix_product)
        self.smooth = SlimConv2d(width, width, 3, norm=False)

    def forward(self, coarse: Tensor, features: Tensor) -> Tensor:
        larger = F.interpolate(coarse, size=features.shape[2:], mode="nearest")
        return self.smooth(larger + self.reduce(features))


class PSENet(nn.Module):
    """PSENet; 28,377,926 parameters with a depth of 50 and six kernels.

    Takes RGB images [N, 3, height, width] with levels from 0 to 255 and sides that are multiples
    of 32, and returns probabilities [N, kernels, height / 4, width / 4] in float32: the smallest
    kernels first, the whole text last.

    Args:
        depth: Depth of the backbone; see `ResNetV1`.
        backbone_width: Channels of its first convolution.
        kernels: Maps of the output.
        width: Channels of the feature pyramid.
        matrix_product: See `PointwiseConv2d`.

    Raises:
        ValueError: There is no backbone of this depth.
    """

    def __init__(
        self,
        *,
        depth: int = 50,
        backbone_width: int = 64,
        kernels: int = 6,
        width: int = 256,
        matrix_product: bool = True,
    ) -> None:
        super().__init__()
        self.backbone = ResNetV1(depth, width=backbone_width, matrix_product=matrix_product)
        *finer, coarsest = self.backbone.channels
        self.p5 = SlimConv2d(coarsest, width, 1, norm=False, matrix_product=matrix_product)
        self.p2, self.p3, self.p4 = (
            _Level(channels, width, matrix_product=matrix_product) for channels in finer
        )
        self.fusion = SlimConv2d(4 * width, width, 3, norm=True)
        self.head = SlimConv2d(
            width, kernels, 1, norm=False, relu=False, matrix_product=matrix_product
        )

    def forward(self, images: Tensor) -> Tensor:
        c2, c3, c4, c5 = self.backbone(images)
        p5 = self.p5(c5)
        p4 = self.p4(p5, c4)
        p3 = self.p3(p4, c3)
        p2 = self.p2(p3, c2)
        pyramid = [enlarge(p5, 8), enlarge(p4, 4), enlarge(p3, 2), p2]
        return self.head(self.fusion(torch.cat(pyramid, dim=1))).float().sigmoid()


def tf_variables(model: PSENet) -> list[TfVariable]:
    """The variables of the original in graph order (286 for a depth of 50), with their names here.

    The backbone's variables have the same names as slim's ImageNet classifier, so that its
    checkpoints can initialise the backbone.
    """
    pyramid = "build_feature_pyramid/build_P"
    variables = model.backbone.tf_variables("backbone")
    variables += model.p5.tf_variables(f"{pyramid}5", "p5")
    for number, level in ((4, model.p4), (3, model.p3), (2, model.p2)):
        scope = f"{pyramid}{number}"
        variables += level.reduce.tf_variables(f"{scope}/reduce_dimension", f"p{number}.reduce")
        variables += level.smooth.tf_variables(f"{scope}/avoid_aliasing", f"p{number}.smooth")
    variables += model.fusion.tf_variables("feature_results/Conv", "fusion")
    return variables + model.head.tf_variables("feature_results/Conv_1", "head")


def tf_names(model: PSENet) -> TfNames:
    """The names in the original's checkpoints."""
    return detector_names(tf_variables(model))
