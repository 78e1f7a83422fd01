"""Combines images: grids of samples, rows of images with labels, and PNG files of them.

Inputs are uint8 [channels, height, width] with 1 or 3 channels; results are uint8 [height, width,
3], as required for illustrations and PNG files.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from jumar.ground.files import written_beside

_GAP = 2
_WHITE = 255
_LABEL_MARGIN = 3


def picture_grid(images: Tensor, columns: int) -> Tensor:
    """Arrange images of the same size in rows, with white gaps of 2 px.

    Args:
        images: uint8 [N, 3 or 1, height, width], at least one.
        columns: Images per row; fewer if there are not so many.

    Returns:
        uint8 [height', width', 3] on the CPU.

    Raises:
        ValueError: The images have another type or shape, or there are none.
    """
    if images.ndim != 4 or len(images) == 0:
        raise ValueError(f"a grid needs images [N, channels, H, W], not {list(images.shape)}")
    pictures = [_as_colour(image) for image in images]
    count, (height, width) = len(pictures), pictures[0].shape[:2]
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    grid = _blank(rows * (height + _GAP) - _GAP, columns * (width + _GAP) - _GAP)
    for number, picture in enumerate(pictures):
        top, left = number // columns * (height + _GAP), number % columns * (width + _GAP)
        grid[top : top + height, left : left + width] = picture
    return grid


def side_by_side(images: Sequence[Tensor], labels: Sequence[str] = ()) -> Tensor:
    """Arrange images of any size in one row, aligned at the top, each with its label below.

    A column is as wide as its image or label, whichever is wider, so that no label is cut.

    Args:
        images: uint8 [3 or 1, height, width] each, at least one.
        labels: One for each image, or none. Characters missing in Pillow's font become `?`.

    Returns:
        uint8 [height', width', 3] on the CPU.

    Raises:
        ValueError: An image has another type or shape, there are none, or labels are missing.
    """
    pictures = [_as_colour(image) for image in images]
    if not pictures:
        raise ValueError("a row needs at least one image")
    if labels and len(labels) != len(pictures):
        raise ValueError(f"{len(pictures)} images have {len(labels)} labels")
    columns = pictures
    if labels:
        columns = [
            _above(image, _label(text)) for image, text in zip(pictures, labels, strict=True)
        ]
    row = _blank(
        max(column.shape[0] for column in columns),
        sum(column.shape[1] + _GAP for column in columns) - _GAP,
    )
    left = 0
    for column in columns:
        row[: column.shape[0], left : left + column.shape[1]] = column
        left += column.shape[1] + _GAP
    return row


def save_png(image: Tensor, path: Path) -> None:
    """Write an image atomically, so that no reader sees an incomplete one.

    Args:
        image: uint8 [height, width, 3], or [height, width, 1] for grey.
        path: The file; its folder is created if missing.

    Raises:
        UserError: The folder cannot be written to, or the disk is full.
    """
    # Pillow accepts grey images only without a last dimension.
    pixels = image.squeeze(2) if image.shape[2] == 1 else image
    picture = Image.fromarray(pixels.cpu().contiguous().numpy())
    with written_beside(path) as temporary:
        picture.save(temporary, format="PNG")


def _as_colour(image: Tensor) -> Tensor:
    """Convert an image [channels, height, width] to [height, width, 3]."""
    if image.ndim != 3 or image.shape[0] not in (1, 3) or 0 in image.shape:
        raise ValueError(f"an image must be [3 or 1, H, W], not {list(image.shape)}")
    if image.dtype != torch.uint8:
        # Floats from -1 to 1 would silently become black.
        raise ValueError(f"an image must be uint8, not {image.dtype}")
    return image.cpu().expand(3, -1, -1).permute(1, 2, 0)


def _blank(height: int, width: int) -> Tensor:
    return torch.full((height, width, 3), _WHITE, dtype=torch.uint8)


def _label(text: str) -> Tensor:
    """Draw a line of text in Pillow's built-in font, black on white."""
    # Pillow without FreeType only has a Latin-1 font, and raises on other characters.
    visible_text = " ".join(text.split()).encode("latin-1", "replace").decode("latin-1") or " "
    font = ImageFont.load_default()
    left, top, right, bottom = (round(edge) for edge in font.getbbox(visible_text))
    # The height of letters with ascenders and descenders, so that labels are aligned.
    line = round(font.getbbox("Ágjy|")[3])
    size = (max(right - left, 1) + 2 * _LABEL_MARGIN, max(line, bottom - top) + _LABEL_MARGIN)
    image = Image.new("RGB", size, (_WHITE, _WHITE, _WHITE))
    ImageDraw.Draw(image).text((_LABEL_MARGIN - left, 0), visible_text, fill=(0, 0, 0), font=font)
    return torch.from_numpy(np.array(image))


def _above(picture: Tensor, label: Tensor) -> Tensor:
    """Return an image with its label below, both centred in their column."""
    width = max(picture.shape[1], label.shape[1])
    column = _blank(picture.shape[0] + label.shape[0], width)
    for part, top in ((picture, 0), (label, picture.shape[0])):
        left = (width - part.shape[1]) // 2
        column[top : top + part.shape[0], left : left + part.shape[1]] = part
    return column
