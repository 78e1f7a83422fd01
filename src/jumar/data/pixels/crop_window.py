"""The position of a random training crop.

The rule is that of `tf.image.sample_distorted_bounding_box` (Inception's crop): draw a uniform
aspect ratio, then a uniform height among those with an allowed area, then a position. It differs
from torchvision's `RandomResizedCrop`, which draws a uniform area and therefore crops less.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Box = tuple[float, float, float, float]


class Window(NamedTuple):
    """A rectangle of pixels."""

    top: int
    left: int
    height: int
    width: int


class CropRule(NamedTuple):
    """The constraints on a crop.

    Attributes:
        area: Smallest and largest fraction of the image's area.
        aspect: Smallest and largest width divided by height.
        attempts: Draws before the whole image is taken.
        object_covered: The fraction of some annotated object that the crop must contain.
    """

    area: tuple[float, float]
    aspect: tuple[float, float]
    attempts: int
    object_covered: float


WHOLE: Box = (0.0, 0.0, 1.0, 1.0)


def draw_window(
    height: int,
    width: int,
    rule: CropRule,
    random: np.random.Generator,
    *,
    objects: Sequence[Box] = (),
) -> Window:
    """A random window that satisfies the rule, or the whole image if no attempt does.

    Args:
        height: Rows of the image.
        width: Columns of the image.
        rule: Area, aspect ratio, attempts, coverage.
        random: The random generator.
        objects: Annotated (ymin, xmin, ymax, xmax), relative; the whole image when empty.
    """
    boxes = [_pixels(box, height, width) for box in objects or (WHOLE,)]
    for _ in range(rule.attempts):
        window = _attempt(height, width, rule, random)
        if window is not None and (
            rule.object_covered <= 0
            or any(_covered(box, window) >= rule.object_covered for box in boxes)
        ):
            return window
    return Window(0, 0, height, width)


def scaled(window: Window, frame: int, height: int, width: int) -> Window:
    """A window drawn in a square frame, carried over to an image of another size.

    It stays within the image, as it did in the frame, and at least one pixel remains.
    """
    return Window(
        window.top * height // frame,
        window.left * width // frame,
        max(1, window.height * height // frame),
        max(1, window.width * width // frame),
    )


def _attempt(height: int, width: int, rule: CropRule, random: np.random.Generator) -> Window | None:
    draws = random.random(4).tolist()
    low, high = rule.aspect
    aspect = low + (high - low) * draws[0]
    smallest, largest = (part * height * width for part in rule.area)
    min_rows = round((smallest / aspect) ** 0.5)
    max_rows = min(round((largest / aspect) ** 0.5), height)
    if round(max_rows * aspect) > width:
        max_rows = int((width + 0.5) / aspect)
        max_rows -= round(max_rows * aspect) > width
    min_rows = min(min_rows, max_rows)
    rows = min_rows + int(draws[1] * (max_rows - min_rows + 1))
    columns = round(rows * aspect)
    # Rounding both sides may leave the allowed area by a few pixels: one row fixes it.
    if rows * columns < smallest:
        rows += 1
    elif rows * columns > largest:
        rows -= 1
    columns = round(rows * aspect)
    if not (smallest <= rows * columns <= largest and 0 < rows <= height and 0 < columns <= width):
        return None
    top = int(draws[2] * (height - rows + 1))
    left = int(draws[3] * (width - columns + 1))
    return Window(top, left, rows, columns)


def _pixels(box: Box, height: int, width: int) -> Box:
    return box[0] * height, box[1] * width, box[2] * height, box[3] * width


def _covered(box: Box, window: Window) -> float:
    """The part of a box inside the window."""
    tall = min(box[2], window.top + window.height) - max(box[0], window.top)
    wide = min(box[3], window.left + window.width) - max(box[1], window.left)
    area = (box[2] - box[0]) * (box[3] - box[1])
    return tall * wide / area if tall > 0 and wide > 0 and area > 0 else 0.0
