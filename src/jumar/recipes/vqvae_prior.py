"""The second stage of a VQ-VAE: a gated PixelCNN that learns which codes occur together.

Paper: A. van den Oord, O. Vinyals, K. Kavukcuoglu, "Neural Discrete Representation Learning",
https://arxiv.org/abs/1711.00937, section 4.1; the network is that of "Conditional Image
Generation with PixelCNN Decoders", https://arxiv.org/abs/1606.05328. Original: `train_prior` of
contrib/graph/vq-vae in Ascend's ModelZoo for TensorFlow, which is hiwonjoon/tf-vqvae.

Data: the images of the VQ-VAE run, or others of the same kind. Expected: no results were published;
chance level is log2 K bits per code.

Choices where the sources disagree:

- The frozen VQ-VAE computes the codes of each batch, in float32. The original first writes the
  codes of the whole training set to a file; the codes are the same.
- The original uses 18 layers of 256 maps at 4e-4 for ImageNet, 12 of 64 at 1e-3 for CIFAR-10 and
  12 of 32 for MNIST. The first is the default; for the others, set `model.layers`, `model.maps` and
  `optimizer.learning_rate`.
- Images have no classes unless `model.classes` is set; the original always has classes.
- The masks are the original's, including their blind spot (see jumar/models/pixelcnn.py), so that
  its checkpoints can be loaded.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from jumar.data.images.image_set import PlainImageData, open_image_sets
from jumar.data.loading.loader_settings import LoaderSettings
from jumar.ground.errors import UserError
from jumar.models import code_prior
from jumar.models.code_prior import CodePrior
from jumar.models.pixelcnn import PixelCNN
from jumar.models.tf_layout import TfNames
from jumar.recipes.drawing import Artist, DrawingRequest, DrawsPictures
from jumar.recipes.recipe import OneObjectiveRecipe
from jumar.recipes.registry import register
from jumar.recipes.stored import open_first_stage
from jumar.recipes.trained import Trained
from jumar.recipes.vqvae import VQVAERecipe, open_unlabelled_sets
from jumar.settings import setting
from jumar.tasks.code_prior import CodePriorTask
from jumar.tasks.task import Task
from jumar.training.checkpoint import load_weights
from jumar.training.checkpoint_retention import find_checkpoint, list_checkpoints
from jumar.training.optimizers import Adam, Momentum, OptimizerSettings
from jumar.training.run_directory import RunDirectory
from jumar.training.schedules import Cosine, Exponential, ScheduleSettings
from jumar.training.settings import CheckpointSettings, TrainingSettings
from jumar.training.state import load_exactly


@dataclass(frozen=True, kw_only=True)
class PixelCNNModel:
    """The prior."""

    layers: int = setting(18, "Layers of the vertical and of the horizontal stack.", minimum=1)
    maps: int = setting(256, "Channels of each layer.", minimum=1)
    classes: int = setting(0, "Number of classes to condition on; 0: unconditional.", minimum=0)


@dataclass(frozen=True, kw_only=True)
class FirstStage:
    """The VQ-VAE whose codes are learned."""

    run: str = setting(
        "",
        "A finished run of a vqvae recipe.",
        unit="path",
        changeable=True,
    )
    checkpoint: str = setting("last", "The checkpoint to use: last, best, or a step.")


@dataclass(frozen=True, kw_only=True)
class PriorData(LoaderSettings):
    """The paths of the images; the VQ-VAE determines their size."""

    path: str = setting("", "As in the vqvae recipe; empty: the images of the VQ-VAE run.")
    eval_path: str = setting(
        "",
        "Images for evaluation; empty: the evaluation part of path, none: no evaluation.",
        changeable=True,
    )
    batch_size: int = setting(
        16, "Training batch size per rank.", unit="samples per rank", minimum=1
    )


@dataclass(frozen=True, kw_only=True)
class VQVAEPriorRecipe(OneObjectiveRecipe, DrawsPictures):
    """A prior over the codes of a VQ-VAE run."""

    objective_name = "prior"
    first_stage_field: ClassVar[str] = "vqvae.run"

    model: PixelCNNModel = setting(PixelCNNModel(), "The prior.")
    vqvae: FirstStage = setting(FirstStage(), "The VQ-VAE.")
    data: PriorData = setting(PriorData(), "The images.")
    optimizer: OptimizerSettings = setting(Momentum(), "The optimizer.")
    schedule: ScheduleSettings = setting(Cosine(), "The learning rate over the run.")

    def build_task(self, notice: Callable[[str], None]) -> Task:
        """Load the VQ-VAE from its run and open the images; see `Recipe.build_task`."""
        run, first = self._first_stage()
        model = self._network(first)
        if run is not None:
            _load_first_stage(model, run, self.vqvae.checkpoint)
        pictures = self._pictures(first)
        if self.model.classes:
            train, evaluation = open_image_sets(
                pictures, num_classes=self.model.classes, seed=self.seed, notice=notice
            )
        else:
            train, evaluation = open_unlabelled_sets(pictures, seed=self.seed, notice=notice)
        return CodePriorTask(
            model,
            pictures.preprocessing,
            train_data=train,
            eval_data=evaluation,
            image_size=pictures.image_size,
        )

    def build_model(self) -> nn.Module:
        """Build the VQ-VAE and the prior.

        The VQ-VAE gets the weights of its run if that has a checkpoint, because the original's
        checkpoints of a prior do not contain them.
        """
        run, first = self._first_stage()
        model = self._network(first)
        if run is not None and list_checkpoints(run.checkpoints):
            _load_first_stage(model, run, self.vqvae.checkpoint)
        return model

    def tf_names(self, model: nn.Module) -> TfNames:
        """Return the names in the original's checkpoints of both networks."""
        assert isinstance(model, CodePrior)
        return code_prior.tf_names(model)

    def open_artist(self, trained: Trained, request: DrawingRequest) -> Artist:
        """Return the prior as an artist; it cycles through the classes if there are any.

        Raises:
            UserError: A truncation is requested, or the run of the VQ-VAE is missing.
        """
        if request.truncation is not None:
            raise UserError(
                "images are generated code by code, without latent vectors that could be truncated",
                where="--truncation",
                todo="Omit it; only a generator such as biggan128 has a truncation.",
            )
        return _CodeArtist(trained, request.seed, self.image_size(), self.model.classes)

    def image_size(self) -> int:
        """Return the side of the images in px, which the VQ-VAE determines."""
        return self._first_stage()[1].data.image_size

    def _network(self, first: VQVAERecipe) -> CodePrior:
        prior = PixelCNN(
            codes=first.model.codes,
            width=first.model.width,
            layers=self.model.layers,
            maps=self.model.maps,
            classes=self.model.classes,
        )
        return CodePrior(first.model.create(), prior)

    def _pictures(self, first: VQVAERecipe) -> PlainImageData:
        """Return the VQ-VAE's data settings with this stage's paths and batch sizes."""
        data = self.data
        return replace(
            first.data,
            path=data.path or first.data.path,
            eval_path=data.eval_path or ("" if data.path else first.data.eval_path),
            batch_size=data.batch_size,
            eval_batch_size=data.eval_batch_size,
            workers=data.workers,
            skip_corrupt=data.skip_corrupt,
        )

    def _first_stage(self) -> tuple[RunDirectory | None, VQVAERecipe]:
        if not self.vqvae.run:
            raise UserError(
                "the run of the VQ-VAE whose codes are to be learned is not set",
                where="vqvae.run",
                todo="Train one, for instance with jumar train vqvae-mnist, and add "
                "--set vqvae.run=RUN.",
            )
        name, recipe, run = open_first_stage(self.vqvae.run, field="vqvae.run")
        if not isinstance(recipe, VQVAERecipe):
            raise UserError(
                f"this is a run of the recipe '{name}', which is not a VQ-VAE",
                where=f"vqvae.run={self.vqvae.run}",
                todo="Use a run of vqvae, vqvae-cifar10 or vqvae-mnist.",
            )
        return run, recipe


