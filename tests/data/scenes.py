"""Images with structure and colour, and a source that holds them in memory."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jumar.data.samples import CorruptRecord, Record


def scene(height: int, width: int, seed: int = 0) -> NDArray[np.uint8]:
    """Smooth colours and some edges, uint8 [height, width, 3]."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    waves = [
        np.sin(y / random.uniform(6, 30) + random.uniform(0, 6))
        + np.cos(x / random.uniform(6, 30) + random.uniform(0, 6))
        for _ in range(3)
    ]
    pixels = 127 + 55 * np.stack(waves, axis=-1)
    pixels[height // 3 : height // 2, width // 4 : width // 2] = random.integers(0, 256, 3)
    return np.clip(pixels, 0, 255).astype(np.uint8)


def encode(pixels: NDArray[Any], kind: str = "JPEG", **save: Any) -> bytes:
    """A file with these pixels."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **save)
    return buffer.getvalue()


def jpeg(height: int = 40, width: int = 50, seed: int = 0, **save: Any) -> bytes:
    """A JPEG scene."""
    return encode(scene(height, width, seed), quality=90, **save)


class MemorySource:
    """An image source of encoded images; None is a record that cannot be read."""

    def __init__(
        self,
        encoded: Sequence[bytes | None],
        labels: Sequence[int] | None = None,
        classes: Sequence[str] = (),
    ) -> None:
        self.classes = classes
        self._encoded = encoded
        self._labels = labels if labels is not None else [0] * len(encoded)

    def __len__(self) -> int:
        return len(self._encoded)

    def read(self, index: int) -> Record:
        origin = f"memory, entry {index}"
        encoded = self._encoded[index]
        if encoded is None:
            raise CorruptRecord(origin, "the checksum is wrong")
        return Record(encoded=encoded, label=self._labels[index], origin=origin)
