"""BigGAN-128: unconditional 128 x 128 images, as trained by taki0112 in TensorFlow.

Paper: Brock, Donahue, Simonyan, "Large Scale GAN Training for High Fidelity Natural Image
Synthesis", https://arxiv.org/abs/1809.11096. Original: taki0112/BigGAN-Tensorflow, `main.py
--img_size 128`, whose networks, losses and steps are replayed by tests.

Data: any folder tree or zip of images; the course assignment uses the Kaggle CAT set
(https://www.kaggle.com/crawford/cat-dataset), where `data.frame=head` crops the heads. Without
`data.path`, the handwritten digits that come with scikit-learn. No score was published for this
code; the metric is the sliced Wasserstein distance, lower is better.

Choices where the sources disagree or the original is odd:

- The batch size is 64, as in the assignment (the original's default of 2048 needs many cards).
- The networks are those of the original, not of the paper, including the gains of the conditional
  batch norms, which start near 0 (`compat.gain_starts_at_zero`).
- A discriminator step updates the discriminator's spectral norms twice, for the real and then for
  the generated images; in the original, the order is undefined.
- The original updates them even when it draws samples. Here, evaluation leaves a network unchanged,
  unless `compat.moves_in_evaluation` is set.
- In the generator's turn the original also evaluates the discriminator on real images, because
  it updates all batch norms in every step. The averages are never used in training, so this is
  omitted unless `compat.every_tower` is set.
- The original's orthogonal regulariser is computed but never added to a loss, so
  `loss.orthogonal` is 0.
- The moving average of the generator starts from the initial weights without a warm-up, as in the
  original; for short runs, set `training.ema_warm_up=true`.
- The aspect ratio of images is not kept, as in the original; `data.frame=square` keeps it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from torch import Tensor, nn

from jumar.data.images.picture_set import PictureData, open_generator_sets
from jumar.ground.errors import UserError
from jumar.ground.paths import expanded
from jumar.models.biggan import IMAGE_SIZE, SMALLEST_WIDTH, BigGan, spectral_layers
from jumar.models.biggan_names import tf_names
from jumar.models.inception import FidInception
from jumar.models.spectral_norm import as_matrix
from jumar.models.tf_layout import TfNames
from jumar.precision.loss_scale import ExponentialLossScale
from jumar.precision.settings import PrecisionSettings
from jumar.recipes.drawing import Artist, DrawingRequest, DrawsPictures
from jumar.recipes.recipe import Recipe
from jumar.recipes.registry import register
from jumar.recipes.trained import Trained
from jumar.settings import setting
from jumar.tasks.adversarial_losses import AdversarialLoss, Hinge
from jumar.tasks.frechet_distance import open_inception
from jumar.tasks.generation import GenerationTask, Networks
from jumar.tasks.sampling import between, drawn, numbered_latents
from jumar.tasks.task import Task
from jumar.training.optimizers import Adam, OptimizerSettings
from jumar.training.schedules import Constant, ScheduleSettings
from jumar.training.settings import CheckpointSettings, Optimization, TrainingSettings


@dataclass(frozen=True, kw_only=True)
class BigGanModel:
    """Both networks."""

    width: int = setting(
        96, "Channels at full resolution (the original's ch).", minimum=SMALLEST_WIDTH
    )
    latent: int = setting(
        128, "Length of the latent vector: 128, or a multiple of 6.", unit="values", minimum=6
    )
    fused_attention: bool = setting(
        True,
        "Compute attention in one kernel, without storing its weights; set to false if a mixlist "
        "names SoftmaxV2 or BatchMatMul.",
    )


@dataclass(frozen=True, kw_only=True)
class Compat:
    """Quirks of the original; see the recipe's module."""

    gain_starts_at_zero: bool = setting(
        True, "Gains of the conditional batch norms start near 0; false: near 1, as in the paper."
    )
    moves_in_evaluation: bool = setting(
        False, "Drawing and scoring images updates the spectral norms."
    )
    discriminator_norms: bool = setting(
        True, "Batch norms in the discriminator; false: none, as in the paper."
    )
    every_tower: bool = setting(
        False, "The generator's turn also evaluates the discriminator on real images."
    )


@dataclass(frozen=True, kw_only=True)
class Player:
    """The training of one of the networks."""

    optimizer: OptimizerSettings = setting(Adam(), "The optimizer.")
    schedule: ScheduleSettings = setting(Constant(), "The learning rate over the run.")


def _adam(learning_rate: float) -> Player:
    return Player(optimizer=Adam(learning_rate=learning_rate, beta1=0.0, beta2=0.9))