class _CodeArtist(Artist):
    """A prior that generates codes, and the decoder that converts them to images."""

    def __init__(self, trained: Trained, seed: int, image_size: int, classes: int) -> None:
        self._trained = trained
        self._seed = seed
        self._image_size = image_size
        self._classes = classes

    def draw(self, first: int, count: int) -> Tensor:
        numbers = torch.arange(first, first + count, device=self._trained.device.torch)
        with torch.inference_mode(), self._trained.policy.forward():
            images = cast(CodePrior, self._trained.model).draw(
                rows=count,
                image_size=self._image_size,
                seed=self._seed,
                first_row=first,
                labels=numbers % self._classes if self._classes else None,
            )
        return (images.float().clamp(0, 1) * 255).round().to(torch.uint8).cpu()


def _load_first_stage(model: CodePrior, run: RunDirectory, name: str) -> None:
    checkpoint = find_checkpoint(run.checkpoints, name, run.headline())
    path = checkpoint.model_file(ema=checkpoint.has_ema)
    load_exactly(model.vqvae, load_weights(path), str(path))


@register("vqvae-prior")
def vqvae_prior() -> VQVAEPriorRecipe:
    """PixelCNN over the codes of a VQ-VAE: 18 layers, 256 maps, batch 16, 300,000 steps.

    Run: jumar train vqvae-prior --set vqvae.run=RUN
    """
    return VQVAEPriorRecipe(
        optimizer=Adam(learning_rate=4e-4),
        schedule=Exponential(rate=0.5, every="100000it"),
        training=TrainingSettings(
            duration="300000it",
            log_every="500it",
            evaluate_every="10000it",
            clip="value",
            clip_limit=5.0,
        ),
        checkpoints=CheckpointSettings(every="10000it", keep=3),
    )
