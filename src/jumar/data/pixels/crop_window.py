"""Draws the window of a random training crop.

As in `tf.image.sample_distorted_bounding_box` (Inception's crop), the aspect ratio is drawn first,
uniformly, then the height, uniformly among those with an allowed area, then the position.
torchvision's `RandomResizedCrop` draws the area uniformly instead and therefore crops less.
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
        area: Minimum and maximum fraction of the image's area.
        aspect: Minimum and maximum width divided by height.
        attempts: Number of draws before the whole image is used.
        object_covered: Minimum fraction of some annotated object that the crop must contain.
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
    """Draw a window that satisfies the rule; return the whole image if no attempt succeeds.

    Args:
        height: Rows of the image.
        width: Columns of the image.
        rule: The constraints.
        random: The random generator.
        objects: Annotated boxes (ymin, xmin, ymax, xmax), relative; if empty, the whole image.
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
    """Scale a window from a square frame to an image of another size.

    It stays within the image and has at least one pixel.
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
    min_area, max_area = (part * height * width for part in rule.area)
    min_rows = round((min_area / aspect) ** 0.5)
    max_rows = min(round((max_area / aspect) ** 0.5), height)
    if round(max_rows * aspect) > width:
        max_rows = int((width + 0.5) / aspect)
        max_rows -= round(max_rows * aspect) > width
    min_rows = min(min_rows, max_rows)
    rows = min_rows + int(draws[1] * (max_rows - min_rows + 1))
    columns = round(rows * aspect)
    # Due to rounding, the area may be out of range by a few pixels, which one row corrects.
    if rows * columns < min_area:
        rows += 1
    elif rows * columns > max_area:
        rows -= 1
    columns = round(rows * aspect)
    if not (min_area <= rows * columns <= max_area and 0 < rows <= height and 0 < columns <= width):
        return None
    top = int(draws[2] * (height - rows + 1))
    left = int(draws[3] * (width - columns + 1))
    return Window(top, left, rows, columns)


def _pixels(box: Box, height: int, width: int) -> Box:
    return box[0] * height, box[1] * width, box[2] * height, box[3] * width


def _covered(box: Box, window: Window) -> float:
    """Return the fraction of a box inside the window."""
    tall = min(box[2], window.top + window.height) - max(box[0], window.top)
    wide = min(box[3], window.left + window.width) - max(box[1], window.left)
    area = (box[2] - box[0]) * (box[3] - box[1])
    return tall * wide / area if tall > 0 and wide > 0 and area > 0 else 0.0
