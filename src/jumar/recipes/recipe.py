"""The base class of recipes: a frozen dataclass with everything that determines the result."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from jumar.data.loading.loader_settings import LoaderSettings
from jumar.ground.errors import UserError
from jumar.models.tf_layout import TfNames
from jumar.precision.settings import PrecisionSettings
from jumar.settings import setting
from jumar.tasks.task import Task
from jumar.training.optimizers import OptimizerSettings
from jumar.training.schedules import ScheduleSettings
from jumar.training.settings import (
    CheckpointSettings,
    EarlyStoppingSettings,
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
        first_stage_field: In a second stage, the field with the path of the first stage's run, or
            of the file in which a run stores the first stage's settings.
    """

    first_stage_field: ClassVar[str] = ""

    data: LoaderSettings = setting(LoaderSettings(), "The samples.")
    seed: int = setting(1, "Seed of all random numbers.", minimum=0, maximum=2**63 - 1)
    training: TrainingSettings = setting(TrainingSettings(), "Length and shape of the run.")
    checkpoints: CheckpointSettings = setting(
        CheckpointSettings(), "What is saved.", changeable=True
    )
    early_stopping: EarlyStoppingSettings = setting(
        EarlyStoppingSettings(), "When a run ends before its duration.", changeable=True
    )
    precision: PrecisionSettings = setting(PrecisionSettings(), "Mode, op lists, loss scale.")
    threads: ThreadSettings = setting(
        ThreadSettings(),
        "CPU threads.",
        changeable=True,
    )
    transfer: TransferSettings = setting(TransferSettings(), "Weights to start from.")

    @abstractmethod
    def build_task(self, notice: Callable[[str], None]) -> Task:
        """Open the data and build the model.

        Args:
            notice: Prints a line for the user, for instance about skipped files.

        Raises:
            UserError: The data is missing or not suitable.
        """

    def build_model(self) -> nn.Module:
        """Build only the network, with the names and shapes of the task's `model`, without data.

        All uses of a finished run (importing and exporting weights, `generate`, `denoise`,
        `predict`) start here.

        Raises:
            UserError: The recipe cannot build its network without data.
        """
        raise UserError(
            "this recipe cannot build its network without data",
            todo="Implement `build_model()` in the recipe's class.",
        )

    def settled(self, task: Task) -> "Recipe":
        """Return the recipe with settings determined by the data, such as the number of classes.

        A run stores them, so that later commands on the run do not need the data. A recipe whose
        `build_model` would otherwise need data overrides this.

        Args:
            task: The result of `build_task`.
        """
        del task
        return self

    def fitted_to(self, shapes: Mapping[str, Sequence[int]]) -> "Recipe":
        """Return the recipe adapted to the sizes of existing weights.

        Args:
            shapes: Shapes of the weights, by name.
        """
        del shapes
        return self

    def settings_of_weights(
        self, shapes: Mapping[str, Sequence[int]], config: Mapping[str, Any]
    ) -> Sequence[str]:
        """Return the assignments that make the network match existing weights.

        Args:
            shapes: Shapes of the weights, by name.
            config: The network's configuration, if there is one beside the weights, such as Hugging
                Face's `config.json`.

        Returns:
            The assignments; empty if the settings agree, or if the recipe cannot determine them.
        """
        del shapes, config
        return ()

    def tf_names(self, model: nn.Module) -> TfNames:
        """Return the names of the weights of `build_model()` in TensorFlow checkpoints.

        Raises:
            UserError: There is no TensorFlow original.
        """
        del model
        raise UserError("this recipe defines no TensorFlow names")

    @abstractmethod
    def optimization(self) -> Mapping[str, Optimization]:
        """Return the optimizer and schedule of each of the task's objectives, by name."""

    def plan(self, name: str) -> Plan:
        """Return the part of this recipe that the trainer needs, with the recipe's name."""
        return Plan(
            recipe=name,
            seed=self.seed,
            batch_size=self.data.batch_size,
            eval_batch_size=self.data.eval_batch_size or self.data.batch_size,
            workers=self.data.workers,
            prefetch=self.data.prefetch,
            skip_corrupt=self.data.skip_corrupt,
            training=self.training,
            checkpoints=self.checkpoints,
            early_stopping=self.early_stopping,
            precision=self.precision,
            threads=self.threads,
            transfer=self.transfer,
            optimization=self.optimization(),
        )


class OneObjectiveRecipe(Recipe, ABC):
    """A recipe whose task has one objective.

    This class is no dataclass: each family has the fields `optimizer` and `schedule`, listed after
    its own sections.

    Attributes:
        objective_name: The name of the objective.
    """

    objective_name: ClassVar[str]
    optimizer: OptimizerSettings
    schedule: ScheduleSettings

    def optimization(self) -> Mapping[str, Optimization]:
        """Return the optimizer and schedule of the only objective."""
        settings = Optimization(optimizer=self.optimizer, schedule=self.schedule)
        return {self.objective_name: settings}
