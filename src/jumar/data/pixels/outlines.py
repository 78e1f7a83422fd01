"""Draws outlines into images."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

Colour = tuple[int, int, int]

FOUND: Colour = (0, 220, 0)
"""Green, for outlines that a network detected."""
LABELLED: Colour = (255, 140, 0)
"""Orange, which is visible on paper and on photographs, for labelled outlines."""


def with_outlines(
    pixels: NDArray[np.uint8], outlines: Iterable[tuple[NDArray[np.floating], Colour]]
) -> NDArray[np.uint8]:
    """Return a copy of an image with closed outlines, later ones on top.

    Args:
        pixels: [height, width, 3].
        outlines: Corners [corners, 2] as x and y in pixels, and the colour of each outline.
    """
    image = Image.fromarray(pixels)
    draw = ImageDraw.Draw(image)
    width = max(1, round(max(pixels.shape) / 500))
    for corners, colour in outlines:
        points = [(float(x), float(y)) for x, y in corners]
        draw.line([*points, points[0]], fill=colour, width=width, joint="curve")
    return np.array(image)
