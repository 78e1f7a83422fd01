"""The losses of two networks that play against each other, as in taki0112's BigGAN.

Papers: gan, Goodfellow et al., arXiv 1406.2661; lsgan, Mao et al., arXiv 1611.04076; hinge, Lim
and Ye, arXiv 1705.02894; wgan-gp, Gulrajani et al., arXiv 1704.00028; wgan-lp, Petzka et al.,
arXiv 1709.08894; dragan, Kodali et al., arXiv 1705.07215.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

KINDS = ("hinge", "gan", "lsgan", "wgan-gp", "wgan-lp", "dragan")
PENALIZED = ("wgan-gp", "wgan-lp", "dragan")
"""Those with a gradient penalty."""
DRAGAN_NOISE = 0.5
"""Largest noise around a real picture, in standard deviations of the batch."""


@dataclass(frozen=True)
class DiscriminatorLoss:
    """Both halves of the discriminator's loss; scalars."""

    real: Tensor
    fake: Tensor


def discriminator_loss(kind: str, real: Tensor, fake: Tensor) -> DiscriminatorLoss:
    """What the discriminator loses on its logits for real and for generated pictures.

    Args:
        kind: One of `KINDS`.
        real: Logits of any shape; higher means more real.
        fake: The same for generated pictures.
    """
    real, fake = real.float(), fake.float()
    if kind == "hinge":
        return DiscriminatorLoss(F.relu(1 - real).mean(), F.relu(1 + fake).mean())
    if kind in ("gan", "dragan"):
        return DiscriminatorLoss(F.softplus(-real).mean(), F.softplus(fake).mean())
    if kind == "lsgan":
        return DiscriminatorLoss((real - 1).square().mean(), fake.square().mean())
    if kind in ("wgan-gp", "wgan-lp"):
        return DiscriminatorLoss(-real.mean(), fake.mean())
    raise ValueError(f"unknown loss '{kind}'")


def generator_loss(kind: str, fake: Tensor) -> Tensor:
    """What the generator loses on the discriminator's logits for its pictures; a scalar."""
    fake = fake.float()
    if kind in ("hinge", "wgan-gp", "wgan-lp"):
        return -fake.mean()
    if kind in ("gan", "dragan"):
        return F.softplus(-fake).mean()
    if kind == "lsgan":
        return (fake - 1).square().mean()
    raise ValueError(f"unknown loss '{kind}'")


def gradient_penalty(
    kind: str,
    discriminator: Callable[[Tensor], Tensor],
    real: Tensor,
    fake: Tensor,
    *,
    alpha: Tensor,
    noise: Tensor | None,
    weight: float,
) -> Tensor:
    """How far the discriminator's slope is from 1 between two sets of pictures; a scalar.

    The pictures between are real + alpha * (other - real), where other is the generated ones, or
    for dragan the real ones with noise of one strength for the whole batch. wgan-lp only counts
    slopes above 1. As in the original, dragan shifts a picture only to one side and moves a second
    time by alpha.

    Args:
        kind: One of `PENALIZED`.
        discriminator: Evaluated once, in the mode in which it is.
        real: [N, C, H, W].
        fake: As `real`, without a gradient.
        alpha: [N, 1, 1, 1], uniform between 0 and 1.
        noise: As `real`, uniform between 0 and 1; only for dragan.
        weight: Factor of the result (the original's lambda is 10).
    """
    other = fake
    if kind == "dragan":
        assert noise is not None, "dragan moves by noise"
        other = real + DRAGAN_NOISE * real.std(correction=0) * noise
    between = (real + alpha * (other - real)).detach().requires_grad_()
    # The fused attention has no second derivative.
    with sdpa_kernel(SDPBackend.MATH):
        logits = discriminator(between)
    (slope,) = torch.autograd.grad(logits.sum(), between, create_graph=True)
    length = torch.linalg.vector_norm(slope.float().flatten(1), dim=1)
    excess = F.relu(length - 1) if kind == "wgan-lp" else length - 1
    return weight * excess.square().mean()


def orthogonal_penalty(weights: Iterable[Tensor]) -> Tensor:
    """Half of ||W'W - 1||² over all weights; a scalar.

    The original writes this regulariser for its generator, with a factor of 1e-4, and never adds
    it to a loss.

    Args:
        weights: Matrices W' [columns, rows]; at least one.
    """
    total = torch.zeros(())
    for weight in weights:
        columns, rows = weight.shape
        # ||W'W||² equals ||WW'||²; the smaller product is taken, since the columns of a wide
        # generator's first layer are 24,576.
        product = weight @ weight.t() if columns <= rows else weight.t() @ weight
        squares = product.square().sum() - 2 * weight.square().sum() + columns
        total = total.to(squares.device) + 0.5 * squares
    return total
