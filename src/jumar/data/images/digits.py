"""Image source: the handwritten digits included in scikit-learn, so nothing is downloaded.

1797 grey images of 8 x 8 pixels from 13 writers. Source: E. Alpaydin, C. Kaynak, Optical
Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998 (its test part).
"""

import gzip
import io
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jumar.data.samples import Record, fingerprint

EVAL_EVERY = 6
"""Every sixth image of each digit is for evaluation: about 300 of 1797."""


class DigitImages:
    """One part of the digits, each image a PNG of 8 x 8 grey pixels.

    Attributes:
        classes: `0` to `9`.
    """

    classes: Sequence[str] = tuple("0123456789")

    def __init__(self, encoded: Sequence[bytes], labels: Sequence[int], where: Sequence[int]):
        self._encoded = tuple(encoded)
        self._labels = tuple(labels)
        self._where = tuple(where)

    def __len__(self) -> int:
        return len(self._encoded)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the images themselves; see `Fingerprinted`."""
        return fingerprint(*self._encoded)

    def read(self, index: int) -> Record:
        """Return one image by its position in this part."""
        return Record(
            encoded=self._encoded[index],
            label=self._labels[index],
            origin=f"digits, image {self._where[index]}",
        )


def open_digits(split: Literal["train", "eval"]) -> DigitImages:
    """Return the digits of one part; the split is fixed, and equal for all classes."""
    rows = _rows()
    images: NDArray[np.uint8] = np.rint(rows[:, :-1].reshape(-1, 8, 8) * (255 / 16)).astype(
        np.uint8
    )
    labels = [int(target) for target in rows[:, -1]]
    label_counts = [0] * 10
    indices: list[int] = []
    for index, label in enumerate(labels):
        label_counts[label] += 1
        if (label_counts[label] % EVAL_EVERY == 0) == (split == "eval"):
            indices.append(index)
    return DigitImages(
        encoded=[_png(images[index]) for index in indices],
        labels=[labels[index] for index in indices],
        where=indices,
    )


def _rows() -> NDArray[np.float64]:
    """Return one row per image: 64 pixels from 0 to 16, and the digit.

    `sklearn.datasets.load_digits` reads the same file, but importing it takes half as long as a
    run of a few steps.

    Raises:
        ModuleNotFoundError: scikit-learn is not installed.
    """
    package = find_spec("sklearn")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
    file = Path(package.submodule_search_locations[0], "datasets", "data", "digits.csv.gz")
    with gzip.open(file, "rt", encoding="ascii") as lines:
        return np.loadtxt(lines, delimiter=",")


def _png(pixels: NDArray[np.uint8]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()
