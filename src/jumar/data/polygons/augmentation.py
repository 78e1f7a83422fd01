"""Augments images with words: scaling, rotation, crops between words, colours.

As in the original PSENet and EAST, a crop never cuts a word: its edges are in rows and columns
without words. A fraction of the crops has no words. Rotation and colour changes are not in the
originals and are off by default.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jumar.data.pixels.crop_window import Window
from jumar.data.polygons.regions import Region
from jumar.ground.errors import UserError
from jumar.settings import check_intervals, setting

Pixels = NDArray[np.uint8]

_LUMA = np.array([0.299, 0.587, 0.114])
_MARGIN = 0.1
"""Fraction of a side by which the edges of a crop may be drawn outside the image before clipping,
so that crops reach the border more often."""


@dataclass(frozen=True, kw_only=True)
class TextAugmentation:
    """Crops and changes of training images."""

    scales: tuple[float, ...] = setting(
        (0.5, 1.0, 2.0, 3.0), "Scale factors, one of which is drawn.", minimum=0.01
    )
    background_share: float = setting(
        0.375, "Fraction of crops without words, if an image allows them.", minimum=0, maximum=1
    )
    crop_attempts: int = setting(50, "Attempts before the whole image is used.", minimum=1)
    least_side: float = setting(
        0.1, "Minimum side of a crop, as a fraction of the image's.", minimum=0.01, maximum=1
    )
    rotation: float = setting(
        0.0, "Maximum angle by which images are rotated.", unit="degrees", minimum=0, maximum=180
    )
    brightness: float = setting(
        0.0, "Maximum change of brightness.", unit="levels of 0 to 255", minimum=0
    )
    contrast: tuple[float, ...] = setting(
        (1.0, 1.0), "Minimum and maximum factor of contrast.", minimum=0
    )
    saturation: tuple[float, ...] = setting(
        (1.0, 1.0), "Minimum and maximum factor of saturation.", minimum=0
    )

    def check(self) -> None:
        """Reject empty scales and invalid ranges.

        Raises:
            UserError: There are no scales, or a range is invalid.
        """
        if not self.scales:
            raise UserError("needs at least one number", where="scales")
        check_intervals(self, "contrast", "saturation")


def augmented(
    pixels: Pixels,
    regions: Sequence[Region],
    augmentation: TextAugmentation,
    side: int,
    random: np.random.Generator,
) -> tuple[Pixels, list[Region]]:
    """Augment one image and the words in it.

    Args:
        pixels: [height, width, 3].
        regions: Its words.
        augmentation: The settings.
        side: Side of the result.
        random: The random generator.

    Returns:
        Pixels [side, side, 3], black beside a crop that is not square, and the regions in it.
    """
    scale = float(random.choice(augmentation.scales))
    angle = float(random.uniform(-augmentation.rotation, augmentation.rotation))
    background = float(random.random()) < augmentation.background_share
    colours = random.random(3)
    if augmentation.rotation:
        pixels, regions = rotated(pixels, regions, angle)
    window = draw_crop(pixels.shape[:2], regions, augmentation, random, background=background)
    crop = pixels[window.top : window.top + window.height, window.left : window.left + window.width]
    inside_regions = [region for region in regions if _contains(region, window)]
    factor = side / max(window.height, window.width, side / scale)
    size = tuple(max(1, min(side, round(length * factor))) for length in crop.shape[:2])
    picture = np.zeros((side, side, 3), np.uint8)
    picture[: size[0], : size[1]] = _recoloured(
        resized(crop, (size[0], size[1])), augmentation, colours
    )
    stretch = (size[1] / window.width, size[0] / window.height)
    origin = (window.left, window.top)
    return picture, [
        replace(region, corners=(region.corners - origin) * stretch) for region in inside_regions
    ]


def draw_crop(
    size: tuple[int, int],
    regions: Sequence[Region],
    augmentation: TextAugmentation,
    random: np.random.Generator,
    *,
    background: bool,
) -> Window:
    """Draw a window of an image whose edges cut no word.

    Args:
        size: Height and width of the image.
        regions: Its words.
        augmentation: Number of attempts, and the minimum side.
        random: The random generator.
        background: Whether to draw a window without words; otherwise one with at least one word, if
            the image has any.

    Returns:
        The window, or the whole image if no attempt succeeded.
    """
    rows, columns = _free_edges(size[0], regions, 1), _free_edges(size[1], regions, 0)
    min_height, min_width = (max(augmentation.least_side * length, 1) for length in size)
    for _ in range(augmentation.crop_attempts):
        top, bottom = _two_edges(rows, size[0], random)
        left, right = _two_edges(columns, size[1], random)
        if bottom - top < min_height or right - left < min_width:
            continue
        window = Window(top, left, bottom - top, right - left)
        if not regions or any(_contains(region, window) for region in regions) != background:
            return window
    return Window(0, 0, *size)


def _free_edges(length: int, regions: Sequence[Region], axis: int) -> NDArray[np.int64]:
    """Return the allowed positions of an edge: 0 to `length` and beyond, but not within a word."""
    margin = round(length * _MARGIN)
    is_occupied = np.zeros(length + 2 * margin + 1, bool)
    for region in regions:
        coordinates = region.corners[:, axis]
        first, last = int(np.floor(coordinates.min())) + 1, int(np.ceil(coordinates.max()))
        is_occupied[max(0, first + margin) : max(0, last + margin)] = True
    edges = np.flatnonzero(~is_occupied) - margin
    return edges if len(edges) else np.array([0, length])


def _two_edges(
    edges: NDArray[np.int64], length: int, random: np.random.Generator
) -> tuple[int, int]:
    drawn_edges = edges[(random.random(2) * len(edges)).astype(np.int64)]
    first, last = np.clip(np.sort(drawn_edges), 0, length).tolist()
    return first, last


def _contains(region: Region, window: Window) -> bool:
    low, high = region.corners.min(axis=0), region.corners.max(axis=0)
    return bool(
        low[0] >= window.left
        and low[1] >= window.top
        and high[0] <= window.left + window.width
        and high[1] <= window.top + window.height
    )


def rotated(
    pixels: Pixels, regions: Sequence[Region], degrees: float
) -> tuple[Pixels, list[Region]]:
    """Rotate an image counter-clockwise around its centre, enlarging it so that all of it fits."""
    import cv2

    height, width = pixels.shape[:2]
    matrix = np.asarray(cv2.getRotationMatrix2D((width / 2, height / 2), degrees, 1.0), np.float64)
    extent = np.abs(matrix[:, :2]) @ (width, height)
    size = (max(1, round(float(extent[0]))), max(1, round(float(extent[1]))))
    matrix[:, 2] += np.array(size) / 2 - (width / 2, height / 2)
    rotated_regions = [
        replace(region, corners=region.corners @ matrix[:, :2].T + matrix[:, 2])
        for region in regions
    ]
    return np.asarray(cv2.warpAffine(pixels, matrix, size), np.uint8), rotated_regions


def resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Resize pixels to (height, width), by averaging when shrinking, otherwise bilinearly."""
    import cv2

    shrinks = size[0] < pixels.shape[0] and size[1] < pixels.shape[1]
    interpolation = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(pixels, (size[1], size[0]), interpolation=interpolation), np.uint8)


def _recoloured(
    pixels: Pixels, augmentation: TextAugmentation, draws: NDArray[np.float64]
) -> Pixels:
    """Change saturation, contrast around the mean, and brightness, by one matrix per pixel."""
    import cv2

    low, high = augmentation.contrast
    contrast = low + (high - low) * draws[0]
    low, high = augmentation.saturation
    saturation = low + (high - low) * draws[1]
    brightness = augmentation.brightness * (2 * draws[2] - 1)
    if contrast == saturation == 1 and brightness == 0:
        return pixels
    matrix = contrast * (saturation * np.eye(3) + (1 - saturation) * _LUMA)
    mean = np.asarray(cv2.mean(pixels)[:3]) @ _LUMA
    shift = (1 - contrast) * mean + brightness
    transform = np.concatenate([matrix, np.full((3, 1), shift)], axis=1)
    return np.asarray(cv2.transform(pixels, transform), np.uint8)
