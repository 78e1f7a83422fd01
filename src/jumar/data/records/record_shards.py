"""Shards: several TFRecord files that form one data set."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

import numpy as np

from jumar.data.records.offset_files import OffsetFiles
from jumar.data.records.stored_shards import StoredFiles, StoredShards, index_stored
from jumar.data.records.tfrecord import FOOTER_BYTES, HEADER_BYTES, index_many, read_payload
from jumar.data.records.tfrecord_cache import plain_files
from jumar.data.samples import fingerprint
from jumar.ground.errors import UserError

SHARD_NAME = re.compile(
    r"^(?P<stem>.*?)-(?P<number>\d{5,9})-of-(?P<total>\d{5,9})(?P<suffix>\D.*)?$"
)
RECORD_SUFFIXES = (".tfrecord", ".tfrecords", ".tfrec")
_NAMED_AT_MOST = 5


class RecordShards:
    """The records of TFRecord shards, in the order of the shards."""

    def __init__(
        self,
        paths: Sequence[Path],
        notice: Callable[[str], None],
        *,
        again: str,
        stored: StoredShards | None = None,
    ) -> None:
        """Index the shards.

        Args:
            paths: The shards, plain, gzip or zlib.
            notice: Receives notices of slow steps.
            again: The command that writes such shards, for messages.
            stored: Shards that are read from a store instead of the disk.

        Raises:
            UserError: A shard is unreadable, damaged, or without a record.
        """
        distant = {} if stored is None else stored.distant
        local = iter(plain_files([path for path in paths if path not in distant], notice))
        plain_paths = [path if path in distant else next(local) for path in paths]
        self._names = [
            str(distant[path].location)
            if path in distant
            else str(path)
            if path == plain_path
            else f"{path} (unpacked as {plain_path})"
            for path, plain_path in zip(paths, plain_paths, strict=True)
        ]
        indexes = (
            index_many(plain_paths, self._names)
            if stored is None
            else index_stored(stored, plain_paths, self._names)
        )
        self._ends = np.cumsum([len(index) for index in indexes], dtype=np.int64)
        self._offsets = np.concatenate([index.offsets for index in indexes])
        self._lengths = np.concatenate([index.lengths for index in indexes])
        if empty := [path for path, index in zip(paths, indexes, strict=True) if not index]:
            raise _without_records(empty, len(paths), again)
        self._files = StoredFiles(plain_paths, distant) if distant else OffsetFiles(plain_paths)

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the records' lengths in order, regardless of shard names."""
        return fingerprint(self._lengths.astype(np.int64).tobytes())

    def read_ahead(self, items: Sequence[int]) -> None:
        """Prefetch the records of a store that are needed next."""
        if isinstance(self._files, StoredFiles):
            files = np.searchsorted(self._ends, items, side="right")
            self._files.read_ahead(
                [
                    (int(file), int(self._offsets[item]), int(self._lengths[item]) + FOOTER_BYTES)
                    for file, item in zip(files, items, strict=True)
                ]
            )

    def payload(self, index: int) -> tuple[bytes, str]:
        """The bytes of one record, and their position.

        Raises:
            CorruptRecord: The checksum is wrong.
        """
        file = int(np.searchsorted(self._ends, index, side="right"))
        offset, length = int(self._offsets[index]), int(self._lengths[index])
        origin = f"{self._names[file]}, byte {offset - HEADER_BYTES}"
        return read_payload(self._files, file, offset, length, origin), origin


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
        """The missing shards that a glob would have matched; None if there are none."""
        matching_names = [
            name for name in self.names if fnmatchcase(str(self.folder / name), pattern)
        ]
        total = self.present + len(matching_names)
        return replace(self, names=matching_names, total=total) if matching_names else None

    @property
    def error(self) -> UserError:
        """Advice if they should exist."""
        return UserError(
            self.text,
            where=str(self.folder),
            todo="Copy the missing shards, or write the set again. To train on those present, "
            "select them with a glob that the missing ones do not match.",
        )

    @property
    def text(self) -> str:
        """A sentence with how many exist and which are missing."""
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
                    todo="Remove it if it is left over, or give it back its own name.",
                )
            if number in sets[key]:
                raise UserError(
                    f"shard {number} exists twice: '{sets[key][number].name}' and '{path.name}'",
                    where=str(path.parent),
                    todo="Remove the one that is left over.",
                )
            sets[key][number] = path
    gaps: list[ShardGap] = []
    for (folder, stem, total, suffix), numbers in sets.items():
        missing_numbers = (number for number in range(total) if number not in numbers)
        names = [
            f"{stem}-{number:05}-of-{total:05}{suffix}"
            for number in islice(missing_numbers, 100_000)
        ]
        if names:
            gaps.append(ShardGap(folder=folder, names=names, present=len(numbers), total=total))
    return gaps


def _first_few(names: Sequence[str], count: int) -> str:
    text = ", ".join(f"'{name}'" for name in names[:_NAMED_AT_MOST])
    return text + (f" and {count - _NAMED_AT_MOST} more" if count > _NAMED_AT_MOST else "")


def _without_records(empty: Sequence[Path], total: int, again: str) -> UserError:
    verb = "holds" if len(empty) == 1 else "hold"
    examples = _first_few([path.name for path in empty], len(empty))
    return UserError(
        f"{len(empty)} of {total} shards {verb} no record: {examples}",
        where=str(empty[0].parent),
        todo=f"Copy them again, or write the set again: {again}. If they never held a record, "
        "select the others with a glob.",
    )
