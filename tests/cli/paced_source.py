"""The digits, read as slowly as the environment says, so that a run outlasts what happens to it."""

import os
import time

from jumar.data.images.digits import DigitImages, open_digits
from jumar.data.images.sources import Split, register_source
from jumar.data.samples import Record

PACE = "SECONDS_A_SAMPLE"


class PacedImages:
    """The digits."""

    def __init__(self, images: DigitImages) -> None:
        self._images = images
        self._pause_s = float(os.environ.get(PACE, "0"))
        self.classes = images.classes

    def __len__(self) -> int:
        return len(self._images)

    def read(self, index: int) -> Record:
        """One digit."""
        time.sleep(self._pause_s)
        return self._images.read(index)


def open_paced(split: Split) -> PacedImages:
    """One part of the digits."""
    return PacedImages(open_digits(split))


register_source("paced", open_paced)
"""What `data.path` is called."""
