"""What every recipe is: one frozen dataclass that holds all that decides the result."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from jumar.data.loading.loader_settings import LoaderSettings
from jumar.ground.errors import UserError
from jumar.models.tf_layout import TfNames
from jumar.precision.settings import PrecisionSettings
from jumar.settings import setting
from jumar.tasks.task import Task
from jumar.training.settings import (
    CheckpointSettings,
    Optimization,
    Plan,
    ThreadSettings,
    TrainingSettings,
    TransferSettings,
)


@dataclass(frozen=True, kw_only=True)
class Recipe(ABC):
    """The sections that every recipe has; a family adds its model, data and optimizers.

    Attributes:
        first_stage_field: In a second stage, the field that names the run of the first one, or
            the file in which a run keeps its settings.
    """

    first_stage_field: ClassVar[str] = ""

    data: LoaderSettings = setting(LoaderSettings(), "The samples.")
    seed: int = setting(1, "seed of everything random", minimum=0, maximum=2**63 - 1)
    training: TrainingSettings = setting(TrainingSettings(), "Length and shape of the run.")
    checkpoints: CheckpointSettings = setting(
        CheckpointSettings(), "What is saved.", changeable=True
    )
    precision: PrecisionSettings = setting(PrecisionSettings(), "Mode, op lists, loss scale.")
    threads: ThreadSettings = setting(
        ThreadSettings(),
        "Threads of the CPU side.",
        changeable=True,
    )
    transfer: TransferSettings = setting(
        TransferSettings(), "Weights to start from.", changeable=True
    )

    @abstractmethod
    def build_task(self, say: Callable[[str], None]) -> Task:
        """Open the data and build the model.

        Args:
            say: Takes lines that a person should see, such as files that were left out.

        Raises:
            UserError: The data is not there or does not fit.
        """

    def build_model(self) -> nn.Module:
        """The network alone, with the names and shapes of the task's `model`, without any data.

        What a finished run is used for (weights in and out, `generate`, `denoise`, `predict`)
        begins here.

        Raises:
            UserError: The recipe cannot say its network without data.
        """
        raise UserError(
            "this recipe does not give its network without data",
            todo="Write `build_model()` in the recipe's class.",
        )

    def settled(self, task: Task) -> "Recipe":
        """The same recipe with the settings that its data decided, such as the number of classes.

        A run keeps them, so that what is done with it needs no data. A recipe whose `build_model`
        would ask for data overrides this.

        Args:
            task: What `build_task` made of this recipe.
        """
        del task
        return self

    def fitted_to(self, shapes: Mapping[str, Sequence[int]]) -> "Recipe":
        """The same recipe for weights from elsewhere, with the sizes that they have.

        Args:
            shapes: Of the weights, by their names.
        """
        del shapes
        return self

    def tf_names(self, model: nn.Module) -> TfNames:
        """How the weights of `build_model()` are called in TensorFlow checkpoints.

        Raises:
            UserError: There is no TensorFlow original.
        """
        del model
        raise UserError("this recipe has no list of TensorFlow names")

    @abstractmethod
    def optimization(self) -> Mapping[str, Optimization]:
        """Optimizer and schedule of each objective of the task, by its name."""

    def plan(self, name: str) -> Plan:
        """What the trainer needs of this recipe, under the recipe's name."""
        return Plan(
            recipe=name,
            seed=self.seed,
            batch_size=self.data.batch_size,
            eval_batch_size=self.data.eval_batch_size or self.data.batch_size,
            workers=self.data.workers,
            skip_corrupt=self.data.skip_corrupt,
            training=self.training,
            checkpoints=self.checkpoints,
            precision=self.precision,
            threads=self.threads,
            transfer=self.transfer,
            optimization=self.optimization(),
        )
