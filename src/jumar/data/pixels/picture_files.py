"""Writes images to files, completely or not at all."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jumar.data.pixels.deep_png import encode_deep_png
from jumar.data.pixels.whole_picture import Levels, WholePicture
from jumar.ground.errors import UserError
from jumar.ground.files import written_beside

WRITTEN_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
_QUALITY = 95
_FORMATS = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG", ".bmp": "BMP", ".webp": "WEBP"}


_ALPHA = ("PNG", "WEBP")
_PROFILE_AND_EXIF = ("JPEG", "PNG", "WEBP")


def not_kept_in(picture: WholePicture, path: Path) -> list[str]:
    """Describe the features of an image that a file of this type cannot store."""
    kind = _format_of(path)
    lost_features: list[str] = []
    if picture.pixels.dtype != np.uint8 and kind != "PNG":
        lost_features.append(f"8 of 16 bits ({kind} has no more)")
    if picture.alpha is not None and kind not in _ALPHA:
        lost_features.append(f"transparency ({kind} has none)")
    if kind not in _PROFILE_AND_EXIF:
        lost_features += [f"the colour profile ({kind} has none)"] if picture.profile else []
        lost_features += [f"the EXIF data ({kind} has none)"] if picture.exif else []
    return lost_features


def write_picture(picture: WholePicture | Levels, path: Path) -> None:
    """Write an image atomically, so that no reader sees an incomplete one.

    Args:
        picture: An image, stored as far as the format allows (see `not_kept_in`), or only pixels.
        path: The file; its suffix determines the format (JPEG with quality 95, lossless WebP), and
            its folder is created if missing.

    Raises:
        UserError: The suffix is not one of `WRITTEN_SUFFIXES`, the folder cannot be written to, or
            the disk is full.
    """
    if not isinstance(picture, WholePicture):
        picture = WholePicture(pixels=picture)
    kind = _format_of(path)
    with written_beside(path) as temporary:
        _save(picture, temporary, kind)


def _format_of(path: Path) -> str:
    kind = _FORMATS.get(path.suffix.lower())
    if kind is None:
        raise UserError(
            f"images cannot be written as '{path.suffix}'",
            where=str(path),
            todo=f"Known: {', '.join(WRITTEN_SUFFIXES)}.",
        )
    return kind


def _save(picture: WholePicture, path: Path, kind: str) -> None:
    levels: NDArray[Any] = picture.pixels
    if levels.ndim == 2:
        levels = levels[..., None]
    if picture.alpha is not None and kind in _ALPHA:
        levels = np.concatenate([levels, picture.alpha[..., None]], axis=2)
    if levels.dtype == np.uint16 and kind == "PNG":
        path.write_bytes(encode_deep_png(levels, profile=picture.profile, exif=picture.exif))
        return
    pixels = _eight_bits(levels)
    options: dict[str, Any] = {"JPEG": {"quality": _QUALITY}, "WEBP": {"lossless": True}}.get(
        kind, {}
    )
    if kind == "WEBP" and picture.alpha is not None:
        options["exact"] = True  # transparent pixels keep their colour too
    if kind in _PROFILE_AND_EXIF:
        if picture.profile:
            options["icc_profile"] = picture.profile
        if picture.exif:
            options["exif"] = picture.exif
    image = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    image.save(path, format=kind, **options)


def _eight_bits(levels: NDArray[Any]) -> NDArray[np.uint8]:
    if levels.dtype == np.uint8:
        return levels
    return np.rint(levels / 257).astype(np.uint8)
