"""Sampling images from a generator: latent vectors by number, bounded batches, bytes."""

from collections.abc import Callable

import torch
from torch import Tensor

from jumar.models.keyed_random import keyed_normal, random_position

BATCH = 16
"""Images generated at once by default."""


def numbered_latents(
    first: int, count: int, length: int, *, seed: int, truncation: float
) -> Tensor:
    """Latent vectors of the images from number `first` on, for a seed.

    Each depends only on its number and the seed. Numbers outside the truncation are drawn again
    rather than clipped to its edge, as in the paper's truncation trick.

    Args:
        first: Number of the first image.
        count: How many vectors.
        length: Length of a vector.
        seed: Any whole number.
        truncation: Largest magnitude of a number, in standard deviations.

    Returns:
        float32 [count, length] on the CPU, the same for every device.
    """
    position = random_position(seed, first)
    return keyed_normal(count, length, position, torch.device("cpu"), truncation=truncation)


def between(starts: Tensor, ends: Tensor, steps: int) -> Tensor:
    """Latent vectors on the straight lines from starts to ends, both included.

    Args:
        starts: [N, length].
        ends: [N, length].
        steps: Vectors per line, at least 2.

    Returns:
        [N * steps, length], line by line.
    """
    fractions = torch.linspace(0, 1, steps)[None, :, None]
    return (starts[:, None] + fractions * (ends - starts)[:, None]).flatten(0, 1)


@torch.no_grad()
def drawn(
    generator: Callable[[Tensor], Tensor],
    latents: Tensor,
    *,
    device: torch.device,
    batch: int = BATCH,
) -> Tensor:
    """Generate the images of latent vectors, a batch at a time.

    Args:
        generator: In evaluation mode; maps vectors [N, length] to images in -1..1.
        latents: [N, length], on any device.
        device: The generator's device.
        batch: Images generated at once, which bounds the memory.

    Returns:
        uint8 [N, 3, H, W] on the CPU.
    """
    parts = [as_bytes(generator(part.to(device))).cpu() for part in latents.split(batch)]
    return torch.cat(parts)


def as_bytes(images: Tensor) -> Tensor:
    """Images in -1..1 as uint8: the inverse of the normalisation, rounded."""
    return ((images.float() + 1) * 127.5).round().clamp(0, 255).to(torch.uint8)
