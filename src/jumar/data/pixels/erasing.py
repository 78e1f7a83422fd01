"""Random erasing: replaces a box of a training image by noise or one colour.

Paper: Z. Zhong, L. Zheng, G. Kang, S. Li, Y. Yang, "Random Erasing Data Augmentation",
https://arxiv.org/abs/1708.04896; ranges of area and shape are those of its classification runs.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jumar.ground.errors import UserError
from jumar.settings import Component, setting

_ATTEMPTS = 100
"""Attempts before the image is left unchanged; a box must fit into it."""


@dataclass(frozen=True, kw_only=True)
class ErasingSettings(Component, ABC):
    """Whether and how to erase a part of training images."""

    @abstractmethod
    def erased(
        self, pixels: NDArray[np.uint8], random: np.random.Generator, mean: tuple[float, ...]
    ) -> NDArray[np.uint8]:
        """Return an image with a part erased.

        Args:
            pixels: uint8 [height, width, 3]; may be changed.
            random: The sample's random generator.
            mean: Means of red, green and blue, which are subtracted later.
        """


@dataclass(frozen=True, kw_only=True)
class NoErasing(ErasingSettings, kind="none"):
    """No erasing."""

    def erased(
        self, pixels: NDArray[np.uint8], random: np.random.Generator, mean: tuple[float, ...]
    ) -> NDArray[np.uint8]:
        """Return the image unchanged; see `ErasingSettings.erased`."""
        del random, mean
        return pixels


@dataclass(frozen=True, kw_only=True)
class RandomErasing(ErasingSettings, kind="random"):
    """Erases one box in some of the images."""

    probability: float = setting(0.5, "Fraction of the images.", minimum=0, maximum=1)
    area: tuple[float, ...] = setting(
        (0.02, 0.4),
        "Minimum and maximum erased fraction of the image's area.",
        minimum=0.0,
        maximum=1.0,
    )
    aspect: tuple[float, ...] = setting(
        (0.3, 3.33), "Minimum and maximum height divided by width.", minimum=0.01
    )
    fill: str = setting(
        "noise", "Random bytes, or the mean colour of preprocessing.", choices=("noise", "mean")
    )

    def check(self) -> None:
        """Reject invalid ranges.

        Raises:
            UserError: A range does not consist of a minimum and a maximum.
        """
        for name in ("area", "aspect"):
            values: tuple[float, ...] = getattr(self, name)
            if len(values) != 2 or values[0] > values[1]:
                raise UserError(
                    f"'{name}' needs a minimum and a maximum, not {values}",
                    where=f"data.erasing.{name}",
                    todo=f"For instance: data.erasing.{name}=0.02,0.4",
                )

    def erased(
        self, pixels: NDArray[np.uint8], random: np.random.Generator, mean: tuple[float, ...]
    ) -> NDArray[np.uint8]:
        """See `ErasingSettings.erased`."""
        if random.random() >= self.probability:
            return pixels
        height, width = pixels.shape[:2]
        for _ in range(_ATTEMPTS):
            area = height * width * random.uniform(self.area[0], self.area[1])
            # Uniform in the logarithm, so that wide and tall boxes are equally frequent.
            low, high = (math.log(ratio) for ratio in self.aspect)
            aspect = math.exp(random.uniform(low, high))
            rows, columns = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < rows < height and 0 < columns < width:
                break
        else:
            return pixels
        top = int(random.integers(height - rows + 1))
        left = int(random.integers(width - columns + 1))
        result = pixels.copy()
        box = result[top : top + rows, left : left + columns]
        box[:] = (
            random.integers(0, 256, box.shape, dtype=np.uint8)
            if self.fill == "noise"
            else np.rint(mean).astype(np.uint8)
        )
        return result
