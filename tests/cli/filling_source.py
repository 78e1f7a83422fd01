"""A data source that fills the disk of FILLED_FOLDER when its 13th image is read.

With batches of four and no workers that is after the third step. Where AWAITED_CHECKPOINTS
names a folder, the disk is filled only once that folder holds the second and third step's
checkpoints alone: one that is deleted after the filling would leave room for the next.
"""

import os
import time
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
            if "AWAITED_CHECKPOINTS" in os.environ:
                await_checkpoints(Path(os.environ["AWAITED_CHECKPOINTS"]), (2, 3))
            fill(Path(os.environ["FILLED_FOLDER"]))
        return self._images.read(index)


def await_checkpoints(folder: Path, steps: tuple[int, ...]) -> None:
    """Wait until the folder holds the checkpoints of these steps and nothing else."""
    awaited = {f"step-{step:08d}" for step in steps}
    deadline = time.monotonic() + 60
    while {path.name for path in folder.iterdir()} != awaited:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{sorted(folder.iterdir())} in {folder}")
        time.sleep(0.005)


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
