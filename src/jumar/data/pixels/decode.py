"""Decodes images to RGB pixels.

JPEG files are decoded by libjpeg-turbo (simplejpeg), all others by Pillow. The fast setting is
libjpeg's fast integer DCT without smooth chroma upsampling, which the original AlexNet and
ResNeXt-50 scripts use in TensorFlow, in training and in evaluation: pixels are identical. The
accurate setting equals Pillow and TensorFlow's `INTEGER_ACCURATE`.

Unlike `tf.image.decode_jpeg`, the EXIF orientation is applied, so that photographs are upright.
"""

import io
import threading
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image

MAX_PIXELS = 89_000_000
"""Maximum size of an image, just below the limit at which Pillow warns. The header is checked
before memory is allocated, so a file of a few bytes cannot cause an allocation of gigabytes."""

_FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""Formats that Pillow may open; not EPS, which Pillow passes to Ghostscript, an interpreter."""

_ORIENTATION, _TILE_WIDTH, _TILE_HEIGHT = 0x0112, 0x0142, 0x0143
_SOI, _SOS, _APP1, _APP14 = 0xD8, 0xDA, 0xE1, 0xEE

_thread = threading.local()


class DecodeError(ValueError):
    """The bytes cannot be decoded as an image; the message states the reason."""


class EncodedImage:
    """An image whose header has been read, but not its pixels.

    Args:
        encoded: The bytes of a JPEG, PNG, BMP, GIF (first frame), WebP, TIFF or PPM file.

    Attributes:
        height: Rows as displayed, with the EXIF orientation applied.
        width: Columns as displayed.
        orientation: EXIF orientation, 1 to 8, by which to rotate the stored pixels for display.

    Raises:
        DecodeError: The header cannot be read, or the image is larger than `MAX_PIXELS`.
    """

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded
        self.orientation = 1
        self._colorspace = ""
        self._adobe = False
        if not encoded:
            raise DecodeError("the file is empty")
        stored_size = self._read_jpeg_header() or self._read_header()
        is_rotated = self.orientation >= 5
        self.height, self.width = stored_size[::-1] if is_rotated else stored_size

    def decode(
        self, *, fast: bool, at_least: tuple[int, int] | None = None, reuse: bool = False
    ) -> NDArray[np.uint8]:
        """Decode the pixels as uint8 [height, width, 3], RGB; like TensorFlow, drop transparency.

        Args:
            fast: Whether to use fast DCT and chroma upsampling (JPEG only).
            at_least: Allow libjpeg to decode to half, a quarter or an eighth of the size, but not
                below this (height, width). This is much faster than decoding and shrinking.
            reuse: Whether to use a buffer that the next call with `reuse` in this thread
                overwrites. Page faults of new memory take a third of the decoding time.

        Raises:
            DecodeError: The data is damaged or of an unsupported kind.
        """
        if self._colorspace:
            try:
                pixels = self._decode_jpeg(fast, at_least, reuse)
            except Exception:
                # Strict decoding also rejects files with a few stray bytes, which every viewer
                # and TensorFlow accept; Pillow does too, but rejects truncated files.
                pixels = self._decode_any()
        else:
            pixels = self._decode_any()
        return upright(pixels, self.orientation)

    def _read_jpeg_header(self) -> tuple[int, int] | None:
        if not self._encoded.startswith(b"\xff\xd8"):
            return None
        try:
            height, width, colorspace, _ = simplejpeg.decode_jpeg_header(self._encoded)
        except Exception:  # documented as ValueError; for damaged files also KeyError
            return None
        self._colorspace = colorspace
        for marker, start, end in _jpeg_segments(self._encoded):
            if marker == _APP14 and self._encoded.startswith(b"Adobe", start):
                self._adobe = True
            elif marker == _APP1 and self._encoded.startswith(b"Exif\0\0", start):
                self.orientation = _orientation(self._encoded[start:end])
        height, width = int(height), int(width)
        _check_size(height, width)
        return height, width

    def _read_header(self) -> tuple[int, int]:
        try:
            with opened(self._encoded) as image:
                # Checked first, because Pillow loads the pixels of a PNG to find its EXIF data.
                _check_size(image.height, image.width)
                if image.format == "TIFF":
                    # Pillow rotates a TIFF itself when it loads the pixels, and then drops the tag.
                    _check_size(*_tile_of(image))
                    image.load()
                self.orientation = _valid_orientation(image.getexif().get(_ORIENTATION))
                return image.height, image.width
        except MemoryError:
            raise  # not the image's fault, so it must not be skipped
        except Exception as error:
            raise DecodeError(reason_of(error)) from error

    def _decode_jpeg(
        self, fast: bool, at_least: tuple[int, int] | None, reuse: bool
    ) -> NDArray[np.uint8]:
        is_cmyk = self._colorspace in ("CMYK", "YCCK")
        if is_cmyk and not self._adobe:
            raise ValueError("four-colour JPEG without an Adobe marker")
        scaling: dict[str, Any] = {}
        if at_least is not None:
            minimum_size = at_least[::-1] if self.orientation >= 5 else at_least
            # Factors between 1 and 2 have no SIMD code and take longer than the whole image.
            scaling = {"min_height": minimum_size[0], "min_width": minimum_size[1], "min_factor": 2}
        buffer = None
        if reuse:
            buffer = _buffer(self.height * self.width * (4 if is_cmyk else 3))
        pixels = simplejpeg.decode_jpeg(
            self._encoded,
            colorspace="CMYK" if is_cmyk else "RGB",
            fastdct=fast,
            fastupsample=fast,
            buffer=buffer,
            **scaling,
        )
        return _from_inverted_inks(pixels) if is_cmyk else pixels

    def _decode_any(self) -> NDArray[np.uint8]:
        try:
            with opened(self._encoded) as image:
                return _rgb(image)
        except MemoryError:
            raise  # not the image's fault, so it must not be skipped
        except Exception as error:
            raise DecodeError(reason_of(error)) from error


def decode_image(encoded: bytes, *, fast: bool) -> NDArray[np.uint8]:
    """Decode an image to uint8 [height, width, 3], RGB, upright.

    Args:
        encoded: The bytes of the file.
        fast: Whether to use fast DCT and chroma upsampling, which change JPEG pixels by 1.8 levels
            on average.

    Raises:
        DecodeError: The image is damaged, too large or of an unsupported kind.
    """
    return EncodedImage(encoded).decode(fast=fast)


def check_decodable(encoded: bytes) -> None:
    """Decode all of an image to check it, a JPEG only to an eighth of its size: half of the time.

    Args:
        encoded: The bytes of the file.

    Raises:
        DecodeError: The image is damaged, truncated, too large or of an unsupported kind.
    """
    EncodedImage(encoded).decode(fast=True, at_least=(1, 1), reuse=True)


@contextmanager
def opened(encoded: bytes) -> Generator[Image.Image, None, None]:
    """Open an image of a supported format with Pillow, without loading its pixels."""
    with warnings.catch_warnings():
        # The size is checked here; warnings about damaged metadata would be repeated every epoch.
        warnings.simplefilter("ignore")
        with Image.open(io.BytesIO(encoded), formats=_FORMATS) as image:
            yield image


def _check_size(height: int, width: int) -> None:
    if height * width > MAX_PIXELS:
        raise DecodeError(f"{width} x {height} pixels are more than the {MAX_PIXELS:,} allowed")


def _tile_of(image: Image.Image) -> tuple[int, int]:
    """Return height and width of a TIFF's tiles: a small image may declare tiles of gigabytes."""
    tags: Any = image.getexif()
    sides = [tags.get(tag) for tag in (_TILE_HEIGHT, _TILE_WIDTH)]
    return tuple(side if isinstance(side, int) else 0 for side in sides)  # pyright: ignore[reportReturnType]


