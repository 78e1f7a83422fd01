"""Small real images of every kind that a data set may hold, and folders and zips of them."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def picture(
    mode: str = "RGB", kind: str = "JPEG", size: tuple[int, int] = (12, 8), **save: Any
) -> bytes:
    """An encoded image of some colours, `size` wide and high."""
    width, height = size
    pixels = np.add.outer(np.arange(height) * 9, np.arange(width) * 13).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert("RGB").convert(mode).save(buffer, kind, **save)
    return buffer.getvalue()


def turned() -> bytes:
    """A JPEG that is rotated by its EXIF data."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return picture(exif=exif)


MIXED = {
    "grey.jpg": picture("L"),
    "cmyk.jpeg": picture("CMYK"),
    "turned.JPG": turned(),
    "transparent.png": picture("RGBA", "PNG"),
    "palette.PNG": picture("P", "PNG"),
    "bitmap.bmp": picture("RGB", "BMP"),
    "web.webp": picture("RGB", "WEBP"),
}


def write_files(root: Path, files: Mapping[str, bytes]) -> Path:
    """Files by their path below a folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def write_zip(path: Path, files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    """A zip with the files; a name that ends in / is a folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def pets(count: int = 2) -> dict[str, bytes]:
    """Two classes of `count` different images each."""
    return {
        f"{name}/{number}.jpg": picture(size=(8 + number, 4 + len(name)))
        for name in ("cat", "horse")
        for number in range(count)
    }
