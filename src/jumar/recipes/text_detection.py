"""Base classes of text detection recipes."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from torch import nn

from jumar.data.polygons.augmentation import TextAugmentation
from jumar.data.polygons.detection_data import PROTOCOLS, DetectionData, Targets
from jumar.data.polygons.detection_set import open_detection_sets
from jumar.data.polygons.protocol import ICDAR2015
from jumar.precision.loss_scale import FixedLossScale
from jumar.precision.settings import PrecisionSettings
from jumar.recipes.network_settings import NetworkSettings
from jumar.recipes.recipe import OneObjectiveRecipe
from jumar.settings import setting
from jumar.tasks.task import Task
from jumar.tasks.text_detection import DetectionObjective, Reader, TextDetectionTask
from jumar.training.optimizers import Adam, OptimizerSettings
from jumar.training.schedules import Cosine, Exponential, ScheduleSettings
from jumar.training.settings import CheckpointSettings, TrainingSettings

_DEPTHS = {"resnet18": 18, "resnet50": 50}


@dataclass(frozen=True, kw_only=True)
class DetectorModel(NetworkSettings):
    """The settings that both networks have in common."""

    backbone: str = setting(
        "resnet50",
        "resnet50 as in the original, or resnet18 for small machines.",
        choices=tuple(_DEPTHS),
    )
    backbone_width: int = setting(
        64, "Channels of the backbone's first convolution; 64 in the original.", minimum=1
    )
    norm_decay: float = setting(
        0.997,
        "Decay of the running averages of batch norms; use less for a run of fewer than about "
        "2000 steps.",
        minimum=0,
        maximum=1,
    )
    matrix_product: bool = setting(
        True,
        "Compute 1x1 convolutions as matrix products where that is faster (CPU, channels_last); "
        "set to false if a mixlist treats Conv2D and MatMul differently.",
    )

    @property
    def depth(self) -> int:
        """Depth of the backbone."""
        return _DEPTHS[self.backbone]


@dataclass(frozen=True, kw_only=True)
class DetectionRecipe(OneObjectiveRecipe, ABC):
    """A text detector, its images and its optimizer.

    Attributes:
        targets: The kind of maps that the network learns to predict.
    """

    objective_name = "detection"
    targets: ClassVar[Targets]

    data: DetectionData = setting(DetectionData(), "The images and their words.")
    optimizer: OptimizerSettings = setting(Adam(), "The optimizer.")
    schedule: ScheduleSettings = setting(Exponential(), "The learning rate over the run.")

    @abstractmethod
    def objective(self, network: nn.Module) -> DetectionObjective[Any, Any]:
        """Return the loss of `build_model`'s network."""

    @abstractmethod
    def reader(self, network: nn.Module) -> Reader:
        """Return a function that reads words from the output of `build_model`'s network."""

    def build_task(self, notice: Callable[[str], None]) -> Task:
        """Open the images and build the network; see `Recipe.build_task`."""
        train, evaluation = open_detection_sets(
            self.data, targets=self.targets, seed=self.seed, notice=notice
        )
        protocol = PROTOCOLS[self.data.protocol]
        if evaluation is not None and protocol is not ICDAR2015:
            notice(f"evaluation: words are scored by {protocol.title}")
        network = self.build_model()
        return TextDetectionTask(
            self.objective(network),
            self.reader(network),
            train_data=train,
            eval_data=evaluation,
            protocol=protocol,
        )


D = TypeVar("D", bound=DetectionRecipe)


def as_published(recipe: type[D], data: DetectionData, *, learning_rate: float) -> D:
    """Return a recipe with the original's training: Adam for 100,000 steps, mixed precision.

    The learning rate is multiplied by 0.94 every 10,000 steps, the moving average of the weights
    decays with 0.997 after a warm-up, and the loss scale is that of the ports to the NPU.

    Args:
        recipe: Class of the recipe, whose network, loss and reading are the published ones.
        data: The data settings.
        learning_rate: The initial learning rate.
    """
    return recipe(
        data=data,
        optimizer=Adam(learning_rate=learning_rate, weight_decay=1e-5),
        schedule=Exponential(rate=0.94, every="10000it", staircase=True),
        training=TrainingSettings(
            duration="100000it",
            log_every="100it",
            evaluate_every="5000it",
            ema_decay=0.997,
            ema_warm_up=True,
        ),
        checkpoints=CheckpointSettings(every="1000it", keep=5),
        precision=PrecisionSettings(
            mode="allow_mix_precision", loss_scale=FixedLossScale(init_loss_scale=1024.0)
        ),
    )


def for_a_cpu(large: D) -> D:
    """Return a recipe with 320 px, batch 8, Adam 1e-3 and 5,000 steps in float32.

    Args:
        large: The recipe as published; its network and loss are not changed.
    """
    return replace(
        large,
        data=replace(
            large.data,
            image_size=320,
            batch_size=8,
            eval_longest=640,
            # The papers' losses have no gradient in an image without words.
            augmentation=TextAugmentation(scales=(0.5, 1.0, 2.0), background_share=0.0),
        ),
        optimizer=Adam(learning_rate=1e-3, weight_decay=1e-5),
        schedule=Cosine(),
        training=TrainingSettings(
            duration="5000it", log_every="50it", evaluate_every="25%", ema_decay=0.997
        ),
        checkpoints=CheckpointSettings(every="25%", keep=2),
        precision=PrecisionSettings(mode="must_keep_origin_dtype"),
    )
