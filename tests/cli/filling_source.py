"""A data source that fills the disk of FILLED_FOLDER when its 13th picture is read.

With batches of four and no workers that is after the third step.
"""

import os
from pathlib import Path

from jumar.data.images.digits import DigitImages, open_digits
from jumar.data.images.sources import Split, register_source
from jumar.data.samples import Record

FILLS_AT = 13


class FillingImages:
    """The digits."""

    def __init__(self, images: DigitImages) -> None:
        self._images = images
        self._read = 0
        self.classes = images.classes

    def __len__(self) -> int:
        return len(self._images)

    def read(self, index: int) -> Record:
        """One digit."""
        self._read += 1
        if self._read == FILLS_AT:
            fill(Path(os.environ["FILLED_FOLDER"]))
        return self._images.read(index)


def fill(folder: Path) -> None:
    """Write until nothing more fits."""
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def open_filling(split: Split) -> FillingImages:
    """One part of the digits."""
    return FillingImages(open_digits(split))


register_source("filling", open_filling)
