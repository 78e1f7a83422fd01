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
MAX_SHARDS = 99999
"""With five digits in each name."""
_MAX_NAMED = 5


def check_shards(shards: int) -> None:
    """Reject an impossible number of shards.

    Raises:
        UserError: It is less than 1 or more than `MAX_SHARDS`.
    """
    if not 1 <= shards <= MAX_SHARDS:
        raise UserError(f"{shards} shards", where="--shards", todo=f"Allowed: 1 to {MAX_SHARDS}.")


class RecordShards:
    """The records of TFRecord shards, in the order of the shards."""

    def __init__(
        self,
        paths: Sequence[Path],
        notice: Callable[[str], None],
        *,
        rewrite_command: str,
        stored: StoredShards | None = None,
    ) -> None:
        """Index the shards.

        Args:
            paths: The shards, plain, gzip or zlib.
            notice: Called with notices of slow steps.
            rewrite_command: The command that writes such shards, for messages.
            stored: Shards in an object store, if there are any.

        Raises:
            UserError: A shard is unreadable, damaged, or empty.
        """
        remote = {} if stored is None else stored.remote
        local = iter(plain_files([path for path in paths if path not in remote], notice))
        plain_paths = [path if path in remote else next(local) for path in paths]
        self._names = [
            str(remote[path].location)
            if path in remote
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
            raise _without_records(empty, len(paths), rewrite_command)
        self._files = StoredFiles(plain_paths, remote) if remote else OffsetFiles(plain_paths)

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the records' lengths in order, regardless of shard names."""
        return fingerprint(self._lengths.astype(np.int64).tobytes())

    def read_ahead(self, items: Sequence[int]) -> None:
        """Prefetch the records that are needed next, if they are in a store."""
        if isinstance(self._files, StoredFiles):
            files = np.searchsorted(self._ends, items, side="right")
            self._files.read_ahead(
                [
                    (int(file), int(self._offsets[item]), int(self._lengths[item]) + FOOTER_BYTES)
                    for file, item in zip(files, items, strict=True)
                ]
            )

    def payload(self, index: int) -> tuple[bytes, str]:
        """Return the payload of one record, and its origin.

        Raises:
            CorruptRecord: The checksum is wrong.
        """
        file = int(np.searchsorted(self._ends, index, side="right"))
        offset, length = int(self._offsets[index]), int(self._lengths[index])
        origin = f"{self._names[file]}, byte {offset - HEADER_BYTES}"
        return read_payload(self._files, file, offset, length, origin), origin


def check_one_set(paths: Sequence[Path]) -> None:
    """Check that shards with the same stem in a folder are from the same conversion.

    Raises:
        UserError: They are not, as for `train-00000-of-00004` and `train-00000-of-00008`, of which
            one is left over, so that its images would be counted twice.
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
                todo="Remove leftover shards, or specify a glob that matches one set.",
            )


def check_none_missing(paths: Sequence[Path]) -> None:
    """Check that all shards implied by the names of a set exist.

    Raises:
        UserError: Shards are missing; the message lists them.
    """
    for gap in shard_gaps(paths):
        raise gap.error


@dataclass(frozen=True, kw_only=True)
class ShardGap:
    """The shards of a set, as implied by the names of others, that are missing from some paths.

    Attributes:
        folder: The set's folder.
        names: The missing files, at most 100,000, since the total in a name may be any number.
        present: Number of shards among the paths.
        total: Number of shards in the set.
    """

    folder: Path
    names: Sequence[str]
    present: int
    total: int

    def matching(self, pattern: str) -> "ShardGap | None":
        """Return the missing shards that a glob would have matched; None if there are none."""
        matching_names = [
            name for name in self.names if fnmatchcase(str(self.folder / name), pattern)
        ]
        total = self.present + len(matching_names)
        return replace(self, names=matching_names, total=total) if matching_names else None

    @property
    def error(self) -> UserError:
        """The error if these shards should exist."""
        return UserError(
            self.text,
            where=str(self.folder),
            todo="Copy the missing shards, or write the set again. To train on existing shards, "
            "select them with a glob that does not match the missing ones.",
        )

    @property
    def text(self) -> str:
        """A sentence stating how many shards exist and which are missing."""
        count = self.total - self.present
        verb = "is" if count == 1 else "are"
        return (
            f"{self.present} of {self.total} shards exist; "
            f"{_first_names(self.names, count)} {verb} missing"
        )


def shard_gaps(paths: Sequence[Path]) -> list[ShardGap]:
    """Find the missing shards of each set, by the totals in their names.

    Raises:
        UserError: A shard's number is not below the total, or a number occurs twice.
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
                    todo="Remove it if it is left over, or restore its original name.",
                )
            if number in sets[key]:
                raise UserError(
                    f"shard {number} exists twice: '{sets[key][number].name}' and '{path.name}'",
                    where=str(path.parent),
                    todo="Remove the leftover one.",
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


def _first_names(names: Sequence[str], count: int) -> str:
    text = ", ".join(f"'{name}'" for name in names[:_MAX_NAMED])
    return text + (f" and {count - _MAX_NAMED} more" if count > _MAX_NAMED else "")


def _without_records(empty: Sequence[Path], total: int, rewrite_command: str) -> UserError:
    verb = "contains" if len(empty) == 1 else "contain"
    examples = _first_names([path.name for path in empty], len(empty))
    return UserError(
        f"{len(empty)} of {total} shards {verb} no record: {examples}",
        where=str(empty[0].parent),
        todo=f"Copy them again, or write the set again: {rewrite_command}. If they were always "
        "empty, select the others with a glob.",
    )
