"""The Kaggle CAT data set, with the position of the cat's head in each photograph.

`00000001_000.jpg.cat`, next to `00000001_000.jpg`, is one line of integers: the number of points
(9), then x and y of each: both eyes, mouth, three points of the left ear, three of the right.
Data: https://www.kaggle.com/crawford/cat-dataset.
"""

from collections.abc import Sequence
from pathlib import Path

from jumar.data.images.picture_tree import Pictures
from jumar.data.pixels.decode import DecodeError, EncodedImage
from jumar.data.samples import CorruptRecord, Record
from jumar.ground.errors import UserError
from jumar.ground.paths import is_folder

SUFFIX = ".cat"
HEAD_MARGIN = 1.3
"""Side of the square around a head, as a multiple of the larger extent of its points, which do not
include ear tips and chin."""
_MAX_FILE_BYTES = 4096

Box = tuple[float, float, float, float]
"""Relative (ymin, xmin, ymax, xmax), as in `Record.boxes`."""


class CatHeads:
    """Images whose box is the square around the cat's head; an `ImageSource`.

    Args:
        pictures: The images of a folder.
        folder: That folder, which also contains the landmarks.

    Raises:
        UserError: The images are not in a folder.
    """

    classes: Sequence[str] = ()

    def __init__(self, pictures: Pictures, folder: Path) -> None:
        if not is_folder(folder):
            raise UserError(
                "landmarks can only be read from a folder of images",
                where=str(folder),
                todo="Unpack the images with their .cat files, or use data.frame=square.",
            )
        self._pictures = pictures
        self._folder = folder

    def __len__(self) -> int:
        return len(self._pictures)

    @property
    def fingerprint(self) -> str:
        """The images' fingerprint; see `Fingerprinted`."""
        return self._pictures.fingerprint

    def path(self, index: int) -> str:
        """See `Pictures.path`."""
        return self._pictures.path(index)

    def read(self, index: int) -> Record:
        """Read one image with one box.

        Raises:
            CorruptRecord: The image or its landmarks cannot be read.
        """
        record = self._pictures.read(index)
        path = self._folder / f"{self._pictures.path(index)}{SUFFIX}"
        try:
            with path.open("rb") as file:
                points = parse_landmarks(file.read(_MAX_FILE_BYTES).decode("ascii", "replace"))
            picture = EncodedImage(record.encoded)
        except OSError as error:
            reason = (
                f"no landmarks: {error.strerror or error} (data.frame=head needs the .cat files "
                "of the Kaggle CAT data set; square and squeeze need none)"
            )
            raise CorruptRecord(str(path), reason) from error
        except DecodeError as error:
            raise CorruptRecord(record.origin, error) from error
        except ValueError as error:
            raise CorruptRecord(str(path), error) from error
        box = head_box(points, picture.width, picture.height)
        return Record(encoded=record.encoded, label=0, origin=record.origin, boxes=(box,))


def parse_landmarks(text: str) -> list[tuple[int, int]]:
    """Parse the points (x, y) of a `.cat` file.

    Raises:
        ValueError: It contains anything but integers, the wrong number of coordinates, or fewer
            than three points.
    """
    words = text.split()
    if not words or not all(word.lstrip("-").isdigit() for word in words):
        raise ValueError("not landmarks: expected integers")
    count, *numbers = map(int, words)
    if count < 3 or len(numbers) != 2 * count:
        raise ValueError(f"{count} points announced, but {len(numbers)} numbers follow")
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def head_box(points: Sequence[tuple[int, int]], width: int, height: int) -> Box:
    """Return the square around the points, moved and clipped to fit into the image.

    Args:
        points: (x, y) in pixels.
        width: Width of the image in pixels.
        height: Height of the image in pixels.
    """
    columns, rows = [x for x, _ in points], [y for _, y in points]
    extent = max(max(columns) - min(columns), max(rows) - min(rows), 1)
    side = min(HEAD_MARGIN * extent, width, height)
    left = _clamped((max(columns) + min(columns) - side) / 2, width - side)
    top = _clamped((max(rows) + min(rows) - side) / 2, height - side)
    return top / height, left / width, (top + side) / height, (left + side) / width


def _clamped(start: float, maximum: float) -> float:
    return max(0.0, min(start, maximum))