@dataclass(frozen=True, kw_only=True)
class GenerationRecipe(Recipe, DrawsPictures):
    """A generator and a discriminator, the images, and how both are trained."""

    model: BigGanModel = setting(BigGanModel(), "Both networks.")
    data: PictureData = setting(PictureData(), "The images.")
    loss: AdversarialLoss = setting(Hinge(), "The adversarial loss (the original's gan_type).")
    generator: Player = setting(_adam(5e-5), "How the generator is trained.")
    discriminator: Player = setting(_adam(2e-4), "How the discriminator is trained.")
    compat: Compat = setting(Compat(), "Quirks of the original.")

    def check(self) -> None:
        """Check the image size, which the networks determine.

        Raises:
            UserError: Another size is set.
        """
        if self.data.image_size != IMAGE_SIZE:
            raise UserError(
                f"BigGAN-128 generates images of {IMAGE_SIZE} px, not {self.data.image_size}",
                where="data.image_size",
                todo="The original's networks for 256 and 512 px are not part of jumar.",
            )

    def build_task(self, notice: Callable[[str], None]) -> Task:
        """Open the images and build both networks; see `Recipe.build_task`."""
        train, real = open_generator_sets(self.data, seed=self.seed, notice=notice)
        model = self.build_model()
        return GenerationTask(
            Networks(
                model=model,
                generator=model.generator,
                discriminator=model.discriminator,
                latent=self.model.latent,
                regularized=lambda: _matrices(model.generator),
            ),
            self.data.preprocessing(),
            self.loss,
            every_tower=self.compat.every_tower,
            image_size=self.data.image_size,
            train_data=train,
            eval_data=real,
            inception=self._inception() if real is not None else None,
        )

    def _inception(self) -> FidInception | None:
        path = self.data.inception_weights
        return open_inception(expanded(path)) if path else None

    def build_model(self) -> BigGan:
        """Build both networks."""
        try:
            return BigGan(
                width=self.model.width,
                latent=self.model.latent,
                gain_starts_at=0.0 if self.compat.gain_starts_at_zero else 1.0,
                moves_in_evaluation=self.compat.moves_in_evaluation,
                fused_attention=self.model.fused_attention,
                discriminator_norms=self.compat.discriminator_norms,
            )
        except ValueError as error:
            raise UserError(str(error), where="model") from None

    def tf_names(self, model: nn.Module) -> TfNames:
        """Return the names in taki0112's code."""
        return tf_names(cast(BigGan, model))

    def open_artist(self, trained: Trained, request: DrawingRequest) -> Artist:
        """Return an artist with the requested truncation, or else the truncation of training."""
        truncation = request.truncation or self.loss.truncation
        return _LatentArtist(trained, request, length=self.model.latent, truncation=truncation)

    def optimization(self) -> Mapping[str, Optimization]:
        """Return the optimizer and schedule of each network."""
        networks = {"discriminator": self.discriminator, "generator": self.generator}
        return {
            name: Optimization(optimizer=network.optimizer, schedule=network.schedule)
            for name, network in networks.items()
        }


class _LatentArtist(Artist):
    """A generator that draws images from latent vectors."""

    def __init__(
        self, trained: Trained, request: DrawingRequest, *, length: int, truncation: float
    ) -> None:
        self.manner = f"truncation {truncation:g}"
        self._trained = trained
        self._request = request
        self._length = length
        self._truncation = truncation

    def draw(self, first: int, count: int) -> Tensor:
        return self._pictures(self._latents(first, count))

    def lines(self, count: int, steps: int) -> Tensor:
        ends = self._latents(0, 2 * count)
        return self._pictures(between(ends[::2], ends[1::2], steps))

    def _latents(self, first: int, count: int) -> Tensor:
        seed, truncation = self._request.seed, self._truncation
        return numbered_latents(first, count, self._length, seed=seed, truncation=truncation)

    def _pictures(self, latents: Tensor) -> Tensor:
        generator = cast(BigGan, self._trained.model).generator
        device = self._trained.device.torch
        with self._trained.policy.forward():
            return drawn(generator, latents, device=device, batch=self._request.batch)


@register("biggan128")
def biggan128() -> GenerationRecipe:
    """BigGAN-128 as in the original and the assignment: width 96, batch 64, mixed precision.

    Run: jumar train biggan128 --set data.path=PICTURES
    """
    return GenerationRecipe(
        training=TrainingSettings(
            duration="500000it",
            log_every="100it",
            evaluate_every="10000it",
            ema_decay=0.9999,
            ema_warm_up=False,
        ),
        checkpoints=CheckpointSettings(every="10000it", keep=3),
        precision=PrecisionSettings(mode="allow_mix_precision", loss_scale=ExponentialLossScale()),
    )


@register("biggan128-cats")
def biggan128_cats() -> GenerationRecipe:
    """A narrow BigGAN-128 that trains on a few hundred cats in about an hour on one CPU core.

    Run: jumar train biggan128-cats --set data.path=CATS

    Differences from the original: width 16 and batch size 8; learning rates 1e-4 and 4e-4, which a
    comment in the original recommends for small batches; gains that start at 1, because there are
    thousands of steps instead of half a million; no batch norms in the discriminator, for which
    eight images are too few; shifts and cut-outs, so that the discriminator does not memorise the
    few images; mirrored images; a shorter moving average with a warm-up; scores on 240 images.
    """
    recipe = biggan128()
    return replace(
        recipe,
        model=BigGanModel(width=16),
        data=PictureData(flip=True, batch_size=8, eval_batch_size=16, eval_samples=240, workers=0),
        loss=Hinge(augmentation=("translation", "cutout")),
        generator=_adam(1e-4),
        discriminator=_adam(4e-4),
        compat=Compat(gain_starts_at_zero=False, discriminator_norms=False),
        training=TrainingSettings(
            duration="4000it",
            log_every="50it",
            evaluate_every="200it",
            ema_decay=0.995,
        ),
        checkpoints=CheckpointSettings(every="200it", keep=2),
        precision=PrecisionSettings(mode="allow_mix_precision_bf16"),
    )


def _matrices(generator: nn.Module) -> Sequence[Tensor]:
    return [as_matrix(layer.weight) for _, layer in spectral_layers(generator)]
