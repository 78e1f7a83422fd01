"""Pictures out of a generator: latent vectors by number, batches of bounded size, bytes."""

from collections.abc import Callable

import torch
from torch import Tensor

from jumar.models.keyed_random import keyed_normal, random_position

BATCH = 16
"""Pictures made at once, where nothing else is asked for."""


def numbered_latents(
    first: int, count: int, length: int, *, seed: int, truncation: float
) -> Tensor:
    """Latent vectors of the pictures number `first` and after, under a seed.

    Each depends on its number and the seed alone. Numbers outside the truncation are drawn anew
    rather than put at its edge, as the paper's truncation trick says.

    Args:
        first: Number of the first picture.
        count: How many.
        length: Numbers a vector.
        seed: Any whole number.
        truncation: Largest magnitude of a number, in standard deviations.

    Returns:
        float32 [count, length] on the CPU, equal for every device.
    """
    position = random_position(seed, first)
    return keyed_normal(count, length, position, torch.device("cpu"), truncation=truncation)


def between(starts: Tensor, ends: Tensor, steps: int) -> Tensor:
    """Latent vectors on the straight lines from starts to ends, both included.

    Args:
        starts: [N, length].
        ends: [N, length].
        steps: Vectors a line, at least 2.

    Returns:
        [N * steps, length], line by line.
    """
    shares = torch.linspace(0, 1, steps)[None, :, None]
    return (starts[:, None] + shares * (ends - starts)[:, None]).flatten(0, 1)


@torch.no_grad()
def drawn(
    generator: Callable[[Tensor], Tensor],
    latents: Tensor,
    *,
    device: torch.device,
    batch: int = BATCH,
) -> Tensor:
    """The pictures of latent vectors, a batch at a time.

    Args:
        generator: In evaluation mode; vectors [N, length] to images in -1..1.
        latents: [N, length], wherever they are.
        device: That of the generator.
        batch: Pictures made at once; what bounds the memory.

    Returns:
        uint8 [N, 3, H, W] on the CPU.
    """
    parts = [as_bytes(generator(part.to(device))).cpu() for part in latents.split(batch)]
    return torch.cat(parts)


def as_bytes(images: Tensor) -> Tensor:
    """uint8 of images in -1..1: the inverse of the normalisation, rounded."""
    return ((images.float() + 1) * 127.5).round().clamp(0, 255).to(torch.uint8)
