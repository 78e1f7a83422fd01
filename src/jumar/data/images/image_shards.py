"""Image source: ImageNet-style TFRecord shards."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

import numpy as np

from jumar.data.records.imagenet_example import record_of_example
from jumar.data.records.offset_files import OffsetFiles
from jumar.data.records.tfrecord import HEADER_BYTES, index_many, read_payload
from jumar.data.records.tfrecord_cache import plain_files
from jumar.data.samples import Record, fingerprint
from jumar.ground.errors import UserError
from jumar.ground.paths import unreadable

LABELS_FILE = "labels.txt"
BACKGROUND = "background"
"""Name of class 0 if labels start at 1, as in ImageNet's shards."""
SHARD_NAME = re.compile(
    r"^(?P<stem>.*?)-(?P<number>\d{5,9})-of-(?P<total>\d{5,9})(?P<suffix>\D.*)?$"
)
_NAMED_AT_MOST = 5
_NUMBERED_LINE = re.compile(r"^(\d{1,9}):(.*)$")


class ImageShards:
    """The images of TFRecord shards, in shard order, with labels as stored.

    Attributes:
        classes: Names by stored label, from `labels.txt` beside the shards; empty without it.
    """

    def __init__(self, paths: Sequence[Path], notice: Callable[[str], None]) -> None:
        """Index the shards.

        Args:
            paths: The shards, plain, gzip or zlib.
            notice: Called with notices about slow steps.

        Raises:
            UserError: A shard is unreadable, damaged, or without a record.
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
        if empty := [path for path, index in zip(paths, indexes, strict=True) if not index]:
            raise _without_records(empty, len(paths))
        self._files = OffsetFiles(plain)
        self.classes: Sequence[str] = read_class_names(paths[0].parent / LABELS_FILE)

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def fingerprint(self) -> str:
        """Of the records' lengths in their order, whatever the shards are called."""
        return fingerprint(self._lengths.astype(np.int64).tobytes())

    def read(self, index: int) -> Record:
        """One record.

        Raises:
            CorruptRecord: Its checksum is wrong, it is not a tf.Example, or it lacks an image, a
                label, or a side of a box.
        """
        payload, origin = self.payload(index)
        return record_of_example(payload, origin)

    def payload(self, index: int) -> tuple[bytes, str]:
        """The bytes of one record, and their position.

        Raises:
            CorruptRecord: The checksum is wrong.
        """
        which = int(np.searchsorted(self._ends, index, side="right"))
        offset, length = int(self._offsets[index]), int(self._lengths[index])
        origin = f"{self._names[which]}, byte {offset - HEADER_BYTES}"
        return read_payload(self._files, which, offset, length, origin), origin


def read_class_names(path: Path) -> tuple[str, ...]:
    """Class names by label, one per line, or as `label:name` lines; empty if there is no file.

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
    """Check that shards with one name in one folder come from the same conversion.

    Raises:
        UserError: For instance `train-00000-of-00004` and `train-00000-of-00008`, of which one
            was left over and would count its images twice.
    """
    kinds: defaultdict[tuple[Path, str], set[str]] = defaultdict(set)
    for path in paths:
        if match := SHARD_NAME.match(path.name):
            kind = f"{match['stem']}-*-of-{match['total']}{match['suffix'] or ''}"
            kinds[path.parent, match["stem"]].add(kind)
    for (folder, _), names in kinds.items():
        if len(names) > 1:
            raise UserError(
                f"shards of different sets are mixed: {' and '.join(sorted(names))}",
                where=str(folder),
                todo="Remove the leftovers, or give a glob that matches one set.",
            )


def check_none_missing(paths: Sequence[Path]) -> None:
    """Check that all shards implied by the names of a set exist.

    Raises:
        UserError: Shards are missing; the message names them.
    """
    for gap in shard_gaps(paths):
        raise gap.error


@dataclass(frozen=True, kw_only=True)
class ShardGap:
    """The shards implied by the names of a set that are missing from some paths.

    Attributes:
        folder: The set's folder.
        names: The missing files, at most 100,000 of them: a total may be anything.
        present: How many are among the paths.
        total: How many the set has.
    """

    folder: Path
    names: Sequence[str]
    present: int
    total: int

    def matching(self, pattern: str) -> "ShardGap | None":
        """The part of the gap that a glob would have filled; None if there is none."""
        wanted = [name for name in self.names if fnmatchcase(str(self.folder / name), pattern)]
        total = self.present + len(wanted)
        return replace(self, names=wanted, total=total) if wanted else None

    @property
    def error(self) -> UserError:
        """Advice if they should exist."""
        return UserError(
            self.text,
            where=str(self.folder),
            todo="Copy the missing shards, or write the set again. To train on those present, "
            "name them with a glob that the missing ones do not match.",
        )

    @property
    def text(self) -> str:
        """A sentence that says how many exist and which are missing."""
        count = self.total - self.present
        verb = "is" if count == 1 else "are"
        return (
            f"{self.present} of {self.total} shards exist; "
            f"{_first_few(self.names, count)} {verb} missing"
        )


def shard_gaps(paths: Sequence[Path]) -> list[ShardGap]:
    """The missing shards of each set, by the totals in their names.

    Raises:
        UserError: A shard's number is not below the total, or one number occurs twice.
    """
    sets: defaultdict[tuple[Path, str, int, str], dict[int, Path]] = defaultdict(dict)
    for path in paths:
        if match := SHARD_NAME.match(path.name):
            key = (path.parent, match["stem"], int(match["total"]), match["suffix"] or "")
            number, total = int(match["number"]), int(match["total"])
            if number >= total:
                raise UserError(
                    f"shard {number} of {total}, which are numbered from 0",
                    where=str(path),
                    todo="Remove it if it was left over, or give it back its own name.",
                )
            if number in sets[key]:
                raise UserError(
                    f"shard {number} exists twice: '{sets[key][number].name}' and '{path.name}'",
                    where=str(path.parent),
                    todo="Remove the one that was left over.",
                )
            sets[key][number] = path
    gaps: list[ShardGap] = []
    for (folder, stem, total, suffix), numbers in sets.items():
        missing = (number for number in range(total) if number not in numbers)
        names = [f"{stem}-{number:05}-of-{total:05}{suffix}" for number in islice(missing, 100_000)]
        if names:
            gaps.append(ShardGap(folder=folder, names=names, present=len(numbers), total=total))
    return gaps


def _first_few(names: Sequence[str], count: int) -> str:
    named = ", ".join(f"'{name}'" for name in names[:_NAMED_AT_MOST])
    return named + (f" and {count - _NAMED_AT_MOST} more" if count > _NAMED_AT_MOST else "")


def _without_records(empty: Sequence[Path], total: int) -> UserError:
    verb = "holds" if len(empty) == 1 else "hold"
    named = _first_few([path.name for path in empty], len(empty))
    return UserError(
        f"{len(empty)} of {total} shards {verb} no record: {named}",
        where=str(empty[0].parent),
        todo="Copy them again, or write the set again: jumar data tfrecord SRC --to DEST. If they "
        "never held a record, name the others by a glob.",
    )
