"""Pictures into files: whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jumar.errors import UserError
from jumar.paths import unwritable

WRITTEN_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
_QUALITY = 95
_FORMATS = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG", ".bmp": "BMP", ".webp": "WEBP"}


def write_picture(pixels: NDArray[np.uint8], path: Path) -> None:
    """Write a picture beside its place and rename it, so that no reader sees half of one.

    Args:
        pixels: [height, width, 3] for RGB or [height, width] for grey.
        path: The file; its ending decides the format (JPEG with quality 95, WebP without loss),
            and its folder is made where it is missing.

    Raises:
        UserError: The ending is none of `WRITTEN_SUFFIXES`, the folder cannot be written to, or
            the disk is full.
    """
    kind = _FORMATS.get(path.suffix.lower())
    if kind is None:
        raise UserError(
            f"pictures are not written as '{path.suffix}'",
            where=str(path),
            todo=f"Known: {', '.join(WRITTEN_SUFFIXES)}.",
        )
    options = {"JPEG": {"quality": _QUALITY}, "WEBP": {"lossless": True}}.get(kind, {})
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(beside, format=kind, **options)
        beside.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with suppress(OSError):
            beside.unlink()
