"""Image source: class folders on the disk."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jumar.data.images.class_folders import ClassListing
from jumar.data.records.offset_files import read_whole
from jumar.data.samples import CorruptRecord, Record


class ImageFolder:
    """Images in class folders; the label of an image is the position of its class.

    Attributes:
        classes: Names of the class folders in label order.
    """

    def __init__(self, root: Path, listing: ClassListing) -> None:
        self._root = str(root)
        self._listing = listing
        self.classes: Sequence[str] = listing.classes

    def __len__(self) -> int:
        return len(self._listing.labels)

    @property
    def fingerprint(self) -> str:
        """Of the images' paths and labels; see `Fingerprinted`."""
        return self._listing.fingerprint

    @property
    def labels(self) -> NDArray[np.int32]:
        """The label of each image; see `Listed`."""
        return self._listing.labels

    def key(self, index: int) -> str:
        """The path of an image below the class folders; see `Listed`."""
        return self._listing.key(index)

    def read(self, index: int) -> Record:
        """One image's bytes from the disk.

        Raises:
            CorruptRecord: The file cannot be read, is empty, or is too large for an image.
        """
        path = f"{self._root}/{self._listing.paths[index]}"
        try:
            encoded = read_whole(Path(path))
        except (OSError, ValueError) as error:
            raise CorruptRecord(path, error) from error
        if not encoded:
            raise CorruptRecord(path, "the file is empty")
        return Record(encoded=encoded, label=int(self._listing.labels[index]), origin=path)
