"""Random erasing: a box of a training image becomes noise or one colour.

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
    """Whether and how a part of training images is erased."""

    @abstractmethod
    def erased(
        self, pixels: NDArray[np.uint8], random: np.random.Generator, mean: tuple[float, ...]
    ) -> NDArray[np.uint8]:
        """An image with a part erased.

        Args:
            pixels: uint8 [height, width, 3]; may be changed.
            random: The sample's random generator.
            mean: Means of red, green and blue, which are subtracted later.
        """


@dataclass(frozen=True, kw_only=True)
class NoErasing(ErasingSettings, kind="none"):
    """Images stay whole."""

    def erased(
        self, pixels: NDArray[np.uint8], random: np.random.Generator, mean: tuple[float, ...]
    ) -> NDArray[np.uint8]:
        """The image; see `ErasingSettings.erased`."""
        del random, mean
        return pixels


@dataclass(frozen=True, kw_only=True)
class RandomErasing(ErasingSettings, kind="random"):
    """One box of some of the images."""

    probability: float = setting(0.5, "fraction of the images", minimum=0, maximum=1)
    area: tuple[float, ...] = setting(
        (0.02, 0.4),
        "smallest and largest erased fraction of the image's area",
        minimum=0.0,
        maximum=1.0,
    )
    aspect: tuple[float, ...] = setting(
        (0.3, 3.33), "smallest and largest height divided by width", minimum=0.01
    )
    fill: str = setting(
        "noise", "random bytes, or the mean colour of preprocessing", choices=("noise", "mean")
    )

    def check(self) -> None:
        """Reject invalid ranges.

        Raises:
            UserError: A pair is not the smaller and the larger value.
        """
        for name in ("area", "aspect"):
            values: tuple[float, ...] = getattr(self, name)
            if len(values) != 2 or values[0] > values[1]:
                raise UserError(
                    f"'{name}' takes the smallest and the largest value, not {values}",
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
            lowest, highest = (math.log(ratio) for ratio in self.aspect)
            aspect = math.exp(random.uniform(lowest, highest))
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
