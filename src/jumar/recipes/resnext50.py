"""ResNeXt-50 32x4d, as trained with TensorFlow 1.15 on Ascend 910.

Paper: S. Xie et al., "Aggregated Residual Transformations for Deep Neural Networks",
https://arxiv.org/abs/1611.05431. Original: ResNext50_TF_MTI and ResNext50_ID0070 of Ascend's
ModelZoo for TensorFlow.

Data: ImageNet (TFRecord shards, class folders or zips); without `data.path` the handwritten
digits that come with scikit-learn. 1001 classes: label 0 is the background of the shards.
Expected on ImageNet after 120 epochs on eight cards: top-1 78.2 %, top-5 94.1 % (published log).

Choices where the sources disagree:

- Two configurations were published: 32 images per card with a peak learning rate of 0.1 (MTI,
  whose log ends at 78.2 %) and 256 per card with 0.8 (ID0070). `resnext50-8p` is the first,
  `resnext50-256bs-8p` the second.
- `resnext50` is for one card: 256 images, so that the global batch, the learning rate and the
  schedule are those of the published eight-card run. If 256 do not fit into memory,
  `training.micro_batch_size` splits the batch (batch norms then use the parts).
- `resnext50-1p` is the published one-card run: 32 images, constant 0.1, 10,000 steps. It measures
  speed and is not meant to reach an accuracy.
- Warm-up is a cosine ramp, as coded, although the original's configuration file says linear; the
  end rate is a fraction of the peak rate, as coded.
- Random crops cover 8 % to 100 % of the image: the original's record parser overrides the 16 %
  in its configuration file.
- Weight decay excludes only batch norms, by the original's name filter, but not the bias of the
  last layer.
"""

from dataclasses import dataclass, replace

from torch import nn

from jumar.data.images.image_set import ImageData
from jumar.data.pixels.preprocessing import resnext_preprocessing
from jumar.models.resnext import ResNeXt50, decays, tf_variables
from jumar.models.tf_layout import TfNames, momentum_state
from jumar.precision.loss_scale import FixedLossScale
from jumar.precision.settings import PrecisionSettings
from jumar.recipes.classification import ClassificationRecipe, Network
from jumar.recipes.registry import register
from jumar.settings import setting
from jumar.training.optimizers import Momentum
from jumar.training.schedules import Constant, Cosine
from jumar.training.settings import CheckpointSettings, TrainingSettings


@dataclass(frozen=True, kw_only=True)
class ResNeXt50Model(Network):
    """The network of the original."""

    matrix_product: bool = setting(
        True,
        "Compute 1x1 convolutions as matrix products where that is faster (CPU, channels_last); "
        "set to false if a mixlist treats Conv2D and MatMul differently.",
    )

    def create(self, *, num_classes: int, image_size: int) -> nn.Module:
        """Build ResNeXt-50 32x4d for images of at least 32 px."""
        del image_size
        return ResNeXt50(num_classes=num_classes, matrix_product=self.matrix_product)

    def tf_names(self, network: nn.Module) -> TfNames:
        """Return the names in the original's graph, under `fp32_vars/`."""
        assert isinstance(network, ResNeXt50)
        return TfNames(variables=tf_variables(network), optimizers=(momentum_state(),))

    def decays(self, name: str, parameter: nn.Parameter) -> bool:
        """Exclude batch norms."""
        return decays(name, parameter)


@register("resnext50")
def resnext50() -> ClassificationRecipe:
    """ResNeXt-50 on one card: batch 256, learning rate 0.1, 120 epochs.

    Run: jumar train resnext50 --set data.path=IMAGENET --set model.num_classes=1001
    """
    return ClassificationRecipe(
        model=ResNeXt50Model(),
        data=ImageData(
            image_size=224, batch_size=256, label_offset=0, preprocessing=resnext_preprocessing()
        ),
        optimizer=Momentum(learning_rate=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4),
        schedule=Cosine(
            warmup="5ep",
            warmup_kind="cosine",
            end=1e-6,
            decay_counts_step=True,
        ),
        training=TrainingSettings(duration="120ep", log_every="1000it"),
        checkpoints=CheckpointSettings(every="1ep", keep=5),
        precision=PrecisionSettings(
            mode="allow_mix_precision",
            loss_scale=FixedLossScale(init_loss_scale=1024.0),
        ),
    )


@register("resnext50-1p")
def resnext50_1p() -> ClassificationRecipe:
    """The published one-card run: batch 32, constant learning rate 0.1, 10,000 steps.

    Run: jumar train resnext50-1p --set data.path=IMAGENET --set model.num_classes=1001
    """
    recipe = resnext50()
    return replace(
        recipe,
        data=replace(recipe.data, batch_size=32),
        schedule=Constant(warmup="0it", warmup_kind="none"),
        training=replace(recipe.training, duration="10000it", evaluate_every=""),
        checkpoints=CheckpointSettings(every="5000it", keep=5),
    )


@register("resnext50-8p", ranks=8)
def resnext50_8p() -> ClassificationRecipe:
    """The published eight-card run: batch 8 x 32, learning rate 0.1, 120 epochs.

    Run: torchrun --nproc-per-node 8 -m jumar train resnext50-8p --set data.path=IMAGENET \
        --set model.num_classes=1001
    """
    recipe = resnext50()
    return replace(recipe, data=replace(recipe.data, batch_size=32))


@register("resnext50-256bs-8p", ranks=8)
def resnext50_256bs_8p() -> ClassificationRecipe:
    """The other published eight-card run: batch 8 x 256, learning rate 0.8, 120 epochs.

    Run: torchrun --nproc-per-node 8 -m jumar train resnext50-256bs-8p \
        --set data.path=IMAGENET --set model.num_classes=1001
    """
    recipe = resnext50()
    return replace(recipe, optimizer=replace(recipe.optimizer, learning_rate=0.8))
