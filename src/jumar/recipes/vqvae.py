"""VQ-VAE: images as grids of codes, as trained with TensorFlow 1.15 on Ascend 910.

Paper: A. van den Oord, O. Vinyals, K. Kavukcuoglu, "Neural Discrete Representation Learning",
https://arxiv.org/abs/1711.00937. Original: contrib/graph/vq-vae of Ascend's ModelZoo for
TensorFlow, which is hiwonjoon/tf-vqvae.

Data: images, with or without class folders: a folder, a zip or TFRecord shards. `vqvae-mnist`
without `data.path` uses the handwritten digits that come with scikit-learn. Expected: the original
reports 4.65 bits per dimension on CIFAR-10, by a formula that treats pixels as probabilities, and
no reconstruction error; the results of these recipes are in docs/results.md.

Choices where the sources disagree:

- The best checkpoint is the one with the smallest mean squared error on held-out images. The
  original's "nll" is not a likelihood, as its documentation admits.
- K and D are the original's. Ten codes are few for CIFAR-10, and its images are poor; with
  `model.codes=256` they are much better with a network of the same size.
- A code that is never the nearest is never trained, and most of 256 codes remain unused.
  `model.pull` draws unused codes to the features; it is an addition, and 0 by default.
- MNIST: the original's script uses K 5, but its README K 20, which is used here. The duration of
  60,000 steps is the original's, although a tenth of it is enough for scikit-learn's digits.
- Images are squeezed to the network's input size, neither cropped nor mirrored, as in the
  original. The ImageNet variant uses 128 px; any multiple of 4 works (`data.image_size`).
- The learning rate of the ImageNet variant halves smoothly every 25,000 steps.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from torch import nn

from jumar.data.images.image_set import LabelledPictures, PlainImageData, image_set
from jumar.data.images.picture_tree import open_pictures
from jumar.data.images.sources import check_pair
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.pixels.preprocessing import ImagePreprocessing, plain_preprocessing
from jumar.ground.errors import UserError
from jumar.models import vqvae as network
from jumar.models.tf_layout import TfNames
from jumar.models.vqvae import VARIANTS, VQVAE
from jumar.recipes.recipe import OneObjectiveRecipe
from jumar.recipes.registry import register
from jumar.settings import setting
from jumar.tasks.reconstruction import ReconstructionTask
from jumar.tasks.task import Task
from jumar.training.optimizers import Adam, Momentum, OptimizerSettings
from jumar.training.schedules import Constant, Cosine, Exponential, ScheduleSettings
from jumar.training.settings import CheckpointSettings, TrainingSettings


@dataclass(frozen=True, kw_only=True)
class VQVAEModel:
    """The network and its codebook."""

    variant: str = setting(
        "imagenet",
        "Encoder and decoder: mnist (grey images, downsampled by 8), cifar10 or imagenet (colour, "
        "downsampled by 4, two or four residual blocks).",
        choices=VARIANTS,
    )
    codes: int = setting(512, "Vectors in the codebook (K).", minimum=2)
    width: int = setting(
        128, "Length of a vector and channels of the encoder's output (D).", minimum=4
    )
    beta: float = setting(
        0.25, "Weight of the commitment loss, which keeps features near their codes.", minimum=0
    )
    pull: float = setting(
        0.0,
        "Weight of a loss that draws unused codes to the features of the batch (of each "
        "micro-batch separately); 0 as in the original, try 0.25 if codes_used stays low.",
        minimum=0,
    )

    def create(self) -> VQVAE:
        """Build the network.

        Raises:
            UserError: The width is not a multiple of 4.
        """
        try:
            return VQVAE(variant=self.variant, codes=self.codes, width=self.width)
        except ValueError as error:
            raise UserError(str(error), where="model") from None


def unit_preprocessing() -> ImagePreprocessing:
    """Return a preprocessing that squeezes images to the input size; pixels from 0 to 1."""
    return replace(plain_preprocessing(), mean=(0.0, 0.0, 0.0), std=(255.0, 255.0, 255.0))


@dataclass(frozen=True, kw_only=True)
class VQVAERecipe(OneObjectiveRecipe):
    """A VQ-VAE, its images and its optimizer."""

    objective_name = "reconstruction"

    model: VQVAEModel = setting(VQVAEModel(), "The network.")
    data: PlainImageData = setting(PlainImageData(), "The images.")
    optimizer: OptimizerSettings = setting(Momentum(), "The optimizer.")
    schedule: ScheduleSettings = setting(Cosine(), "The learning rate over the run.")

    def build_task(self, notice: Callable[[str], None]) -> Task:
        """Open the images and build the network; see `Recipe.build_task`."""
        train, evaluation = open_unlabelled_sets(self.data, seed=self.seed, notice=notice)
        return ReconstructionTask(
            self.build_model(),
            self.data.preprocessing,
            train_data=train,
            eval_data=evaluation,
            beta=self.model.beta,
            pull=self.model.pull,
        )

    def build_model(self) -> VQVAE:
        """Build the VQ-VAE."""
        vqvae = self.model.create()
        check_image_size(vqvae, self.data.image_size)
        return vqvae

    def tf_names(self, model: nn.Module) -> TfNames:
        """Return the names in the original's VQ-VAE checkpoints."""
        assert isinstance(model, VQVAE)
        return network.tf_names(model)


