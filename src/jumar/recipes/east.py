"""EAST: text detection with rotated boxes, predicted at every pixel and merged.

Paper: X. Zhou et al., "EAST: An Efficient and Accurate Scene Text Detector",
https://arxiv.org/abs/1704.03155. Original: EAST_ID0238 of Ascend's ModelZoo for TensorFlow 1.15.
Its code is under the GPL and was not read: the recipe is based on the paper and on numerical
results of a TensorFlow implementation.

Data: images and the outlines of their words in the format of ICDAR, MLT or Total-Text, or in JSON.
Expected on ICDAR 2015: H-mean 80.8 % (published for ResNet-50, trained on ICDAR 2013 and 2015 from
ImageNet weights). The paper reports 76.4 % with VGG-16 and 78.2 % with its largest network.

Choices where the sources disagree:

- The loss is the original's: the dice loss of the score with weight 0.01, and the mean box loss
  over all pixels with weight 20 for the angle. `loss=balanced` is the paper's: class-balanced
  cross-entropy, and the mean box loss over text with weight 10 for the angle.
- Sides of scored images are rounded down to multiples of 32; the original subtracts another 32 if
  a side is not a multiple.
- `east-small` is an addition: ResNet-18 of half the width, the paper's loss and a higher rate, for
  a CPU and without ImageNet weights.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, cast

from torch import nn

from jumar.data.polygons.augmentation import TextAugmentation
from jumar.data.polygons.detection_data import DetectionData, Targets
from jumar.models.east import East, tf_names
from jumar.models.slim_convolution import set_norm_decay
from jumar.models.tf_layout import TfNames
from jumar.recipes.registry import register
from jumar.recipes.text_detection import (
    DetectionRecipe,
    DetectorModel,
    as_published,
    for_a_cpu,
)
from jumar.settings import setting
from jumar.tasks.detection_losses import BalancedCrossEntropy, BoxLoss, DiceAndBoxes
from jumar.tasks.text_detection import BoxObjective, BoxReader, Reader


@dataclass(frozen=True, kw_only=True)
class EastModel(DetectorModel):
    """The network."""

    text_scale: int = setting(
        512, "Maximum distance from a pixel to a side of its word.", unit="px", minimum=1
    )


@dataclass(frozen=True, kw_only=True)
class BoxReading:
    """The extraction of words from the maps."""

    threshold: float = setting(
        0.8, "Only pixels with a higher score predict boxes.", minimum=0, maximum=1
    )
    overlap: float = setting(
        0.2, "Boxes with a larger overlap (IoU) are merged into one word.", minimum=0, maximum=1
    )
    least_score: float = setting(
        0.1, "Words whose box has a lower mean score are dropped.", minimum=0, maximum=1
    )


@dataclass(frozen=True, kw_only=True)
class EastRecipe(DetectionRecipe):
    """EAST, its images and its optimizer."""

    targets: ClassVar[Targets] = "score"

    model: EastModel = setting(EastModel(), "The network.")
    loss: BoxLoss = setting(DiceAndBoxes(), "What is minimised.")
    reading: BoxReading = setting(BoxReading(), "From maps to words.", changeable=True)

    def build_model(self) -> East:
        """Build the network."""
        network = East(
            depth=self.model.depth,
            backbone_width=self.model.backbone_width,
            text_scale=self.model.text_scale,
            matrix_product=self.model.matrix_product,
        )
        set_norm_decay(network, self.model.norm_decay)
        return network

    def objective(self, network: nn.Module) -> BoxObjective:
        """See `DetectionRecipe.objective`."""
        return BoxObjective(cast(East, network), loss=self.loss)

    def reader(self, network: nn.Module) -> Reader:
        """Return a reader that merges the boxes of neighbouring pixels."""
        return BoxReader(
            network=cast(East, network),
            threshold=self.reading.threshold,
            overlap=self.reading.overlap,
            least_score=self.reading.least_score,
        )

    def tf_names(self, model: nn.Module) -> TfNames:
        """Return the names in the original's checkpoints, and in slim's for ImageNet."""
        return tf_names(cast(East, model))


@register("east")
def east() -> EastRecipe:
    """EAST on ResNet-50: 512 px, batch 14, Adam 1e-4, 100,000 steps.

    Run: jumar train east --set data.path=ICDAR2015 --set transfer.start_from=IMAGENET
    """
    return as_published(
        EastRecipe,
        DetectionData(
            image_size=512,
            batch_size=14,
            eval_longest=2400,
            eval_rounding="down",
            augmentation=TextAugmentation(scales=(0.5, 1.0, 2.0, 3.0)),
        ),
        learning_rate=1e-4,
    )


@register("east-small")
def east_small() -> EastRecipe:
    """EAST for a CPU: narrow ResNet-18, 320 px, batch 8, Adam 1e-3, 5,000 steps.

    Run: jumar train east-small --set data.path=WORDS
    """
    return replace(
        for_a_cpu(east()),
        model=EastModel(backbone="resnet18", backbone_width=32),
        loss=BalancedCrossEntropy(),
        # The best of 0.8, 0.9, 0.95 and 0.98 on training images: with the balanced loss, scores
        # near a word are as high as in the word.
        reading=BoxReading(threshold=0.95),
    )