def _rgb(image: Image.Image) -> NDArray[np.uint8]:
    if image.mode == "F":
        raise ValueError("floating-point pixels have no standard range; convert to 8 bits first")
    if image.mode.startswith("I"):
        # Pillow would clip 16-bit values to 255; TensorFlow keeps the high byte.
        values = np.asarray(image)
        if values.size and (values.min() < 0 or values.max() > 0xFFFF):
            raise ValueError("32-bit integer pixels are not supported")
        grey = (values >> 8).astype(np.uint8)
        return np.repeat(grey[:, :, None], 3, axis=2)
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    return np.array(image if image.mode == "RGB" else image.convert("RGB"))


def _from_inverted_inks(inks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Convert an Adobe JPEG's CMYK, where 255 is no ink, to RGB; divides like TensorFlow."""
    wide = inks.astype(np.uint16)
    return (wide[..., :3] * wide[..., 3:] // 255).astype(np.uint8)


def upright(pixels: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Rotate and mirror pixels [height, width, ...] by an EXIF orientation (1 to 8)."""
    if orientation == 1:
        return pixels
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)  # torch does not support negative strides


def _jpeg_segments(encoded: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield (marker, start of the payload, end) of each segment before the pixel data."""
    position = 2
    while position + 4 <= len(encoded) and encoded[position] == 0xFF:
        marker = encoded[position + 1]
        if marker == 0xFF:
            position += 1
            continue
        if marker in (_SOI, _SOS):
            return
        length = int.from_bytes(encoded[position + 2 : position + 4], "big")
        yield marker, position + 4, position + 2 + length
        position += 2 + length


def _orientation(exif: bytes) -> int:
    tags = Image.Exif()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tags.load(exif)
            return _valid_orientation(tags.get(_ORIENTATION))
    except Exception:  # the pixels may be intact even if this block is damaged
        return 1


def _valid_orientation(value: object) -> int:
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _buffer(size: int) -> NDArray[np.uint8]:
    buffer: NDArray[np.uint8] | None = getattr(_thread, "buffer", None)
    if buffer is None or buffer.size < size:
        buffer = np.empty(size, np.uint8)
        _thread.buffer = buffer
    return buffer


def reason_of(error: Exception) -> str:
    """Return Pillow's message for a damaged image, without Python objects in it."""
    text = str(error) or type(error).__name__
    return "not an image of a known format" if "cannot identify image file" in text else text
