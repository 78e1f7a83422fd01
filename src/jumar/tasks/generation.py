"""Image generation from noise: a generator and a discriminator that learn from each other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from jumar.data.pixels.picture_grid import picture_grid
from jumar.data.pixels.preprocessing import ImagePreprocessing
from jumar.data.samples import Batch, SampleSet
from jumar.models.differentiable_augmentation import DifferentiableAugmentation
from jumar.models.inception import FidInception, inception_features
from jumar.models.keyed_random import Keyed, KeyedNormal, keyed_uniform
from jumar.tasks.adversarial_losses import AdversarialLoss, PenalizedLoss, orthogonal_penalty
from jumar.tasks.frechet_distance import frechet_distance
from jumar.tasks.image_distribution import (
    laplacian_descriptors,
    neighbourhoods_per_image,
    sliced_wasserstein,
)
from jumar.tasks.sampling import as_bytes, between, drawn, numbered_latents
from jumar.tasks.task import Headline, Illustration, Objective, Task

EVALUATION_SEED = 20181
"""Seed of the generated images that are scored, the same in every evaluation."""
ILLUSTRATION_SEED = 20182
_FEATURES = "features"
_SHOWN = 36
_LINES, _STEPS = 4, 8


@dataclass(frozen=True, kw_only=True)
class Networks:
    """Generator and discriminator.

    Attributes:
        model: Both networks as one module, as stored in checkpoints.
        generator: Maps latent vectors [N, latent] to images [N, 3, H, W] in -1..1.
        discriminator: Maps images to logits [N, 1].
        latent: Length of the latent vectors.
        regularized: The generator's weights as matrices, for the orthogonal penalty.
    """

    model: nn.Module
    generator: nn.Module
    discriminator: nn.Module
    latent: int
    regularized: Callable[[], Sequence[Tensor]]


class DiscriminatorObjective(Objective):
    """Distinguish real images from generated ones.

    The generator is evaluated in training mode and without gradients, so that its statistics and
    spectral norms are updated, as in the original. The discriminator is evaluated on the real batch
    and then on the generated one, and batch norms see them separately; spectral norms are updated
    in each evaluation. (The original evaluates both in an undefined order with a shared variable,
    so its norm is updated once or twice.) A gradient penalty needs a third evaluation.
    """

    name = "discriminator"

    def __init__(
        self, networks: Networks, preprocessing: ImagePreprocessing, loss: AdversarialLoss
    ) -> None:
        super().__init__()
        self.trained = networks.discriminator
        self.generator = networks.generator
        self.latent = KeyedNormal(networks.latent, truncation=loss.truncation)
        self.shares = _KeyedUniform()
        self.noise = _KeyedUniform()
        self.real_changes = DifferentiableAugmentation(loss.augmentation)
        self.fake_changes = DifferentiableAugmentation(loss.augmentation)
        self._preprocessing = preprocessing
        self._loss = loss

    def sums(self, batch: Batch) -> dict[str, Tensor]:
        """Return `loss`, its terms `real` and `fake`, and the `penalty` if there is one."""
        real = self.real_changes(self._preprocessing.on_device(batch, training=self.training))
        with torch.no_grad():
            fake = self.fake_changes(self.generator(self.latent(len(real), real.device)))
        on_real = _summed(self._loss.real(self.trained(real).float()))
        on_fake = _summed(self._loss.fake(self.trained(fake).float()))
        terms = {"loss": on_real + on_fake, "real": on_real, "fake": on_fake}
        if isinstance(self._loss, PenalizedLoss):
            terms["penalty"] = self._loss.gradient_penalty(
                self.trained,
                real,
                fake,
                alpha=self.shares(real[:, :1, :1, :1]),
                noise=self.noise(real),
            )
            terms["loss"] = terms["loss"] + terms["penalty"]
        return terms


class GeneratorObjective(Objective):
    """Generate images that the discriminator considers real.

    The discriminator's weights get no gradient; its batch norms and spectral norms are updated.
    """

    name = "generator"

    def __init__(
        self,
        networks: Networks,
        preprocessing: ImagePreprocessing,
        loss: AdversarialLoss,
        *,
        every_tower: bool,
    ) -> None:
        super().__init__()
        self.trained = networks.generator
        self.discriminator = networks.discriminator
        # Only the second half of a row is used: the first half is the latent vector that the
        # discriminator's turn has used in the same step, and the original draws a new one.
        self.latent = KeyedNormal(2 * networks.latent, truncation=loss.truncation)
        self.changes = DifferentiableAugmentation(loss.augmentation)
        self._length = networks.latent
        self._regularized = networks.regularized
        self._preprocessing = preprocessing
        self._loss = loss
        self._every_tower = every_tower

    def is_due(self, step: int) -> bool:
        """Whether the step is the first of `n_critic` steps."""
        return step % self._loss.n_critic == 0

    def sums(self, batch: Batch) -> dict[str, Tensor]:
        """Return `loss`, and the `orthogonal` penalty if there is one."""
        image = batch["image"]
        if self._every_tower:
            with torch.no_grad():
                self.discriminator(self._preprocessing.on_device(batch, training=self.training))
        latent = self.latent(len(image), image.device)[:, self._length :]
        # Constant weights need no backward pass.
        constants = {name: p.detach() for name, p in self.discriminator.named_parameters()}
        fake = self.changes(self.trained(latent))
        logits = torch.func.functional_call(self.discriminator, constants, fake)
        loss = _summed(self._loss.generated(logits.float()))
        if self._loss.orthogonal == 0:
            return {"loss": loss}
        penalty = self._loss.orthogonal * orthogonal_penalty(self._regularized())
        # The penalty depends only on the weights; the sum over the images is divided by their
        # number later.
        orthogonal = len(image) * penalty
        return {"loss": loss + orthogonal, "orthogonal": orthogonal}


class GenerationTask(Task):
    """Learn to generate images like those of a data set.

    Scored by the sliced Wasserstein distance between the real images and an equal number of
    generated ones, which use the same latent vectors in every evaluation.

    Args:
        networks: Generator and discriminator.
        preprocessing: The device half of the image preprocessing.
        loss: The adversarial loss.
        every_tower: Also evaluate the discriminator on real images in the generator's turn,
            because this updates its state.
        image_size: Side of the images.
        train_data: Images to learn from.
        eval_data: Images to compare with; batches contain `index`.
        inception: The network for the Frechet distance; None to omit this metric.
    """

    name = "generation"
    headline = Headline(name="swd", unit="", higher_is_better=False)

    def __init__(
        self,
        networks: Networks,
        preprocessing: ImagePreprocessing,
        loss: AdversarialLoss,
        *,
        every_tower: bool = False,
        image_size: int,
        train_data: SampleSet,
        eval_data: SampleSet | None,
        inception: FidInception | None = None,
    ) -> None:
        self.model = networks.model
        self.averaged = networks.generator
        self.train_data = train_data
        self.eval_data = eval_data
        self.objectives = [
            DiscriminatorObjective(networks, preprocessing, loss),
            GeneratorObjective(networks, preprocessing, loss, every_tower=every_tower),
        ]
        self._networks = networks
        self._preprocessing = preprocessing
        self._truncation = loss.truncation
        image_count = 0 if eval_data is None else len(eval_data)
        self._latents = self._numbered_latents(image_count, EVALUATION_SEED)
        self._per_image = neighbourhoods_per_image(image_count)
        probe = torch.zeros(1, 3, image_size, image_size)
        self._levels = list(laplacian_descriptors(probe, first_index=0, per_image=1))
        self._inception = inception
        measured = [*self._levels, *([_FEATURES] if inception is not None else [])]
        self.gathered = [f"{kind}_{name}" for kind in ("real", "fake") for name in measured]

    def evaluate_batch(self, batch: Batch) -> dict[str, Tensor]:
        """Return patches of the real images and of an equal number of generated ones, as rows.

        Generated images are rounded to bytes, like the real ones.
        """
        real = self._preprocessing.on_device(batch, training=False)
        index = batch["index"]
        latents = self._latents[index.cpu()].to(real.device)
        fake = as_bytes(self._networks.generator(latents)).float() / 127.5 - 1
        results = {"count": torch.ones_like(index).sum()}
        for kind, images in (("real", real), ("fake", fake)):
            rows = laplacian_descriptors(
                images, first_index=int(index[0]), per_image=self._per_image
            )
            results |= {f"{kind}_{level}": value for level, value in rows.items()}
            if self._inception is not None:
                network = self._inception.to(images.device)
                results[f"{kind}_{_FEATURES}"] = inception_features(network, images)
        return results

    def summarize(self, sums: Mapping[str, Tensor]) -> dict[str, float]:
        """Return the mean distance `swd`, the distance of each level from fine to coarse, and
        `fid` if there is a network for it.
        """
        real, fake = (
            {level: sums[f"{kind}_{level}"] for level in self._levels} for kind in ("real", "fake")
        )
        distances = sliced_wasserstein(real, fake)
        scores = {"swd": distances.pop("swd"), **distances}
        if self._inception is not None:
            features = (sums[f"{kind}_{_FEATURES}"] for kind in ("real", "fake"))
            scores["fid"] = frechet_distance(*features)
        return scores

    def illustrate(self) -> Sequence[Illustration]:
        """Draw a grid of samples, and interpolations between samples."""
        samples = self._numbered_latents(_SHOWN, ILLUSTRATION_SEED)
        lines = between(samples[:_LINES], samples[_LINES : 2 * _LINES], _STEPS)
        device = next(self._networks.generator.parameters()).device
        pictures = drawn(self._networks.generator, torch.cat([samples, lines]), device=device)
        return [
            Illustration(
                name="samples",
                caption=f"{_SHOWN} images, from the same latent vectors every time",
                image=picture_grid(pictures[:_SHOWN], columns=6),
            ),
            Illustration(
                name="interpolation",
                caption=f"{_LINES} interpolations between two latent vectors, from left to right",
                image=picture_grid(pictures[_SHOWN:], columns=_STEPS),
            ),
        ]

    def _numbered_latents(self, count: int, seed: int) -> Tensor:
        return numbered_latents(
            0, count, self._networks.latent, seed=seed, truncation=self._truncation
        )


class _KeyedUniform(Keyed):
    """Uniform numbers in the shape of a batch."""

    def forward(self, like: Tensor) -> Tensor:
        rows, features = like.shape[0], like[0].numel()
        return keyed_uniform(rows, features, self.known_position(), like.device).view(like.shape)


def _summed(values: Tensor) -> Tensor:
    """Return the mean of each image's values, summed over the images; a scalar."""
    return values.flatten(1).mean(dim=1).sum()
