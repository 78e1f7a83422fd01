"""The distance between a set of generated and a set of real images, without a downloaded network.

The sliced Wasserstein distance of T. Karras et al., "Progressive Growing of GANs for Improved
Quality, Stability, and Variation" (2018), section 5: small neighbourhoods at random positions in
every level of a Laplacian pyramid are compared as sets. The 16 px level reflects large shapes and
colours, the finest level noise and sharpness.

As in the original: filters and borders of the pyramid, 7 x 7 x 3 values per neighbourhood,
normalisation of each channel by the mean and deviation of the set itself, 4 x 128 directions, and a
factor of 1000. Differences:

- Positions and directions are a function of image number and level, so that two evaluations in one
  run differ only in the images. Two equal sets have a distance of exactly 0.
- Large sets use fewer neighbourhoods per image, see `neighbourhoods_per_image`. The distance of two
  samples from one distribution is not 0 but decreases with the number of neighbourhoods, roughly as
  its inverse square root (the paper's 16,384 images have 2 million): only compare results for
  equally large sets.
"""

from collections.abc import Mapping

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from jumar.models.keyed_random import keyed_uniform, random_position

SMALLEST_LEVEL = 16
"""Minimum side in pixels of the pyramid's coarsest level."""

_SIDE = 7
_PER_IMAGE = 128
_MAX_ROWS = 2**17
"""Maximum number of neighbourhoods per level and set: 77 MB per level, so that two sets of 10,000
images of 128 px need less than 700 MB."""
_REPEATS = 4
_DIRECTIONS = 128
_TAPS = (1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16)


