"""Sample images from a generator: numbered latent vectors, batches of limited size, bytes."""

from collections.abc import Callable

import torch
from torch import Tensor

from jumar.models.keyed_random import keyed_normal, random_position

BATCH = 16
"""Default number of images generated at once."""


def numbered_latents(
    first: int, count: int, length: int, *, seed: int, truncation: float
) -> Tensor:
    """Return the latent vectors of `count` images, starting with number `first`.

    Each vector depends only on its number and the seed. Values beyond the truncation are drawn
    again rather than clipped, as in the paper's truncation trick.

    Args:
        first: Number of the first image.
        count: Number of vectors.
        length: Length of a vector.
        seed: Any integer.
        truncation: Maximum magnitude of a value, in standard deviations.

    Returns:
        float32 [count, length] on the CPU, the same for every device.
    """
    position = random_position(seed, first)
    return keyed_normal(count, length, position, torch.device("cpu"), truncation=truncation)


def between(starts: Tensor, ends: Tensor, steps: int) -> Tensor:
    """Interpolate linearly between latent vectors, including both ends.

    Args:
        starts: [N, length].
        ends: [N, length].
        steps: Number of vectors per line, at least 2.

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
        batch: Number of images generated at once, which limits the memory.

    Returns:
        uint8 [N, 3, H, W] on the CPU.
    """
    parts = [as_bytes(generator(part.to(device))).cpu() for part in latents.split(batch)]
    return torch.cat(parts)


def as_bytes(images: Tensor) -> Tensor:
    """Convert images in -1..1 to uint8, inverting the normalisation."""
    return ((images.float() + 1) * 127.5).round().clamp(0, 255).to(torch.uint8)
