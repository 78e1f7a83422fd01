"""A data source that sends its own process a Ctrl-C, as a person does in the middle of scoring.

With a file `stop` in the working folder, when as many images are read as the file says.
"""

import os
import signal
from pathlib import Path

from jumar.data.images.digits import DigitImages, open_digits
from jumar.data.images.sources import Split, register_source
from jumar.data.samples import Record

STOP = "stop"


class StoppingImages:
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
        if Path(STOP).exists() and self._read == int(Path(STOP).read_text()):
            os.kill(os.getpid(), signal.SIGINT)
        return self._images.read(index)


def open_stopping(split: Split) -> StoppingImages:
    """One part of the digits."""
    return StoppingImages(open_digits(split))


register_source("stopping", open_stopping)
