"""PSENet: detection of text of any shape by nested kernels that grow into whole words.

Paper: W. Wang et al., "Shape Robust Text Detection with Progressive Scale Expansion Network",
https://arxiv.org/abs/1806.02559. Original: liuheng92/tensorflow_PSENet in TensorFlow 1.15, which is
PSENet_ID0239 of Ascend's ModelZoo.

Data: images and the outlines of their words in the format of ICDAR, MLT or Total-Text, or in JSON.
Expected on ICDAR 2015: precision 74.6 %, recall 80.9 %, H-mean 77.6 % (the original's, trained on
ICDAR 2015 and MLT 2017 from ImageNet weights). The paper reports 80.6 % from ICDAR 2015 alone.

Choices where the sources disagree:

- The learning rate is 1e-5 with 8 images, as in the code; ID0239's README says 1e-4 with 14.
- The loss is the code's: dice without squares, over the whole batch and all background pixels.
  `loss=dice_ohem` is the paper's: dice with squares for each image, with the three hardest
  background pixels per text pixel.
- The original imports slim's ImageNet weights without the statistics of the batch norms, and trains
  twice on every hundredth batch, for which it also logs. Here, an import includes the statistics,
  and every batch is one step.
- `psenet-small` is an addition: ResNet-18 of half the width, a pyramid of 32 channels, the paper's
  loss and a higher rate, for a CPU and without ImageNet weights.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, cast

from torch import nn

from jumar.data.polygons.augmentation import TextAugmentation
from jumar.data.polygons.detection_data import DetectionData, Targets
from jumar.data.polygons.kernel_words import Outline
from jumar.data.polygons.kernels import KERNELS
from jumar.models.psenet import PSENet, tf_names
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
from jumar.tasks.detection_losses import BatchDice, HardDice, KernelLoss
from jumar.tasks.text_detection import KernelObjective, KernelReader, Reader


@dataclass(frozen=True, kw_only=True)
class PSENetModel(DetectorModel):
    """The network."""

    width: int = setting(256, "Channels of the feature pyramid.", minimum=1)


@dataclass(frozen=True, kw_only=True)
class KernelReading:
    """The extraction of words from the maps."""

    threshold: float = setting(
        0.9, "A pixel belongs to a kernel if its probability is higher.", minimum=0, maximum=1
    )
    least_area: int = setting(
        10,
        "Words whose smallest kernel has a smaller area in the maps are dropped as noise.",
        unit="px",
        minimum=1,
    )
    least_score: float = setting(
        0.0, "Words with a lower mean in the last map are dropped.", minimum=0, maximum=1
    )
    outline: str = setting(
        "rectangle",
        "rectangle: smallest one around a word, as in the original; polygon: follows curved words.",
        choices=("rectangle", "polygon"),
    )


@dataclass(frozen=True, kw_only=True)
class PSENetRecipe(DetectionRecipe):
    """PSENet, its images and its optimizer."""

    targets: ClassVar[Targets] = "kernels"

    model: PSENetModel = setting(PSENetModel(), "The network.")
    loss: KernelLoss = setting(BatchDice(), "What is minimised.")
    reading: KernelReading = setting(KernelReading(), "From maps to words.", changeable=True)

    def build_model(self) -> PSENet:
        """Build the network with six kernels."""
        network = PSENet(
            depth=self.model.depth,
            backbone_width=self.model.backbone_width,
            kernels=KERNELS,
            width=self.model.width,
            matrix_product=self.model.matrix_product,
        )
        set_norm_decay(network, self.model.norm_decay)
        return network

    def objective(self, network: nn.Module) -> KernelObjective:
        """See `DetectionRecipe.objective`."""
        return KernelObjective(cast(PSENet, network), loss=self.loss)

    def reader(self, network: nn.Module) -> Reader:
        """Return a reader that grows words from the smallest kernels."""
        return KernelReader(
            network=cast(PSENet, network),
            threshold=self.reading.threshold,
            least_area=self.reading.least_area,
            least_score=self.reading.least_score,
            outline=cast("Outline", self.reading.outline),
        )

    def tf_names(self, model: nn.Module) -> TfNames:
        """Return the names in the original's checkpoints, and in slim's for ImageNet."""
        return tf_names(cast(PSENet, model))


@register("psenet")
def psenet() -> PSENetRecipe:
    """PSENet on ResNet-50: 512 px, batch 8, Adam 1e-5, 100,000 steps.

    Run: jumar train psenet --set data.path=ICDAR2015 --set transfer.start_from=IMAGENET
    """
    return as_published(
        PSENetRecipe,
        DetectionData(
            image_size=512,
            batch_size=8,
            eval_longest=1200,
            eval_rounding="up",
            augmentation=TextAugmentation(scales=(0.125, 0.25, 0.5, 1.0, 2.0, 3.0)),
        ),
        learning_rate=1e-5,
    )


@register("psenet-small")
def psenet_small() -> PSENetRecipe:
    """PSENet for a CPU: narrow ResNet-18, 320 px, batch 8, Adam 1e-3, 5,000 steps.

    Run: jumar train psenet-small --set data.path=WORDS
    """
    return replace(
        for_a_cpu(psenet()),
        model=PSENetModel(backbone="resnet18", backbone_width=32, width=32),
        loss=HardDice(),
        # The best of 0.5, 0.7 and 0.9 on training images: 0.9 splits large words.
        reading=KernelReading(threshold=0.7),
    )
