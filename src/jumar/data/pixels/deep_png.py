"""Encodes 16-bit PNG files, which Pillow can write only for grey images.

Source: Portable Network Graphics (PNG) Specification, W3C, second edition.
"""

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOUR_TYPES = {1: 0, 3: 2, 2: 4, 4: 6}
"""PNG's colour type by number of channels: grey, RGB, grey with alpha, RGB with alpha."""
_UP = 2


def encode_deep_png(
    levels: NDArray[np.uint16], *, profile: bytes = b"", exif: bytes = b""
) -> bytes:
    """Encode an image as a 16-bit PNG file.

    Args:
        levels: [height, width, channels] with 1 to 4 channels, the alpha channel last.
        profile: ICC colour profile; may be empty.
        exif: EXIF data, with or without the header used in JPEG files; may be empty.
    """
    height, width, channels = levels.shape
    head = struct.pack(">IIBBBBB", width, height, 16, _COLOUR_TYPES[channels], 0, 0, 0)
    rows = levels.astype(">u2").view(np.uint8).reshape(height, -1)
    # Neighbouring rows are similar, so differences from the row above compress better.
    above = np.concatenate([np.zeros_like(rows[:1]), rows[:-1]])
    filtered = np.concatenate([np.full((height, 1), _UP, np.uint8), rows - above], axis=1)
    chunks = [_chunk(b"IHDR", head)]
    if profile:
        chunks.append(_chunk(b"iCCP", b"ICC Profile\0\0" + zlib.compress(profile)))
    if exif:
        chunks.append(_chunk(b"eXIf", exif.removeprefix(b"Exif\0\0")))
    chunks += [_chunk(b"IDAT", zlib.compress(filtered.tobytes(), 6)), _chunk(b"IEND", b"")]
    return _SIGNATURE + b"".join(chunks)


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)
