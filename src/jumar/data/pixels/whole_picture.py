"""Decodes images with transparency, 16-bit levels, colour profile and EXIF data.

Training uses images from `decode_image`. Commands that return an image to the user keep these
features, or report which are lost.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jumar.data.pixels.decode import DecodeError, EncodedImage, opened, upright

Levels = NDArray[np.uint8 | np.uint16]

_ORIENTATION = 0x0112
_DEEP_COLOURS = {"RGB;16B", "RGB;16L", "RGB;16N", "RGBA;16B", "RGBA;16L", "RGBA;16N"}
"""Pillow's names of 16-bit RGB(A) modes, of which it reads only the high bytes."""
_WITH_ALPHA = ("RGBA", "LA", "PA", "La", "RGBa")


@dataclass(frozen=True, kw_only=True)
class WholePicture:
    """A decoded image, upright.

    Attributes:
        pixels: RGB [height, width, 3] or grey [height, width]; uint8, or uint16 for 16 bits.
        alpha: Opacity, [height, width] of the same dtype; None if all pixels are opaque.
        profile: ICC colour profile of the pixels; may be empty.
        exif: EXIF data without the orientation, which has been applied; may be empty.
        lost: Descriptions of features of the file that this image lacks.
    """

    pixels: Levels
    alpha: Levels | None = None
    profile: bytes = b""
    exif: bytes = b""
    lost: tuple[str, ...] = ()

    def with_pixels(self, pixels: Levels) -> "WholePicture":
        """Return a copy with other pixels of the same size, without a profile that does not fit."""
        if self.profile and profile_is_grey(self.profile) != (pixels.ndim == 2):
            kind = "grey levels" if pixels.ndim == 3 else "colours"
            lost = (*self.lost, f"the colour profile (for {kind})")
            return replace(self, pixels=pixels, profile=b"", lost=lost)
        return replace(self, pixels=pixels)


def decode_whole(encoded: bytes) -> WholePicture:
    """Decode an image to RGB, with its transparency, depth, profile and EXIF data.

    If there are several frames or pages, the first one is used.

    Args:
        encoded: The bytes of the file.

    Raises:
        DecodeError: The image is damaged, too large or of an unsupported kind.
    """
    picture = EncodedImage(encoded)
    alpha: Levels | None = None
    try:
        with opened(encoded) as image:
            lost = [pages] if (pages := pages_of(image)) else []
            exif = _exif_without_orientation(image)
            profile = image.info.get("icc_profile") or b""
            is_cmyk = image.mode == "CMYK"
            # Read first, since Pillow discards them when it loads the pixels.
            raw_modes = set(_raw_modes(image))
            deep = _deep_values(image, raw_modes, encoded)
            if deep is None:
                alpha = _alpha(image)
                lost += ["8 of 16 bits"] if any(";16" in name for name in raw_modes) else []
            else:
                lost += ["the transparent colour"] if "transparency" in image.info else []
    except DecodeError:
        raise
    except Exception as error:
        raise DecodeError(str(error) or type(error).__name__) from error
    if is_cmyk:
        lost.append("CMYK (converted to RGB) and its colour profile")
        profile = b""
    if deep is None:
        pixels: Levels = picture.decode(fast=False)
    else:
        pixels = upright(deep[..., :3], picture.orientation)
        alpha = deep[..., 3] if deep.shape[2] == 4 else None
    if alpha is not None:
        alpha = upright(alpha, picture.orientation)
    return WholePicture(pixels=pixels, alpha=alpha, profile=profile, exif=exif, lost=tuple(lost))


def pages_left_out(encoded: bytes) -> str:
    """Describe the unused frames or pages of a file; empty if there are none."""
    try:
        with opened(encoded) as image:
            return pages_of(image)
    except Exception:  # decoding the image will report the error
        return ""


def pages_of(image: Image.Image) -> str:
    """Describe the frames or pages after the first one; empty if there is only one."""
    count = int(getattr(image, "n_frames", 1))
    if count == 1:
        return ""
    kind = "page" if image.format == "TIFF" else "frame"
    return f"{count - 1} of {count} {kind}s" if count > 2 else f"the second {kind}"


def profile_is_grey(profile: bytes) -> bool:
    """Return whether a colour profile is for grey levels, according to its header."""
    return profile[16:20] == b"GRAY"


def _raw_modes(image: Any) -> Iterator[str]:
    """Yield Pillow's raw modes, which describe how the file stores its levels."""
    for tile in image.tile:
        arguments: Any = tile[3]
        yield str(arguments if isinstance(arguments, str) else arguments[0])


def _deep_values(
    image: Image.Image, raw_modes: set[str], encoded: bytes
) -> NDArray[np.uint16] | None:
    """Return 16-bit pixels as stored, uint16 [height, width, 3 or 4]; None for other files.

    Pillow has no mode for 16-bit colours and reads the high bytes. With the opposite byte order, it
    reads the low bytes.
    """
    if image.mode.startswith("I"):
        values = np.asarray(image)
        if values.size and (values.min() < 0 or values.max() > 0xFFFF):
            raise DecodeError("32-bit integer pixels are not supported")
        return np.repeat(values.astype(np.uint16)[:, :, None], 3, axis=2)
    if len(raw_modes) != 1 or not raw_modes <= _DEEP_COLOURS:
        return None
    high = np.asarray(image, dtype=np.uint16)
    with opened(encoded) as low_image:
        _swap_bytes(low_image)
        low = np.asarray(low_image, dtype=np.uint16)
    return (high << 8 | low).astype(np.uint16, copy=False)


def _swap_bytes(image: Any) -> None:
    native = "L" if sys.byteorder == "little" else "B"
    swapped: list[Any] = []
    for codec, extents, offset, arguments in image.tile:
        name = arguments if isinstance(arguments, str) else arguments[0]
        order = name[-1] if name[-1] != "N" else native
        other_mode = name[:-1] + ("B" if order == "L" else "L")
        new_arguments = other_mode if isinstance(arguments, str) else (other_mode, *arguments[1:])
        swapped.append(type(image.tile[0])(codec, extents, offset, new_arguments))
    image.tile = swapped


def _alpha(image: Image.Image) -> NDArray[np.uint8] | None:
    if image.mode not in _WITH_ALPHA and "transparency" not in image.info:
        return None
    return np.array(image.convert("RGBA").getchannel("A"))


def _exif_without_orientation(image: Image.Image) -> bytes:
    """Return the EXIF data of a JPEG, PNG or WebP; a TIFF's tags only describe its storage."""
    encoded = image.info.get("exif")
    if not encoded or image.format == "TIFF":
        return b""
    try:
        tags = Image.Exif()
        tags.load(encoded)
        tags.pop(_ORIENTATION, None)
        return tags.tobytes()
    except Exception:  # damaged, so there is nothing to keep
        return b""
