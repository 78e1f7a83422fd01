"""Shards in an object store: those that fit are cached, the others are read record by record.

Steps use random records of all shards, so a cache of blocks would be filled with bytes that are not
needed soon. Cached shards are read like any file; from the others, a batch's records are read
concurrently, each by its range. Indexing them requires one pass over all their data; the index is
cached if there is space.
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

from jumar.data.records.offset_files import MAX_IMAGE_BYTES, OffsetFiles
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
_DATA_PER_INDEX = 64
"""Bytes of data for each byte reserved for the index, which has 16 bytes per record: few records
are smaller than 1 KiB."""


@dataclass(frozen=True, kw_only=True)
class ShardListing:
    """The shards at a URL.

    Attributes:
        location: The location of the shards.
        objects: All objects there, by name.
        names: The shards' names, sorted.
        is_chosen: Whether they were specified individually or by a pattern, so that some may be
            missing.
    """

    location: Location
    objects: Mapping[str, StoredObject]
    names: Sequence[str]
    is_chosen: bool

    @property
    def paths(self) -> list[Path]:
        """Paths of the shards, not on disk, for code that uses only their names."""
        return [Path(str(self.location)) / name for name in self.names]

    def opened(
        self, paths: Sequence[Path], notice: Notice, *, companions: Sequence[str]
    ) -> "StoredShards":
        """Open some of the shards; see `open_stored`.

        Args:
            paths: Some of this listing's `paths`.
            notice: Called if not all shards fit into the cache.
            companions: Names of small files that belong to the shards, if they exist.
        """
        shards = {path.name: self.objects[path.name] for path in paths}
        small_files = {name: self.objects[name] for name in companions if name in self.objects}
        return open_stored(self.location, shards, small_files, notice)


def list_shards(url: str, is_shard: Callable[[str], bool]) -> ShardListing | None:
    """List the shards at a URL: a folder of shards, one shard, or a pattern of names in a folder.

    Args:
        url: A URL in a store.
        is_shard: Returns whether a name is that of a shard.

    Returns:
        The shards, or None if the URL is for something else.

    Raises:
        UserError: There are no shards, or the store does not respond.
    """
    location = parse(url)
    if has_magic(location.key):
        if has_magic(location.parent.key):
            raise UserError("only the last part may be a pattern", where=url)
        objects = _objects_in(location.parent)
        names = sorted(name for name in objects if fnmatchcase(name, location.name))
        if not names:
            raise UserError("no object matches", where=url)
        if other_names := [name for name in names if not is_shard(name)]:
            raise UserError(
                f"matches '{other_names[0]}', which is not the name of a TFRecord file",
                where=url,
                todo="A pattern must match only TFRecord shards.",
            )
        return ShardListing(location=location.parent, objects=objects, names=names, is_chosen=True)
    if single_object(location) is not None:
        if not is_shard(location.name):
            return None
        objects = _objects_in(location.parent)
        return ShardListing(
            location=location.parent, objects=objects, names=[location.name], is_chosen=True
        )
    objects = _objects_in(location)
    names = sorted(filter(is_shard, objects))
    if not names:
        return None
    return ShardListing(location=location, objects=objects, names=names, is_chosen=False)


def _objects_in(location: Location) -> dict[str, StoredObject]:
    return {name: item for name, item in objects_below(location).items() if "/" not in name}


@dataclass(frozen=True, kw_only=True)
class StoredShards:
    """Shards of a store, some of which are cached.

    Attributes:
        folder: The cache folder with the cached shards.
        index_folder: The folder for the index of the other shards.
        remote: The other shards, by the path that they would have in the cache.
        free_bytes: Space for their index.
    """

    folder: Path
    index_folder: Path
    remote: Mapping[Path, StoredObject]
    free_bytes: int


def open_stored(
    location: Location,
    shards: Mapping[str, StoredObject],
    companions: Mapping[str, StoredObject],
    notice: Notice,
) -> StoredShards:
    """Cache as many shards as fit.

    Args:
        location: Their folder or bucket.
        shards: The shards, by name.
        companions: Small files that belong to them, such as the names of the classes.
        notice: Called if not all shards fit into the cache.

    Raises:
        UserError: The store does not respond, or a compressed shard does not fit.
    """
    objects = {**companions, **shards}
    folder = pinned_folder(location, objects)
    size = total_size(objects)
    free_bytes = folder.granted - (0 if folder.granted >= size else size // _DATA_PER_INDEX)
    cached: dict[str, StoredObject] = {}
    for name, item in objects.items():
        if item.size <= free_bytes:
            cached[name] = item
            free_bytes -= item.size
    fill(folder, location, cached)
    remote = {folder.path / name: shard for name, shard in shards.items() if name not in cached}
    if remote:
        _check_plain(list(remote.values()))
        excess = sum(shard.size for shard in remote.values())
        notice(
            f"{location}: {len(remote)} of {len(shards)} shards ({size_text(excess)}) do not fit "
            f"into the cache of at most {size_text(limit_bytes())}; their records are read from "
            "the store when needed"
        )
    return StoredShards(
        folder=folder.path,
        index_folder=folder.root,
        remote=remote,
        free_bytes=folder.granted - total_size(cached),
    )


def _check_plain(shards: Sequence[StoredObject]) -> None:
    heads = read_ranges(
        [Range(stored=shard, start=0, end=min(HEADER_BYTES, shard.size)) for shard in shards]
    )
    for stored_shard, head in zip(shards, heads, strict=True):
        if len(head) == HEADER_BYTES and header_length(head) is None:
            raise UserError(
                "this shard does not fit into the cache, and is compressed or not a TFRecord, so "
                "its records cannot be read individually",
                where=str(stored_shard.location),
                todo=f"Set {LIMIT_VARIABLE} to more than the size of the shards, or store them "
                "uncompressed.",
            )


def index_stored(
    stored: StoredShards, paths: Sequence[Path], names: Sequence[str]
) -> list[RecordIndex]:
    """Index shards like `index_many`, though some of them are only in the store.

    Raises:
        RecordFileError: A shard is damaged.
        UserError: The store does not respond.
    """
    local_paths = [path for path in paths if path not in stored.remote]
    local_indexes = index_many(local_paths, list(map(str, local_paths)))
    indexes = dict(zip(local_paths, local_indexes, strict=True))
    remote_shards = [
        (path, name) for path, name in zip(paths, names, strict=True) if path in stored.remote
    ]
    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        remote_indexes = list(pool.map(partial(_index_of_remote, stored), remote_shards))
    free_bytes = stored.free_bytes
    for (path, _), index in zip(remote_shards, remote_indexes, strict=True):
        indexes[path] = index
        free_bytes -= _cache_index(_index_file(stored, path), index, free_bytes)
    return [indexes[path] for path in paths]


def _index_of_remote(stored: StoredShards, entry: tuple[Path, str]) -> RecordIndex:
    path, name = entry
    index_path, shard = _index_file(stored, path), stored.remote[path]
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
    return stored.index_folder / f"{OWN_PREFIX}index-{digest[:16]}.npy"


def _cache_index(path: Path, index: RecordIndex, free_bytes: int) -> int:
    """Write an index if there is space; return its size in bytes."""
    size = 16 * len(index) + 256
    if size <= free_bytes:
        with written_beside(path) as temporary, temporary.open("wb") as file:
            np.save(file, np.stack([index.offsets, index.lengths]), allow_pickle=False)
    return size


class StoredFiles:
    """Files read at offsets, some of them objects of a store; like `OffsetFiles`.

    Args:
        paths: All files.
        remote: The objects among them.
    """

    def __init__(self, paths: Sequence[Path], remote: Mapping[Path, StoredObject]) -> None:
        self._files = OffsetFiles(paths)
        self._remote = {number: remote[path] for number, path in enumerate(paths) if path in remote}
        self._ahead: dict[tuple[int, int, int], bytes] = {}

    def read(self, file_index: int, offset: int, length: int) -> bytes:
        """Read bytes of one file; see `OffsetFiles.read`.

        Raises:
            OSError: A file cannot be read.
            UserError: The store does not respond, or the object has changed. Unlike a faulty
                sample, this must not be skipped.
        """
        stored_object = self._remote.get(file_index)
        if stored_object is None:
            return self._files.read(file_index, offset, length)
        content = self._ahead.pop((file_index, offset, length), None)
        if content is None:
            (content,) = read_ranges([_range(stored_object, offset, length)])
        return content

    def read_ahead(self, requests: Sequence[tuple[int, int, int]]) -> None:
        """Read the next ranges concurrently: file, first byte and number of bytes."""
        remote_ranges = [
            item
            for item in dict.fromkeys(requests)
            if item[0] in self._remote and item[2] <= MAX_IMAGE_BYTES
        ]
        ranges = [
            _range(self._remote[file], offset, length) for file, offset, length in remote_ranges
        ]
        self._ahead = dict(zip(remote_ranges, read_ranges(ranges), strict=True))


def _range(stored_object: StoredObject, offset: int, length: int) -> Range:
    return Range(stored=stored_object, start=offset, end=min(offset + length, stored_object.size))
