"""Small clean images for denoising, opened as a recipe opens them."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from jumar.data.denoising.clean_pictures import Channels, CleanPictures
from jumar.data.images.picture_tree import open_all_pictures


def scene(height: int = 40, width: int = 56, seed: int = 1) -> np.ndarray:
    """Smooth colours [height, width, 3], different at every place."""
    coarse = np.random.default_rng(seed).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BILINEAR))


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def photographs(
    folder: Path,
    *scenes: np.ndarray,
    channels: Channels = "colour",
    scales: tuple[float, ...] = (1.0,),
    cache_bytes: int = 2**20,
) -> CleanPictures:
    """Scenes as PNG files 0.png, 1.png and so on, opened."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, pixels in enumerate(scenes):
        (folder / f"{number}.png").write_bytes(png(pixels))
    pictures = open_all_pictures(folder)
    return CleanPictures(pictures, channels, scales=scales, cache_bytes=cache_bytes)
