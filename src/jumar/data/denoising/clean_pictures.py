"""Clean images as pixels: reads, decodes, converts to grey, scales and caches them."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jumar.data.denoising.picture_cache import PictureCache
from jumar.data.images.picture_tree import Pictures
from jumar.data.pixels.decode import DecodeError, decode_image
from jumar.data.pixels.resize import resize
from jumar.data.samples import CorruptRecord

Channels = Literal["colour", "grey"]
Pixels = NDArray[np.uint8]


class CleanPictures:
    """The images of a source as uint8 [height, width, 3 or 1], at one or several scales.

    For scales other than 1, images are resampled with bicubic weights between pixel centres (like
    OpenCV's `INTER_CUBIC` except for the cubic's parameter, and without widening the kernel), and
    rounded to integer levels. Grey is the luma of ITU-R BT.601, which leaves grey images unchanged.

    Args:
        pictures: The undecoded images.
        channels: `colour` for RGB or `grey`.
        scales: Sizes relative to the stored one.
        cache_bytes: Maximum size of the cache of decoded pixels, in bytes; 0 disables it.
    """

    def __init__(
        self,
        pictures: Pictures,
        channels: Channels,
        *,
        scales: tuple[float, ...] = (1.0,),
        cache_bytes: int = 0,
    ) -> None:
        self.pictures = pictures
        self.channels = channels
        self.scales = scales
        self._cache = PictureCache(len(pictures) * len(scales), cache_bytes)

    def __len__(self) -> int:
        return len(self.pictures)

    def read(self, index: int, scale: int = 0) -> Pixels:
        """Return the pixels of an image, which must not be modified.

        Args:
            index: The image's index.
            scale: Position in `scales`.

        Raises:
            CorruptRecord: The image cannot be read or decoded.
        """
        cache_index = index * len(self.scales) + scale
        cached = self._cache.get(cache_index)
        if cached is not None:
            return cached
        pixels = self._decoded(index)
        if self.scales[scale] != 1:
            pixels = _scaled(pixels, self.scales[scale])
        self._cache.put(cache_index, pixels)
        return pixels

    def _decoded(self, index: int) -> Pixels:
        record = self.pictures.read(index)
        try:
            pixels = decode_image(record.encoded, fast=False)
        except DecodeError as error:
            raise CorruptRecord(record.origin, error) from error
        return pixels if self.channels == "colour" else grey(pixels)


def grey(pixels: Pixels) -> Pixels:
    """Return the luma [height, width, 1] of RGB pixels [height, width, 3]."""
    return np.array(Image.fromarray(pixels).convert("L"))[..., None]


def _scaled(pixels: Pixels, scale: float) -> Pixels:
    size = (max(1, int(pixels.shape[0] * scale)), max(1, int(pixels.shape[1] * scale)))
    values = resize(pixels, size, method="bicubic", coordinates="half_pixel")
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
