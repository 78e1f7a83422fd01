"""Adversarial losses for a generator and a discriminator, as in taki0112's BigGAN.

Papers: gan, Goodfellow et al., arXiv 1406.2661; lsgan, Mao et al., arXiv 1611.04076; hinge, Lim
and Ye, arXiv 1705.02894; wgan-gp, Gulrajani et al., arXiv 1704.00028; wgan-lp, Petzka et al.,
arXiv 1709.08894; dragan, Kodali et al., arXiv 1705.07215.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from jumar.models.differentiable_augmentation import CHANGES
from jumar.settings import Component, setting

DRAGAN_NOISE = 0.5
"""Maximum of the noise added to a real image, in standard deviations of the batch."""


@dataclass(frozen=True, kw_only=True)
class AdversarialLoss(Component, ABC):
    """The losses of a generator and a discriminator.

    The three losses accept float32 logits of any shape, higher for more real, and return one value
    per logit.
    """

    orthogonal: float = setting(
        0.0, "Factor of the orthogonal penalty on the generator's weights.", minimum=0.0
    )
    n_critic: int = setting(
        2, "The generator is trained once every this many steps.", unit="steps", minimum=1
    )
    truncation: float = setting(
        2.0, "Maximum magnitude in a latent vector.", unit="standard deviations", minimum=0.01
    )
    augmentation: tuple[str, ...] = setting(
        (),
        "Random changes to all images that the discriminator sees, for small data sets: color, "
        "translation, cutout; the original uses none.",
        choices=CHANGES,
    )

    @abstractmethod
    def real(self, logits: Tensor) -> Tensor:
        """Return the discriminator's loss on real images."""

    @abstractmethod
    def fake(self, logits: Tensor) -> Tensor:
        """Return the discriminator's loss on generated images."""

    @abstractmethod
    def generated(self, logits: Tensor) -> Tensor:
        """Return the generator's loss on generated images."""


class _Logistic(AdversarialLoss):
    def real(self, logits: Tensor) -> Tensor:
        return F.softplus(-logits)

    def fake(self, logits: Tensor) -> Tensor:
        return F.softplus(logits)

    def generated(self, logits: Tensor) -> Tensor:
        return F.softplus(-logits)


class _Wasserstein(AdversarialLoss):
    def real(self, logits: Tensor) -> Tensor:
        return -logits

    def fake(self, logits: Tensor) -> Tensor:
        return logits

    def generated(self, logits: Tensor) -> Tensor:
        return -logits


@dataclass(frozen=True, kw_only=True)
class Hinge(AdversarialLoss, kind="hinge"):
    """Hinge loss with a margin of 1 on both sides."""

    def real(self, logits: Tensor) -> Tensor:
        """See `AdversarialLoss`."""
        return F.relu(1 - logits)

    def fake(self, logits: Tensor) -> Tensor:
        """See `AdversarialLoss`."""
        return F.relu(1 + logits)

    def generated(self, logits: Tensor) -> Tensor:
        """See `AdversarialLoss`."""
        return -logits


@dataclass(frozen=True, kw_only=True)
class Gan(_Logistic, kind="gan"):
    """Cross-entropy; the generator uses the non-saturating form."""


@dataclass(frozen=True, kw_only=True)
class LeastSquares(AdversarialLoss, kind="lsgan"):
    """Squared distance from 1 and 0."""

    def real(self, logits: Tensor) -> Tensor:
        """See `AdversarialLoss`."""
        return (logits - 1).square()

    def fake(self, logits: Tensor) -> Tensor:
        """See `AdversarialLoss`."""
        return logits.square()

    def generated(self, logits: Tensor) -> Tensor:
        """See `AdversarialLoss`."""
        return (logits - 1).square()


@dataclass(frozen=True, kw_only=True)
class PenalizedLoss(AdversarialLoss):
    """A loss with a penalty on the discriminator's gradient between two sets of images."""

    penalty: float = setting(
        10.0, "Factor of the gradient penalty (the original's lambda).", minimum=0.0
    )

    def gradient_penalty(
        self,
        discriminator: Callable[[Tensor], Tensor],
        real: Tensor,
        fake: Tensor,
        *,
        alpha: Tensor,
        noise: Tensor,
    ) -> Tensor:
        """Penalize gradient norms other than 1 at real + alpha * (target - real).

        Args:
            discriminator: Evaluated once, in its current mode.
            real: [N, C, H, W].
            fake: Shaped like `real`, without a gradient.
            alpha: [N, 1, 1, 1], uniform between 0 and 1.
            noise: Shaped like `real`, uniform between 0 and 1; only used by dragan.

        Returns:
            The penalty summed over the images; a scalar.
        """
        interpolated = (real + alpha * (self.target(real, fake, noise) - real)).detach()
        interpolated.requires_grad_()
        # Fused attention has no second derivative.
        with sdpa_kernel(SDPBackend.MATH):
            logits = discriminator(interpolated)
        (gradient,) = torch.autograd.grad(logits.sum(), interpolated, create_graph=True)
        norm = torch.linalg.vector_norm(gradient.float().flatten(1), dim=1)
        return self.penalty * self.excess(norm).square().sum()

    def target(self, real: Tensor, fake: Tensor, noise: Tensor) -> Tensor:
        """Return the images towards which the real ones are interpolated."""
        del real, noise
        return fake

    def excess(self, norm: Tensor) -> Tensor:
        """Return the distance of gradient norms from the allowed range."""
        return norm - 1


@dataclass(frozen=True, kw_only=True)
class WassersteinGradientPenalty(_Wasserstein, PenalizedLoss, kind="wgan-gp"):
    """Penalizes gradient norms other than 1 between real and generated images."""


@dataclass(frozen=True, kw_only=True)
class WassersteinLipschitzPenalty(_Wasserstein, PenalizedLoss, kind="wgan-lp"):
    """Penalizes only gradient norms above 1."""

    def excess(self, norm: Tensor) -> Tensor:
        """See `PenalizedLoss.excess`."""
        return F.relu(norm - 1)


@dataclass(frozen=True, kw_only=True)
class Dragan(_Logistic, PenalizedLoss, kind="dragan"):
    """Penalizes gradient norms other than 1 around real images.

    As in the original, the noise has one strength for the whole batch, is never negative, and is
    scaled a second time by alpha.
    """

    def target(self, real: Tensor, fake: Tensor, noise: Tensor) -> Tensor:
        """See `PenalizedLoss.target`."""
        del fake
        return real + DRAGAN_NOISE * real.std(correction=0) * noise


def orthogonal_penalty(weights: Iterable[Tensor]) -> Tensor:
    """Return half of ||W'W - 1||², summed over all weights; a scalar.

    The original defines this regulariser for its generator, with a factor of 1e-4, but never adds
    it to a loss.

    Args:
        weights: One or more matrices W' [columns, rows].
    """
    total = torch.zeros(())
    for weight in weights:
        columns, rows = weight.shape
        # ||W'W||² equals ||WW'||²; use the smaller product, since a wide generator's first layer
        # has 24,576 columns.
        product = weight @ weight.t() if columns <= rows else weight.t() @ weight
        squares = product.square().sum() - 2 * weight.square().sum() + columns
        total = total.to(squares.device) + 0.5 * squares
    return total
