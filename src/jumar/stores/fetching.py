"""Fetches a URL into the cache: one object, a folder of them, or a run."""

import hashlib
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath

from jumar.ground.errors import UserError
from jumar.ground.text import counted, print_aside, size_text
from jumar.stores.cache import LIMIT_VARIABLE, CacheFolder, limit_bytes, open_folder
from jumar.stores.client import NoSuchObject, StoredObject, client_of
from jumar.stores.download import DownloadItem, download, total_size
from jumar.stores.location import Location, parse
from jumar.stores.manifest import NotAManifest, is_safe, read_manifest

_pinned: list[CacheFolder] = []
"""Folders used by this process, which stay in the cache while it runs."""


def fetched(url: str) -> Path:
    """Fetch the object, folder or run at a URL, once per process.

    Returns:
        The local copy: a file for an object, otherwise a folder.

    Raises:
        UserError: It does not exist or fit into the cache, or the store does not respond.
    """
    return _fetched(url, os.getpid())


@lru_cache(maxsize=256)
def _fetched(url: str, process: int) -> Path:
    del process
    location = parse(url)
    single = single_object(location)
    if single is not None:
        return _cached(location.parent, {location.name: single}) / location.name
    client = client_of(location)
    try:
        manifest = read_manifest(client, location)
    except (NoSuchObject, NotAManifest):
        return _cached(location, objects_below(location))
    hashes = {name: file.sha256 for name, file in manifest.files.items()}
    folder = _cached(location, manifest.objects(location), hashes)
    print_aside(f"{location}: using the copy {folder}; changes to it are not uploaded")
    return folder


def single_object(location: Location) -> StoredObject | None:
    """Return the object at a location; None if there is none."""
    if not location.key:
        return None
    try:
        return client_of(location).head(location)
    except NoSuchObject:
        return None


def objects_below(location: Location) -> dict[str, StoredObject]:
    """Return the objects below a location, by their names relative to it.

    Raises:
        UserError: There are none, or one of their names is not a valid file name.
    """
    start = len(location.key) + 1 if location.key else 0
    objects: dict[str, StoredObject] = {}
    for stored_object in client_of(location).list(location):
        name = stored_object.location.key[start:]
        if not stored_object.size and (not name or name.endswith("/")):
            continue  # written by web consoles to show an empty folder
        if not is_safe(name):
            raise UserError(
                "this object's name is not a valid file name", where=str(stored_object.location)
            )
        objects[name] = stored_object
    folders = {str(parent) for name in objects for parent in PurePosixPath(name).parents}
    objects = {name: item for name, item in objects.items() if item.size or name not in folders}
    if not objects:
        raise UserError(
            "there is no such object, and none below it",
            where=str(location),
            todo="List the existing objects, for instance with aws s3 ls or obsutil ls.",
        )
    if ambiguous_names := sorted(folders & set(objects)):
        raise UserError(
            f"'{ambiguous_names[0]}' is both an object and a folder of other objects",
            where=str(location),
            todo="Choose another location, or rename one of them.",
        )
    return objects


def cache_name(location: Location, files: Mapping[str, StoredObject], more: str = "") -> str:
    """Return the name of the cache folder for a listing: readable and unique."""
    digest = hashlib.sha256(f"{location}\0{more}".encode())
    for name, stored_object in sorted(files.items()):
        digest.update(
            f"\0{name}\0{stored_object.size}\0{stored_object.e_tag}".encode(
                errors="surrogateescape"
            )
        )
    readable = re.sub(r"[^\w-]", "_", location.name, flags=re.ASCII)[:40]
    return f"{readable}-{digest.hexdigest()[:20]}"


def pinned_folder(
    location: Location, files: Mapping[str, StoredObject], more: str = ""
) -> CacheFolder:
    """Return the cache folder for a listing, which is kept while this process runs."""
    folder = open_folder(cache_name(location, files, more), total_size(files))
    _pinned.append(folder)
    return folder


def fill(
    folder: CacheFolder,
    location: Location,
    files: Mapping[str, StoredObject],
    hashes: Mapping[str, str] | None = None,
) -> None:
    """Download the files missing from a cache folder, while other processes wait."""
    if not _missing(folder, files):
        return
    with folder.filling():
        missing_files = _missing(folder, files)
        if not missing_files:
            return
        print_aside(
            f"fetching {location}: {counted(len(missing_files), 'file')}, "
            f"{size_text(total_size(missing_files))}, into {folder.path}"
        )
        wanted = [
            DownloadItem(
                stored=stored_object, path=folder.path / name, sha256=(hashes or {}).get(name, "")
            )
            for name, stored_object in missing_files.items()
        ]
        download(client_of(location), wanted, scratch=folder.root)


def _cached(
    location: Location, files: Mapping[str, StoredObject], hashes: Mapping[str, str] | None = None
) -> Path:
    more = "\0".join(f"{name}={value}" for name, value in sorted((hashes or {}).items()))
    folder = pinned_folder(location, files, more)
    size = total_size(files)
    if folder.granted < size:
        raise UserError(
            f"{size_text(size)} do not fit into the cache, which is limited to "
            f"{size_text(limit_bytes())} and has space for {size_text(folder.granted)}",
            where=str(location),
            todo=f"Set {LIMIT_VARIABLE}, such as {LIMIT_VARIABLE}=200GB, free some space, or "
            "request fewer files. Only TFRecord shards can be read without caching all of them.",
        )
    fill(folder, location, files, hashes)
    return folder.path


def _missing(folder: CacheFolder, files: Mapping[str, StoredObject]) -> dict[str, StoredObject]:
    return {
        name: stored_object
        for name, stored_object in files.items()
        if not _has_size(folder.path / name, stored_object.size)
    }


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False
