"""AlexNet in its one-tower form, as trained with TensorFlow 1.15 on Ascend 910.

Paper: A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks",
https://arxiv.org/abs/1404.5997. Original: AlexNet_ID0072 of Ascend's ModelZoo for TensorFlow.

Data: ImageNet (TFRecord shards, class folders or zips); without `data.path` the handwritten
digits that come with scikit-learn.
Expected on ImageNet after 150 epochs: top-1 60.1 %, top-5 82.1 % (published log of the
original; about 33,000 images a second on 8 Ascend 910).

Choices where the sources disagree:

- The base learning rate depends on the batch: 0.06 with 8 x 128 (`alexnet-8p`) and 0.015 with
  1 x 256 (`alexnet`), as in the original's launch scripts. The table of the Ascend blog, "0.06"
  next to "256 for single NPU", mixes two rows; 0.06 with 256 is four times the rate per sample.
- Each image is flipped or not at random. The original decides once, when its pipeline is traced, so
  that all images of a run are flipped or none.
- Evaluation counts every image. The original drops the last incomplete batch (49,921 of 50,000).
- The ReLU on the logits, which all variants of the original have, is kept (`model.logits_relu`).
- No loss scale, as in the original: the Ascend 910 saturates instead of overflowing. Where fp16
  overflows to infinity (CUDA), a run stops with an error at the first infinite gradient; in that
  case, set `precision.loss_scale=exponential`.
- Checkpoints every epoch instead of every 112,590 steps.
"""

from dataclasses import dataclass, replace
from typing import cast

from torch import nn

from jumar.data.images.image_set import ImageData
from jumar.data.pixels.preprocessing import alexnet_preprocessing
from jumar.models.alexnet import AlexNet, Initialization, tf_variables
from jumar.models.tf_layout import TfNames, momentum_state
from jumar.precision.settings import PrecisionSettings
from jumar.recipes.classification import ClassificationRecipe, Network
from jumar.recipes.registry import register
from jumar.settings import setting
from jumar.training.optimizers import Momentum
from jumar.training.schedules import Cosine
from jumar.training.settings import CheckpointSettings, TrainingSettings


@dataclass(frozen=True, kw_only=True)
class AlexNetModel(Network):
    """The network of the original."""

    dropout: float = setting(
        0.35, "Share of dense features to drop (keep 0.65).", minimum=0, maximum=0.99
    )
    logits_relu: bool = setting(True, "The original's ReLU on the logits.")
    initialization: str = setting(
        "he_uniform",
        "Weight initialisation.",
        choices=("he_uniform", "xavier", "he_uniform_custom"),
    )

    def create(self, *, num_classes: int, image_size: int) -> nn.Module:
        """Build AlexNet for images of at least 63 px."""
        return AlexNet(
            num_classes=num_classes,
            image_size=image_size,
            dropout=self.dropout,
            logits_relu=self.logits_relu,
            initialization=cast(Initialization, self.initialization),
        )

    def tf_names(self, network: nn.Module) -> TfNames:
        """Return the names in the original's graph."""
        assert isinstance(network, AlexNet)
        return TfNames(variables=tf_variables(network), optimizers=(momentum_state(),))


@register("alexnet")
def alexnet() -> ClassificationRecipe:
    """AlexNet on one card: batch 256, learning rate 0.015, 150 epochs.

    Run: jumar train alexnet --set data.path=IMAGENET
    """
    return ClassificationRecipe(
        model=AlexNetModel(),
        data=ImageData(
            image_size=224,
            batch_size=256,
            label_offset=-1,
            preprocessing=alexnet_preprocessing(),
        ),
        optimizer=Momentum(learning_rate=0.015, momentum=0.9, nesterov=True, weight_decay=1e-4),
        schedule=Cosine(warmup="5ep", warmup_kind="linear", decay_from="start", per_epoch=True),
        training=TrainingSettings(duration="150ep", log_every="100it"),
        checkpoints=CheckpointSettings(every="1ep", keep=5),
        precision=PrecisionSettings(mode="allow_mix_precision"),
    )


@register("alexnet-8p", ranks=8)
def alexnet_8p() -> ClassificationRecipe:
    """AlexNet on eight cards: batch 8 x 128, learning rate 0.06, 150 epochs.

    Run: torchrun --nproc-per-node 8 -m jumar train alexnet-8p --set data.path=IMAGENET
    """
    recipe = alexnet()
    return replace(
        recipe,
        data=replace(recipe.data, batch_size=128),
        optimizer=replace(recipe.optimizer, learning_rate=0.06),
    )


@register("alexnet-demo")
def alexnet_demo() -> ClassificationRecipe:
    """AlexNet on the handwritten digits at 64 px: above 90 % top-1 within a minute on two cores.

    Data: the 1797 digits of 8 x 8 px that come with scikit-learn, enlarged; not mirrored, and only
    slightly cropped. The ReLU on the logits is off: with ten classes and small batches, it soon
    sets all logits to zero, which stops the training. Run: make demo
    """
    recipe = alexnet()
    return replace(
        recipe,
        model=AlexNetModel(logits_relu=False),
        data=replace(
            recipe.data,
            path="digits",
            image_size=64,
            batch_size=32,
            label_offset=0,
            workers=0,
            preprocessing=replace(recipe.data.preprocessing, flip=False, crop_area=(0.7, 1.0)),
        ),
        optimizer=replace(recipe.optimizer, learning_rate=0.01),
        schedule=replace(recipe.schedule, warmup="1ep", per_epoch=False),
        training=replace(recipe.training, duration="5ep", log_every="10it", evaluate_every="1ep"),
        checkpoints=CheckpointSettings(every="5ep", keep=1, keep_best=False),
    )
