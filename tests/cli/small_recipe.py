"""A recipe for `--import` whose run of a few steps takes a fraction of a second."""

from dataclasses import dataclass

from torch import nn

from jumar.data.images.image_set import ImageData
from jumar.data.pixels.preprocessing import plain_preprocessing
from jumar.recipes.classification import ClassificationRecipe, Network
from jumar.recipes.registry import register
from jumar.settings import setting
from jumar.training.optimizers import Momentum
from jumar.training.schedules import Cosine
from jumar.training.settings import CheckpointSettings, TrainingSettings


@dataclass(frozen=True, kw_only=True)
class SmallNetwork(Network):
    """A convolution, batch norm and a dense layer."""

    width: int = setting(4, "channels", minimum=1)

    def create(self, *, num_classes: int, image_size: int) -> nn.Module:
        width = self.width
        body = nn.Sequential(nn.Conv2d(3, width, 3, stride=2), nn.BatchNorm2d(width), nn.ReLU())
        pooled = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten())
        net = nn.Sequential()
        net.add_module("body", body)
        net.add_module("pool", pooled)
        net.add_module("classifier", nn.Linear(4 * width, num_classes))
        return net


@register("small")
def small() -> ClassificationRecipe:
    """A small network on the handwritten digits."""
    return ClassificationRecipe(
        model=SmallNetwork(),
        data=ImageData(
            image_size=16,
            batch_size=4,
            eval_batch_size=64,
            workers=0,
            preprocessing=plain_preprocessing(),
        ),
        optimizer=Momentum(learning_rate=0.02, momentum=0.9),
        schedule=Cosine(),
        training=TrainingSettings(duration="2it", log_every="1it", evaluate_every=""),
        checkpoints=CheckpointSettings(every="", keep=5),
    )
