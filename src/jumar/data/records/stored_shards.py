"""Shards in an object store: those that fit are cached whole, the others read record by record.

Steps take records at random from all shards, so a cache of blocks would fill with bytes that are
not needed soon. Cached shards are read like any file; from the others, a batch's records are read
concurrently, each by its range. Their index takes one pass over them, and is kept if there is room.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from glob import has_magic
from pathlib import Path

import numpy as np

from jumar.data.records.offset_files import LARGEST_IMAGE, OffsetFiles
from jumar.data.records.tfrecord import (
    HEADER_BYTES,
    RecordIndex,
    header_length,
    index_many,
    scan_records,
)
from jumar.data.samples import Notice
from jumar.ground.errors import UserError
from jumar.ground.files import written_beside
from jumar.ground.text import size_text
from jumar.stores.cache import LIMIT_VARIABLE, OWN_PREFIX, limit_bytes
from jumar.stores.client import StoredObject
from jumar.stores.download import total_size
from jumar.stores.fetching import fill, objects_below, pinned_folder, single_object
from jumar.stores.location import Location, parse
from jumar.stores.ranged import Range, read_ranges

_BLOCK = 4 * 2**20
_THREADS = 8
_INDEX_SHARE = 64
"""The fraction of the cache reserved for the index: 16 bytes per record; few records have less than
1 KiB."""


@dataclass(frozen=True, kw_only=True)
class ShardListing:
    """The shards that a URL names.

    Attributes:
        location: Where they are.
        objects: All objects there, by name.
        names: The shards' names, sorted.
        is_chosen: Whether they were named one by one or by a pattern, so that some may be missing.
    """

    location: Location
    objects: Mapping[str, StoredObject]
    names: Sequence[str]
    is_chosen: bool

    @property
    def paths(self) -> list[Path]:
        """Paths that are not on the disk, for code that only uses names."""
        return [Path(str(self.location)) / name for name in self.names]

    def opened(
        self, paths: Sequence[Path], notice: Notice, *, beside: Sequence[str]
    ) -> "StoredShards":
        """Some of the shards opened; see `open_stored`.

        Args:
            paths: Some of `paths`.
            notice: Called if not all fit.
            beside: Names of small files that belong to them, if they exist.
        """
        shards = {path.name: self.objects[path.name] for path in paths}
        companions = {name: self.objects[name] for name in beside if name in self.objects}
        return open_stored(self.location, shards, companions, notice)


def list_shards(url: str, is_shard: Callable[[str], bool]) -> ShardListing | None:
    """The shards that a URL names: a folder of them, one, or a pattern of names in a folder.

    Args:
        url: Of a store.
        is_shard: Whether a file of this name is a shard.

    Returns:
        None if it names something else.

    Raises:
        UserError: There are no shards, or the store does not answer.
    """
    location = parse(url)
    if has_magic(location.key):
        if has_magic(location.parent.key):
            raise UserError("only the last part may be a pattern", where=url)
        objects = _directly_in(location.parent)
        names = sorted(name for name in objects if fnmatchcase(name, location.name))
        if not names:
            raise UserError("no object matches", where=url)
        if other_names := [name for name in names if not is_shard(name)]:
            raise UserError(
                f"matches '{other_names[0]}', which is not a TFRecord file by its name",
                where=url,
                todo="A pattern takes TFRecord shards only.",
            )
        return ShardListing(location=location.parent, objects=objects, names=names, is_chosen=True)
    if single_object(location) is not None:
        if not is_shard(location.name):
            return None
        objects = _directly_in(location.parent)
        return ShardListing(
            location=location.parent, objects=objects, names=[location.name], is_chosen=True
        )
    objects = _directly_in(location)
    names = sorted(filter(is_shard, objects))
    if not names:
        return None
    return ShardListing(location=location, objects=objects, names=names, is_chosen=False)


def _directly_in(location: Location) -> dict[str, StoredObject]:
    return {name: item for name, item in objects_below(location).items() if "/" not in name}


@dataclass(frozen=True, kw_only=True)
class StoredShards:
    """Shards of a store, and where each of them is read from.

    Attributes:
        folder: The cache folder with the cached shards.
        beside: The folder of their index.
        distant: The other shards, by the path that they would have in the cache.
        room: Bytes left for their index.
    """

    folder: Path
    beside: Path
    distant: Mapping[Path, StoredObject]
    room: int


def open_stored(
    location: Location,
    shards: Mapping[str, StoredObject],
    beside: Mapping[str, StoredObject],
    notice: Notice,
) -> StoredShards:
    """Cache as many shards as fit.

    Args:
        location: Their folder or bucket.
        shards: The shards, by name.
        beside: Small files that belong to them, such as the names of the classes.
        notice: Called if not all fit.

    Raises:
        UserError: The store does not answer, or a compressed shard does not fit.
    """
    objects = {**beside, **shards}
    folder = pinned_folder(location, objects)
    size = total_size(objects)
    room = folder.granted - (0 if folder.granted >= size else size // _INDEX_SHARE)
    cached: dict[str, StoredObject] = {}
    for name, item in objects.items():
        if item.size <= room:
            cached[name] = item
            room -= item.size
    fill(folder, location, cached)
    distant = {folder.path / name: shard for name, shard in shards.items() if name not in cached}
    if distant:
        _check_plain(list(distant.values()))
        excess = sum(shard.size for shard in distant.values())
        notice(
            f"{location}: {len(distant)} of {len(shards)} shards ({size_text(excess)}) do not fit "
            f"into the cache of at most {size_text(limit_bytes())}; their records are read from "
            "the store as they are needed"
        )
    index_room = folder.granted - total_size(cached)
    return StoredShards(folder=folder.path, beside=folder.root, distant=distant, room=index_room)


def _check_plain(shards: Sequence[StoredObject]) -> None:
    heads = read_ranges(
        [Range(stored=shard, start=0, end=min(HEADER_BYTES, shard.size)) for shard in shards]
    )
    for stored_shard, head in zip(shards, heads, strict=True):
        if len(head) == HEADER_BYTES and header_length(head) is None:
            raise UserError(
                "this shard does not fit into the cache, and is compressed or not a TFRecord, so "
                "its records cannot be read one by one",
                where=str(stored_shard.location),
                todo=f"Set {LIMIT_VARIABLE} to more than the size of the shards, or store them "
                "uncompressed.",
            )


def index_stored(
    stored: StoredShards, paths: Sequence[Path], names: Sequence[str]
) -> list[RecordIndex]:
    """`index_many` for shards, some of which are only in the store.

    Raises:
        RecordFileError: A shard is damaged.
        UserError: The store does not answer.
    """
    local_paths = [path for path in paths if path not in stored.distant]
    indexes = (
        dict(zip(local_paths, index_many(local_paths, list(map(str, local_paths))), strict=True))
        if local_paths
        else {}
    )
    distant_shards = [
        (path, name) for path, name in zip(paths, names, strict=True) if path in stored.distant
    ]
    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        distant_indexes = list(pool.map(partial(_index_of_distant, stored), distant_shards))
    indexes |= {
        path: index for (path, _), index in zip(distant_shards, distant_indexes, strict=True)
    }
    room = stored.room
    for path, index in zip((path for path, _ in distant_shards), distant_indexes, strict=True):
        room -= _keep_index(_index_file(stored, path), index, room)
    return [indexes[path] for path in paths]


def _index_of_distant(stored: StoredShards, entry: tuple[Path, str]) -> RecordIndex:
    path, name = entry
    index_path, shard = _index_file(stored, path), stored.distant[path]
    try:
        offsets, lengths = np.load(index_path)
        return RecordIndex(offsets=offsets, lengths=lengths)
    except (OSError, ValueError):
        pass

    def read(length: int, position: int) -> bytes:
        end = min(position + length, shard.size)
        return read_ranges([Range(stored=shard, start=position, end=end)])[0]

    return scan_records(read, shard.size, name, block_bytes=_BLOCK)


def _index_file(stored: StoredShards, path: Path) -> Path:
    digest = hashlib.sha256(str(path.relative_to(stored.folder)).encode()).hexdigest()
    return stored.beside / f"{OWN_PREFIX}index-{digest[:16]}.npy"


def _keep_index(path: Path, index: RecordIndex, room: int) -> int:
    """Write an index if there is room; returns the bytes it takes."""
    size = 16 * len(index) + 256
    if size <= room:
        with written_beside(path) as temporary, temporary.open("wb") as file:
            np.save(file, np.stack([index.offsets, index.lengths]), allow_pickle=False)
    return size


class StoredFiles:
    """Files read at offsets, some of them objects of a store; like `OffsetFiles`.

    Args:
        paths: All files.
        distant: Those that are objects.
    """

    def __init__(self, paths: Sequence[Path], distant: Mapping[Path, StoredObject]) -> None:
        self._files = OffsetFiles(paths)
        self._distant = {
            number: distant[path] for number, path in enumerate(paths) if path in distant
        }
        self._ahead: dict[tuple[int, int, int], bytes] = {}

    def read(self, which: int, offset: int, length: int) -> bytes:
        """Bytes of one file; see `OffsetFiles.read`.

        Raises:
            OSError: A file cannot be read.
            UserError: The store does not answer, or the object has changed: that is not a faulty
                sample, which could be skipped.
        """
        stored_object = self._distant.get(which)
        if stored_object is None:
            return self._files.read(which, offset, length)
        content = self._ahead.pop((which, offset, length), None)
        if content is None:
            (content,) = read_ranges([_range(stored_object, offset, length)])
        return content

    def read_ahead(self, wanted: Sequence[tuple[int, int, int]]) -> None:
        """Read the next ranges concurrently: file, first byte and number of bytes."""
        distant_ranges = [
            item
            for item in dict.fromkeys(wanted)
            if item[0] in self._distant and item[2] <= LARGEST_IMAGE
        ]
        ranges = [
            _range(self._distant[file], offset, length) for file, offset, length in distant_ranges
        ]
        self._ahead = dict(zip(distant_ranges, read_ranges(ranges), strict=True))


def _range(stored_object: StoredObject, offset: int, length: int) -> Range:
    return Range(stored=stored_object, start=offset, end=min(offset + length, stored_object.size))
