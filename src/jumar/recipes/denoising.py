"""Base classes of denoising recipes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from torch import Tensor, nn

from jumar.data.denoising.denoise_sets import DenoisingData, level_names, open_patches
from jumar.data.samples import SampleSet
from jumar.ground.errors import UserError
from jumar.models.tf_layout import TfNames
from jumar.recipes.network_settings import NetworkSettings
from jumar.recipes.recipe import OneObjectiveRecipe
from jumar.settings import setting
from jumar.tasks.denoising import Denoiser, DenoisingLoss, DenoisingTask, HalfSquaredError, Rounding
from jumar.tasks.task import Task
from jumar.training.optimizers import Momentum, OptimizerSettings
from jumar.training.schedules import Cosine, ScheduleSettings


@dataclass(frozen=True, kw_only=True)
class DenoisingNetwork(NetworkSettings, ABC):
    """The settings of a denoiser; to add your own network, subclass this and add fields."""

    @abstractmethod
    def create(self, *, channels: int) -> nn.Module:
        """Build the network: noisy images `[N, channels, H, W]` from 0 to 1 in, clean ones out."""

    def denoiser(self, network: nn.Module) -> Denoiser:
        """Return a function that denoises whole images of any size; by default, the network."""
        return network


@dataclass(frozen=True, kw_only=True)
class DenoisingScore:
    """The conversion of the output to an image before it is scored."""

    clip: bool = setting(True, "Clip the output to the range of an image.")
    rounding: str = setting(
        "none",
        "Rounding to multiples of 1/255: none, nearest (NLRN) or truncated (ViDeNN in training).",
        choices=("none", "nearest", "truncated"),
    )


@dataclass(frozen=True, kw_only=True)
class DenoisingRecipe(OneObjectiveRecipe):
    """An image denoiser, its data and its optimizer.

    `model` has no default: each recipe sets its network.
    """

    objective_name = "denoising"

    model: DenoisingNetwork
    data: DenoisingData = setting(DenoisingData(), "The images and their noise.")
    loss: DenoisingLoss = setting(HalfSquaredError(), "What is minimised.")
    score: DenoisingScore = setting(DenoisingScore(), "How the output is scored.")
    optimizer: OptimizerSettings = setting(Momentum(), "The optimizer.")
    schedule: ScheduleSettings = setting(Cosine(), "The learning rate over the run.")

    def build_task(self, notice: Callable[[str], None]) -> Task:
        """Open the images and build the network; see `Recipe.build_task`."""
        sets = open_patches(self.data, seed=self.seed, notice=notice)
        return self.task_of(self.build_model(), *sets)

    def task_of(
        self,
        network: nn.Module,
        train: SampleSet,
        evaluation: SampleSet | None,
        *,
        trained: nn.Module | None = None,
    ) -> Task:
        """Create the task for a network and its images.

        Args:
            network: Noisy images in, clean ones out.
            train: Patches to learn from.
            evaluation: Images to score on.
            trained: The part of the network to train; None for all of it.
        """
        return DenoisingTask(
            network,
            train_data=train,
            eval_data=evaluation,
            level_names=level_names(self.data),
            loss=self.loss,
            clip=self.score.clip,
            rounding=cast("Rounding", self.score.rounding),
            denoise=self.model.denoiser(network),
            trained=trained,
            decays=self.model.decays,
        )

    def build_model(self) -> nn.Module:
        """Build the network, for colour or grey images according to `data.channels`."""
        try:
            return self.model.create(channels=3 if self.data.channels == "colour" else 1)
        except ValueError as error:
            raise UserError(str(error), where="model") from None

    def tf_names(self, model: nn.Module) -> TfNames:
        """Return the names in the network's original."""
        return self.model.tf_names(model)

    def denoise_frames(self, model: nn.Module, frames: Iterator[Tensor]) -> Iterator[Tensor]:
        """Denoise the frames of a clip in order, by default each frame independently.

        Recipes of networks that need neighbouring frames override this. An override keeps only the
        frames it needs, and yields one clean frame per noisy frame, in the same order.

        Args:
            model: `build_model()`'s network with weights, in evaluation mode.
            frames: Noisy images [N, channels, H, W] from 0 to 1, on the network's device. N is 1,
                or 3 if a grey network denoises the three channels of a colour image. They all have
                the same size if `looks_at_neighbours`.

        Yields:
            Clean images of the same shape, not clipped.
        """
        denoise = self.model.denoiser(model)
        for frame in frames:
            yield denoise(frame)

    def looks_at_neighbours(self) -> bool:
        """Whether clean frames depend on neighbouring frames: `denoise_frames` is overridden."""
        return type(self).denoise_frames is not DenoisingRecipe.denoise_frames

    def frames_before(self) -> int | None:
        """Return the number of earlier frames that a clean frame needs; None for all frames."""
        return None if self.looks_at_neighbours() else 0
