"""RandAugment: applies some of 14 operations, drawn for each image, at the same magnitude.

Paper: E. Cubuk, B. Zoph, J. Shlens, Q. Le, "RandAugment: Practical automated data augmentation
with a reduced search space", https://arxiv.org/abs/1909.13719. The operations and the linear scale
of magnitudes, 0 to 30, are those of the paper; 30 corresponds to the largest magnitude of
AutoAugment (https://arxiv.org/abs/1805.09501). The pixels of each operation are Pillow's.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageOps

from jumar.settings import Component, setting

MAX_MAGNITUDE = 30
_ROTATION = 30.0
"""Degrees."""
_SHEAR = 0.3
_SHIFT = 150.0 / 331.0
"""Fraction of the side: 150 of 331 pixels, the image size in AutoAugment."""
_ENHANCEMENT = 0.9
_LOST_BITS = 4

_Operation = Callable[[Image.Image, float, int], Image.Image]
"""Arguments: an image, a strength from -1 to 1, and the level of pixels from outside the image."""


@dataclass(frozen=True, kw_only=True)
class AutoAugmentSettings(Component, ABC):
    """Which operations change training images after crop and flip."""

    @abstractmethod
    def changed(self, pixels: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
        """Return a changed image, uint8 [height, width, 3].

        Args:
            pixels: uint8 [height, width, 3], which is not modified.
            random: The sample's random generator.
        """


@dataclass(frozen=True, kw_only=True)
class NoAutoAugment(AutoAugmentSettings, kind="none"):
    """No operations."""

    def changed(self, pixels: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
        """Return the image unchanged; see `AutoAugmentSettings.changed`."""
        del random
        return pixels


@dataclass(frozen=True, kw_only=True)
class RandAugment(AutoAugmentSettings, kind="randaugment"):
    """RandAugment."""

    operations: int = setting(2, "Operations per image (N).", minimum=0, maximum=14)
    magnitude: float = setting(
        9.0, "Strength of each operation (M).", minimum=0, maximum=MAX_MAGNITUDE
    )
    fill: int = setting(128, "Level of pixels from outside the image.", minimum=0, maximum=255)

    def changed(self, pixels: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
        """See `AutoAugmentSettings.changed`."""
        image = Image.fromarray(np.ascontiguousarray(pixels))
        names = list(OPERATIONS)
        for _ in range(self.operations):
            operation = OPERATIONS[names[int(random.integers(len(names)))]]
            sign = 1 if random.random() < 0.5 else -1
            image = operation(image, sign * self.magnitude / MAX_MAGNITUDE, self.fill)
        return np.array(image)


def _identity(image: Image.Image, strength: float, fill: int) -> Image.Image:
    del strength, fill
    return image


def _auto_contrast(image: Image.Image, strength: float, fill: int) -> Image.Image:
    del strength, fill
    return ImageOps.autocontrast(image)


def _equalize(image: Image.Image, strength: float, fill: int) -> Image.Image:
    del strength, fill
    return ImageOps.equalize(image)


def _rotate(image: Image.Image, strength: float, fill: int) -> Image.Image:
    return image.rotate(strength * _ROTATION, fillcolor=(fill,) * 3)


def _solarize(image: Image.Image, strength: float, fill: int) -> Image.Image:
    del fill
    return ImageOps.solarize(image, math.ceil(255 * (1 - abs(strength))))


def _posterize(image: Image.Image, strength: float, fill: int) -> Image.Image:
    del fill
    return ImageOps.posterize(image, 8 - round(abs(strength) * _LOST_BITS))


def _enhanced(kind: Callable[[Image.Image], Any]) -> _Operation:
    def enhance(image: Image.Image, strength: float, fill: int) -> Image.Image:
        del fill
        return kind(image).enhance(1 + strength * _ENHANCEMENT)

    return enhance


def _shear_x(image: Image.Image, strength: float, fill: int) -> Image.Image:
    return _affine(image, (1, strength * _SHEAR, 0, 0, 1, 0), fill)


def _shear_y(image: Image.Image, strength: float, fill: int) -> Image.Image:
    return _affine(image, (1, 0, 0, strength * _SHEAR, 1, 0), fill)


def _translate_x(image: Image.Image, strength: float, fill: int) -> Image.Image:
    return _affine(image, (1, 0, -int(strength * _SHIFT * image.width), 0, 1, 0), fill)


def _translate_y(image: Image.Image, strength: float, fill: int) -> Image.Image:
    return _affine(image, (1, 0, 0, 0, 1, -int(strength * _SHIFT * image.height)), fill)


def _affine(
    image: Image.Image, matrix: tuple[float, float, float, float, float, float], fill: int
) -> Image.Image:
    """Transform by nearest neighbours, as for rotations; shears fix the upper left corner."""
    return image.transform(image.size, Image.Transform.AFFINE, matrix, fillcolor=(fill,) * 3)


OPERATIONS: Mapping[str, _Operation] = {
    "identity": _identity,
    "auto_contrast": _auto_contrast,
    "equalize": _equalize,
    "rotate": _rotate,
    "solarize": _solarize,
    "color": _enhanced(ImageEnhance.Color),
    "posterize": _posterize,
    "contrast": _enhanced(ImageEnhance.Contrast),
    "brightness": _enhanced(ImageEnhance.Brightness),
    "sharpness": _enhanced(ImageEnhance.Sharpness),
    "shear_x": _shear_x,
    "shear_y": _shear_y,
    "translate_x": _translate_x,
    "translate_y": _translate_y,
}
"""The 14 operations, by name."""
