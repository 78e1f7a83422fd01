"""Images embedded in a page, small enough that twelve of them stay below 3 MB."""

import base64
import io
import warnings
from pathlib import Path

from PIL import Image

from jumar.report.content import EmbeddedImage

MAX_BYTES = 180_000
_MAX_WIDTH, _MAX_HEIGHT = 1200, 2400
_SMALL_WIDTH = 256
"""Pixels; narrower images are enlarged by an integer factor, with square pixels."""


def embedded_image(path: Path) -> EmbeddedImage | None:
    """Embed a PNG file, unchanged if it is small, otherwise scaled down and as JPEG.

    Returns None for a file that is missing or damaged, or that would exhaust memory.
    """
    try:
        with warnings.catch_warnings():
            # Pillow only warns about a small file that expands to gigabytes.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            content = path.read_bytes()
            with Image.open(io.BytesIO(content), formats=("PNG",)) as image:
                image.load()
                picture = image.convert("RGB")
    except Exception:
        # A damaged file can make Pillow raise almost anything.
        return None
    media_type = "image/png"
    if len(content) > MAX_BYTES or picture.width > _MAX_WIDTH or picture.height > _MAX_HEIGHT:
        picture.thumbnail((_MAX_WIDTH, _MAX_HEIGHT), Image.Resampling.LANCZOS)
        content, media_type = _as_jpeg(picture), "image/jpeg"
    enlargement = max(1, _SMALL_WIDTH // picture.width)
    return EmbeddedImage(
        source=f"data:{media_type};base64,{base64.b64encode(content).decode('ascii')}",
        width=picture.width * enlargement,
        height=picture.height * enlargement,
        enlarged=enlargement > 1,
    )


def _as_jpeg(picture: Image.Image) -> bytes:
    """Encode with the best quality, then the largest size, that fits; without chroma subsampling.

    Early, noisy images need more bytes than later ones: the page shows both at the same size,
    whatever the number of pixels in the file.
    """
    while True:
        for quality in (92, 85, 75):
            file = io.BytesIO()
            picture.save(file, format="JPEG", quality=quality, subsampling=0)
            if file.tell() <= MAX_BYTES or max(picture.size) <= 64:
                return file.getvalue()
        smaller = (max(1, picture.width * 3 // 4), max(1, picture.height * 3 // 4))
        picture = picture.resize(smaller, Image.Resampling.LANCZOS)