def neighbourhoods_per_image(images: int) -> int:
    """Return the number of patches per image and level for a set of this size.

    The number is 128, as in the original, for up to 1,024 images and then decreases: 13 for 10,000
    images, at least 1.
    """
    return max(1, min(_PER_IMAGE, _MAX_ROWS // max(images, 1)))


def laplacian_descriptors(
    images: Tensor, *, first_index: int, per_image: int = _PER_IMAGE
) -> dict[str, Tensor]:
    """Return patches of a batch of images from every level of their Laplacian pyramid.

    The precision mode does not apply: this is a metric, not part of the network, and is computed in
    float32.

    Args:
        images: [N, 3, height, width] in -1..1, both sides at least 16 px.
        first_index: Number of the batch's first image in the whole set; the positions depend only
            on the image's number, not on how the set is split into batches.
        per_image: Neighbourhoods per image and level, see `neighbourhoods_per_image`.

    Returns:
        For each level, named by its shorter side in pixels from fine to coarse ("128", "64", ...):
        float32 [N * per_image, 147] on the device of the images.

    Raises:
        ValueError: The images are not in colour or are smaller than 16 px.
    """
    if images.ndim != 4 or images.shape[1] != 3 or min(images.shape[2:]) < SMALLEST_LEVEL:
        raise ValueError(
            f"images must be [N, 3, H, W] with sides of at least {SMALLEST_LEVEL} px, "
            f"not {list(images.shape)}"
        )
    rows: dict[str, Tensor] = {}
    for number, level in enumerate(_laplacian_pyramid(images.to(torch.float32))):
        count, height, width = len(level), level.shape[2], level.shape[3]
        position = random_position(number, first_index)
        fractions = keyed_uniform(count, 2 * per_image, position, level.device)
        top = _whole(fractions[:, :per_image], height - _SIDE + 1)
        left = _whole(fractions[:, per_image:], width - _SIDE + 1)
        windows = level.unfold(2, _SIDE, 1).unfold(3, _SIDE, 1)
        image = torch.arange(count, device=level.device)[:, None]
        rows[str(min(height, width))] = windows[image, :, top, left].flatten(0, 1).flatten(1)
    return rows


def sliced_wasserstein(real: Mapping[str, Tensor], fake: Mapping[str, Tensor]) -> dict[str, float]:
    """Return the sliced Wasserstein distance of two sets of descriptors, times 1000.

    Args:
        real: Rows of every level from `laplacian_descriptors`, with batches concatenated.
        fake: The same levels with the same number of rows.

    Returns:
        "swd_128", "swd_64", ... in the order of the levels, and their mean, "swd".

    Raises:
        ValueError: The levels or their numbers of rows differ.
    """
    if list(real) != list(fake) or not real:
        raise ValueError(f"the levels differ: {list(real)} and {list(fake)}")
    distances: dict[str, float] = {}
    for number, (name, rows) in enumerate(real.items()):
        if rows.shape != fake[name].shape:
            raise ValueError(
                f"level {name}: {list(rows.shape)} and {list(fake[name].shape)} values; "
                "compare as many generated images as real ones"
            )
        distances[f"swd_{name}"] = 1000 * _distance(rows, fake[name], seed=number)
    distances["swd"] = sum(distances.values()) / len(distances)
    return distances


def _distance(real: Tensor, fake: Tensor, *, seed: int) -> float:
    """Return the mean Wasserstein distance of projections in random directions."""
    generator = torch.Generator().manual_seed(seed)
    real_rows, fake_rows = _normalized(real), _normalized(fake)
    total = 0.0
    for _ in range(_REPEATS):
        directions = torch.randn(
            _DIRECTIONS, real.shape[1], generator=generator, dtype=torch.float64
        )
        directions = F.normalize(directions, dim=1).to(torch.float32)
        # In one dimension, optimal transport pairs the values by rank.
        differences = _sorted(directions @ real_rows.T) - _sorted(directions @ fake_rows.T)
        total += float(np.abs(differences).mean(dtype=np.float64))
    return total / _REPEATS


def _sorted(values: Tensor) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    """Sort each row in place; numpy sorts float32 several times faster than torch."""
    sorted_values = values.numpy()
    sorted_values.sort(axis=1)
    return sorted_values


def _normalized(rows: Tensor) -> Tensor:
    """Normalise each channel to mean 0 and deviation 1 over the set; float32 [rows, 147], CPU."""
    channels = rows.detach().to("cpu", torch.float32).unflatten(1, (3, -1))
    deviation, mean = torch.std_mean(channels, dim=(0, 2), correction=0, keepdim=True)
    # A generator that has collapsed to one colour has zero deviation; clamping avoids NaN.
    return ((channels - mean) / deviation.clamp_min(1e-8)).flatten(1)


def _laplacian_pyramid(images: Tensor) -> list[Tensor]:
    """Return the differences between levels, from fine to coarse, and the coarsest level itself."""
    levels = [images]
    while (min(levels[-1].shape[2:]) + 1) // 2 >= SMALLEST_LEVEL:
        fine = levels[-1]
        coarse = _blurred(fine)[:, :, ::2, ::2]
        upsampled = torch.zeros_like(fine)
        upsampled[:, :, ::2, ::2] = 4 * coarse
        levels[-1] = fine - _blurred(upsampled)
        levels.append(coarse)
    return levels


def _blurred(images: Tensor) -> Tensor:
    """Apply the 5 x 5 binomial filter, mirroring at the borders without repeating the edge.

    Slices are summed instead of convolved, because a convolution would use the precision mode of
    the run.
    """
    for dim, border in ((2, (0, 0, 2, 2)), (3, (2, 2, 0, 0))):
        padded, size = F.pad(images, border, mode="reflect"), images.shape[dim]
        images = sum(
            (tap * padded.narrow(dim, offset, size) for offset, tap in enumerate(_TAPS)),
            start=torch.zeros((), device=images.device),
        )
    return images


def _whole(fractions: Tensor, count: int) -> Tensor:
    """Convert fractions in (0, 1) to integers 0..count-1."""
    # The product for a fraction just below 1 may be rounded up to the count itself.
    return (fractions * count).to(torch.int64).clamp_max_(count - 1)
