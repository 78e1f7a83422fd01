"""Base classes of image classification recipes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from torch import nn

from jumar.data.images.image_set import ImageData, open_image_sets
from jumar.data.images.label_counts import picture_counts
from jumar.data.pixels.mixing import uneven
from jumar.ground.errors import UserError
from jumar.models.tf_layout import TfNames
from jumar.models.unfilled import Unfilled
from jumar.recipes.network_settings import NetworkSettings
from jumar.recipes.recipe import OneObjectiveRecipe
from jumar.settings import setting
from jumar.tasks.class_weights import MEANING, class_names, class_weights
from jumar.tasks.classification import ClassificationTask
from jumar.tasks.task import Task
from jumar.training.optimizers import Momentum, OptimizerSettings
from jumar.training.schedules import Cosine, ScheduleSettings


@dataclass(frozen=True, kw_only=True)
class Network(NetworkSettings, ABC):
    """The settings of a network; to add your own network, subclass this and add fields."""

    num_classes: int = setting(
        0,
        "Number of classes; 0: as in the data (unknown for TFRecord shards without labels.txt; "
        "ImageNet: AlexNet 1000, ResNeXt-50 1001).",
        minimum=0,
    )

    @abstractmethod
    def create(self, *, num_classes: int, image_size: int) -> nn.Module:
        """Build the network, which maps images `[N, 3, H, W]` to logits `[N, num_classes]`."""


@dataclass(frozen=True, kw_only=True)
class LossSettings:
    """The classification loss."""

    label_smoothing: float = setting(
        0.1, "Share of the probability spread over all classes.", minimum=0, maximum=1
    )
    class_weights: tuple[str, ...] = setting((), MEANING)


@dataclass(frozen=True, kw_only=True)
class ClassificationRecipe(OneObjectiveRecipe):
    """An image classifier, its data and its optimizer.

    `model` has no default: each recipe sets its network.
    """

    objective_name = "classification"

    model: Network
    data: ImageData = setting(ImageData(), "The images.")
    loss: LossSettings = setting(LossSettings(), "The classification loss.")
    optimizer: OptimizerSettings = setting(Momentum(), "The optimizer.")
    schedule: ScheduleSettings = setting(Cosine(), "The learning rate over the run.")

    def check(self) -> None:
        """Check rules that span several sections.

        Raises:
            UserError: Images are mixed in pairs, but micro-batches are odd.
        """
        if self.data.mixes and self.training.micro_batch_size % 2:
            raise uneven("training.micro_batch_size", self.training.micro_batch_size)

    def build_task(self, notice: Callable[[str], None]) -> Task:
        """Open the images and build the network; see `Recipe.build_task`."""
        train, evaluation = open_image_sets(
            self.data, seed=self.seed, num_classes=self.model.num_classes, notice=notice
        )
        num_classes, names = train.kind.num_classes, train.kind.outputs()
        weights = class_weights(
            self.loss.class_weights,
            class_names(names, num_classes),
            lambda: picture_counts(train.kind),
            notice,
            sampling=self.data.sampling,
        )
        return ClassificationTask(
            self._network(num_classes),
            self.data.preprocessing,
            train_data=train,
            eval_data=evaluation,
            label_smoothing=self.loss.label_smoothing,
            decays=self.model.decays,
            num_classes=num_classes,
            classes=names,
            class_weights=weights,
        )

    def build_model(self) -> nn.Module:
        """Build the network; the number of classes must be set or stored in the run."""
        if self.model.num_classes == 0:
            raise UserError(
                "the number of classes is not known without the data",
                where="model.num_classes",
                todo="Add --set model.num_classes=... (ImageNet: AlexNet 1000, ResNeXt-50 1001).",
            )
        return self._network(self.model.num_classes)

    def settled(self, task: Task) -> "ClassificationRecipe":
        """Return the recipe with the number of classes in the data."""
        assert isinstance(task, ClassificationTask)
        return replace(self, model=replace(self.model, num_classes=task.num_classes))

    def fitted_to(self, shapes: Mapping[str, Sequence[int]]) -> "ClassificationRecipe":
        """Return the recipe with the weights' number of classes, unless the settings set it.

        The number is inferred from the sizes that differ between networks for two and for three
        classes, so a custom network does not have to name its last layer.
        """
        if self.model.num_classes:
            return self
        with Unfilled():
            two, three = (_shapes(self._network(classes)) for classes in (2, 3))
        for name, stored_shape in shapes.items():
            for size, at_two, at_three in zip(
                stored_shape, two.get(name, ()), three.get(name, ()), strict=False
            ):
                if at_two != at_three:
                    classes = 2 + (size - at_two) // (at_three - at_two)
                    return replace(self, model=replace(self.model, num_classes=max(classes, 1)))
        return self

    def tf_names(self, model: nn.Module) -> TfNames:
        """Return the names in the network's original."""
        return self.model.tf_names(model)

    def _network(self, num_classes: int) -> nn.Module:
        try:
            return self.model.create(num_classes=num_classes, image_size=self.data.image_size)
        except ValueError as error:
            raise UserError(str(error), where="model") from None


def _shapes(network: nn.Module) -> dict[str, Sequence[int]]:
    return {name: tensor.shape for name, tensor in network.state_dict().items()}