def check_image_size(vqvae: VQVAE, image_size: int) -> None:
    """Check that decoded images would have the size of the input images.

    Raises:
        UserError: The size is not a multiple of the encoder's downsampling factor.
    """
    if image_size % vqvae.shrinking:
        nearest_size = max(1, image_size // vqvae.shrinking) * vqvae.shrinking
        raise UserError(
            f"the {vqvae.variant} variant requires a multiple of {vqvae.shrinking} px, "
            f"not {image_size}",
            where="data.image_size",
            todo=f"For instance: data.image_size={nearest_size}",
        )


def open_unlabelled_sets(
    data: PlainImageData, *, seed: int, notice: Callable[[str], None]
) -> tuple[KeyedSet[LabelledPictures], KeyedSet[LabelledPictures] | None]:
    """Open training and evaluation images without classes; without the latter if set to `none`.

    Raises:
        UserError: There are no images, or both sets would be the same.
    """
    pictures = partial(
        LabelledPictures,
        preprocessing=data.preprocessing,
        image_size=data.image_size,
        num_classes=1,
        seed=seed,
    )
    source = open_pictures(data.path, "train", notice=notice)
    train = image_set(pictures(source=source, training=True))
    if data.eval_path == "none":
        return train, None
    evaluation = open_pictures(data.eval_path or data.path, "eval", notice=notice)
    check_pair(source, evaluation)
    return train, image_set(pictures(source=evaluation, training=False))


@register("vqvae")
def vqvae() -> VQVAERecipe:
    """The ImageNet variant: K 512, D 128, 128 px, batch 16, 50,000 steps.

    Run: jumar train vqvae --set data.path=PICTURES
    """
    return VQVAERecipe(
        data=PlainImageData(image_size=128, batch_size=16, preprocessing=unit_preprocessing()),
        optimizer=Adam(learning_rate=2e-4),
        schedule=Exponential(rate=0.5, every="25000it"),
        training=TrainingSettings(duration="50000it", log_every="500it", evaluate_every="5000it"),
        checkpoints=CheckpointSettings(every="5000it", keep=3),
    )


@register("vqvae-cifar10")
def vqvae_cifar10() -> VQVAERecipe:
    """The CIFAR-10 variant: K 10, D 256, 32 px, batch 128, 250,000 steps.

    Run: jumar train vqvae-cifar10 --set data.path=PICTURES
    """
    large = vqvae()
    return replace(
        large,
        model=VQVAEModel(variant="cifar10", codes=10, width=256),
        data=replace(large.data, image_size=32, batch_size=128),
        schedule=Constant(),
        training=replace(large.training, duration="250000it"),
    )


@register("vqvae-mnist")
def vqvae_mnist() -> VQVAERecipe:
    """The MNIST variant: K 20, D 64, 24 px, grey, batch 32, 60,000 steps.

    Data: without `data.path`, the 1797 digits of 8 x 8 px that come with scikit-learn, enlarged.
    Run: jumar train vqvae-mnist
    """
    small = vqvae_cifar10()
    return replace(
        small,
        model=VQVAEModel(variant="mnist", codes=20, width=64),
        data=replace(small.data, image_size=24, batch_size=32),
        training=replace(small.training, duration="60000it"),
    )
