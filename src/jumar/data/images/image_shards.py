"""Image source: ImageNet-style TFRecord shards."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from jumar.data.records.imagenet_example import record_of_example
from jumar.data.records.offset_files import OffsetFiles
from jumar.data.records.tfrecord import HEADER_BYTES, index_many, read_payload
from jumar.data.records.tfrecord_cache import plain_files
from jumar.data.samples import Record
from jumar.errors import UserError
from jumar.paths import unreadable

LABELS_FILE = "labels.txt"
BACKGROUND = "background"
"""Name of class 0 where labels begin at 1, as in ImageNet's shards."""
SHARD_NAME = re.compile(
    r"^(?P<stem>.*?)-(?P<number>\d{5,9})-of-(?P<total>\d{5,9})(?P<suffix>\D.*)?$"
)
_NUMBERED_LINE = re.compile(r"^(\d{1,9}):(.*)$")


class ImageShards:
    """The images of TFRecord shards, in the order of the shards, labels as they are stored.

    Attributes:
        classes: Names by stored label, from `labels.txt` beside the shards; empty without it.
    """

    def __init__(self, paths: Sequence[Path], notice: Callable[[str], None]) -> None:
        """Index the shards.

        Args:
            paths: The shards, plain, gzip or zlib.
            notice: Is told what takes a while.

        Raises:
            UserError: A shard is unreadable or damaged, or none holds a record.
        """
        plain = plain_files(paths, notice)
        self._names = [
            str(path) if path == used else f"{path} (unpacked as {used})"
            for path, used in zip(paths, plain, strict=True)
        ]
        indexes = index_many(plain, self._names)
        self._ends = np.cumsum([len(index) for index in indexes], dtype=np.int64)
        self._offsets = np.concatenate([index.offsets for index in indexes])
        self._lengths = np.concatenate([index.lengths for index in indexes])
        if not len(self._offsets):
            raise UserError(
                f"no record in {len(paths)} TFRecord files",
                where=str(paths[0]),
                todo="Write the shards anew: jumar data tfrecord SRC --to DEST.",
            )
        self._files = OffsetFiles(plain)
        self.classes: Sequence[str] = read_class_names(paths[0].parent / LABELS_FILE)

    def __len__(self) -> int:
        return len(self._offsets)

    def read(self, index: int) -> Record:
        """One record.

        Raises:
            CorruptRecord: Its checksum is wrong, it is no tf.Example, or it lacks an image, a
                label, or a side of a box.
        """
        payload, origin = self.payload(index)
        return record_of_example(payload, origin)

    def payload(self, index: int) -> tuple[bytes, str]:
        """The bytes of one record, and where they are.

        Raises:
            CorruptRecord: The checksum is wrong.
        """
        which = int(np.searchsorted(self._ends, index, side="right"))
        offset, length = int(self._offsets[index]), int(self._lengths[index])
        origin = f"{self._names[which]}, byte {offset - HEADER_BYTES}"
        return read_payload(self._files, which, offset, length, origin), origin


def read_class_names(path: Path) -> tuple[str, ...]:
    """Class names by label, one a line, or as `label:name` lines; empty where there is no file.

    Raises:
        UserError: The file cannot be read, or its numbered lines skip a label.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise unreadable(path, error) from error
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    numbered = [_NUMBERED_LINE.match(line) for line in lines]
    if not all(numbered):
        return tuple(line.strip() for line in lines)
    names: list[str] = []
    for number, match in enumerate(numbered):
        if match is not None:
            if int(match[1]) != number:
                raise UserError(
                    f"the label is {match[1]}, expected {number}",
                    where=f"{path}, line {number + 1}",
                    todo="Number the classes from 0 in order, or write one name a line.",
                )
            names.append(match[2])
    return tuple(names)


def check_one_set(paths: Sequence[Path]) -> None:
    """That shards of one name in one folder come from one conversion.

    Raises:
        UserError: For instance `train-00000-of-00004` and `train-00000-of-00008`, of which one
            was left over and would count its images twice.
    """
    kinds: defaultdict[tuple[Path, str], set[str]] = defaultdict(set)
    for path in paths:
        if match := SHARD_NAME.match(path.name):
            kind = f"{match['stem']}-*-of-{match['total']}{match['suffix'] or ''}"
            kinds[path.parent, match["stem"]].add(kind)
    for (folder, _), found in kinds.items():
        if len(found) > 1:
            raise UserError(
                f"shards of different sets are mixed: {' and '.join(sorted(found))}",
                where=str(folder),
                todo="Remove those that are left over, or give a glob that takes one set.",
            )


def check_none_missing(paths: Sequence[Path]) -> None:
    """That all the shards that a set's names announce are there.

    Raises:
        UserError: Names the first that is missing.
    """
    sets: defaultdict[tuple[Path, str, int, str], set[int]] = defaultdict(set)
    for path in paths:
        if match := SHARD_NAME.match(path.name):
            key = (path.parent, match["stem"], int(match["total"]), match["suffix"] or "")
            sets[key].add(int(match["number"]))
    for (folder, stem, total, suffix), numbers in sets.items():
        # One number more than there are files is enough to find one that is missing.
        missing = next(number for number in range(len(numbers) + 1) if number not in numbers)
        if missing < total:
            raise UserError(
                f"{len(numbers)} of {total} shards are there; the first that is missing is "
                f"'{stem}-{missing:05}-of-{total:05}{suffix}'",
                where=str(folder),
                todo="Copy the missing shards, or write the set anew.",
            )
