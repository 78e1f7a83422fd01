"""Differentiable random changes to images, for discriminators with little data.

Paper: Zhao, Liu, Lin, Zhu, Han, "Differentiable Augmentation for Data-Efficient GAN Training",
arXiv 2006.10738. A discriminator that sees real and generated images changed in the same ways
cannot memorise a small data set; gradients reach the generator through the changes, so that it does
not learn to reproduce them.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from jumar.models.keyed_random import Keyed, keyed_uniform

CHANGES = ("color", "translation", "cutout")
LARGEST_SHIFT = 1 / 8
"""Largest translation, as a share of the image's side."""
HOLE = 1 / 2
"""Side of a cutout, as a share of the image's side."""
_DRAWS_PER_IMAGE = 7


class DifferentiableAugmentation(Keyed):
    """Changes each of the images [N, C, H, W], centred on 0, with random numbers keyed by row.

    Args:
        changes: A subset of `CHANGES`; images stay unchanged if it is empty.

    Raises:
        ValueError: A change is unknown.
    """

    def __init__(self, changes: Sequence[str]) -> None:
        super().__init__()
        for name in changes:
            if name not in CHANGES:
                raise ValueError(f"unknown change '{name}'; known: {', '.join(CHANGES)}")
        self.changes = frozenset(changes)

    def forward(self, images: Tensor) -> Tensor:
        """The changed images, in the dtype of the input."""
        if not self.changes:
            return images
        draws = keyed_uniform(len(images), _DRAWS_PER_IMAGE, self.known_position(), images.device)
        brightness, saturation, contrast, *positions = draws.unbind(1)
        # In 16 bits the product of a translation would round values that it should only move.
        with torch.autocast(images.device.type, enabled=False):
            if "color" in self.changes:
                images = recolored(images, brightness - 0.5, 2 * saturation, contrast + 0.5)
            if "translation" in self.changes:
                shifts = (
                    _shift(positions[0], images.shape[2]),
                    _shift(positions[1], images.shape[3]),
                )
                images = translated(images, *shifts)
            if "cutout" in self.changes:
                images = cut_out(images, positions[2], positions[3])
        return images


def recolored(images: Tensor, brightness: Tensor, saturation: Tensor, contrast: Tensor) -> Tensor:
    """Change the brightness, then the distance from each pixel's grey, then from the image's mean.

    Args:
        images: [N, C, H, W].
        brightness: [N], added.
        saturation: [N], factor of the distance from the mean of the channels.
        contrast: [N], factor of the distance from the mean of the image.
    """
    images = images + _per_image(brightness, images)
    grey = images.mean(1, keepdim=True)
    images = grey + (images - grey) * _per_image(saturation, images)
    mean = images.mean((1, 2, 3), keepdim=True)
    return mean + (images - mean) * _per_image(contrast, images)


def translated(images: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """Shift by whole pixels, filling with zeros.

    Multiplies by a matrix of zeros and ones on each side, which is exact, and whose backward pass
    is two more products. Indexing would scatter in the backward pass, which is slow on an NPU and
    adds in no fixed order on CUDA.

    Args:
        images: [N, C, H, W].
        down: [N], whole numbers; negative means up.
        right: [N], whole numbers; negative means left.
    """
    rows = _shift_matrix(down, images.shape[2], images)
    columns = _shift_matrix(right, images.shape[3], images)
    return rows[:, None] @ images @ columns.transpose(1, 2)[:, None]


def cut_out(images: Tensor, top: Tensor, left: Tensor) -> Tensor:
    """Zero a square of half the side around a position; it is clipped at the border.

    Args:
        images: [N, C, H, W].
        top: [N], from 0 to below 1: the position of the hole's centre, from the top.
        left: [N], the same from the left.
    """
    height, width = images.shape[2:]
    inside_rows = _near(top, height)[:, None, :, None]
    inside_columns = _near(left, width)[:, None, None, :]
    return images * (1 - inside_rows * inside_columns).to(images.dtype)


def _per_image(values: Tensor, images: Tensor) -> Tensor:
    return values.to(images.dtype)[:, None, None, None]


def _shift(uniform: Tensor, side: int) -> Tensor:
    largest = int(LARGEST_SHIFT * side + 0.5)
    return torch.floor(uniform * (2 * largest + 1)) - largest


def _shift_matrix(shift: Tensor, side: int, like: Tensor) -> Tensor:
    """[N, side, side]: row i selects column i - shift."""
    positions = torch.arange(side, device=like.device, dtype=shift.dtype)
    return (positions[None, :, None] - shift[:, None, None] == positions).to(like.dtype)


def _near(middle: Tensor, side: int) -> Tensor:
    """[N, side]: one within half a hole of the middle, zero elsewhere."""
    hole = int(HOLE * side + 0.5)
    first = torch.floor(middle * (side + 1)) - hole // 2
    offsets = torch.arange(side, device=middle.device, dtype=middle.dtype) - first[:, None]
    return ((offsets >= 0) & (offsets < hole)).to(middle.dtype)
