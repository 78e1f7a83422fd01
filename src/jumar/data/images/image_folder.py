"""Image source: class folders on disk."""

from pathlib import Path

from jumar.data.images.class_folders import ClassListing, ListedImages
from jumar.data.records.offset_files import read_whole
from jumar.data.samples import CorruptRecord, Record


class ImageFolder(ListedImages):
    """Images in class folders; the label of an image is the position of its class."""

    def __init__(self, root: Path, listing: ClassListing) -> None:
        super().__init__(listing)
        self._root = str(root)

    def read(self, index: int) -> Record:
        """Read one image from disk.

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
