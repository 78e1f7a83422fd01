"""Uploads a command's output to a store after it has ended: a file, a folder or a run."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.files import remove_folder
from jumar.ground.paths import make_folder
from jumar.ground.text import counted, size_text
from jumar.stores.cache import cache_root
from jumar.stores.client import StoreError, client_of
from jumar.stores.download import MAX_REQUESTS, sha256_of
from jumar.stores.fetching import single_object
from jumar.stores.location import Location
from jumar.stores.manifest import MANIFEST, Manifest, StoredFile

_RUN_MARKER = "recipe.json"
"""A file that only run directories contain."""


class Outgoing:
    """Local paths for output to upload, which are removed at the end unless an upload failed."""

    def __init__(self) -> None:
        folder = cache_root().parent / "outgoing"
        make_folder(folder)
        self._folder = Path(tempfile.mkdtemp(dir=folder))
        self._is_kept = False

    def __enter__(self) -> "Outgoing":
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_kept:
            remove_folder(self._folder)

    def place(self, target: Location) -> Path:
        """Return a local path for output to a location.

        Raises:
            UserError: The location is a folder that is not empty, or the store does not respond.
        """
        if not target.key:
            raise UserError("needs a name in its bucket", where=str(target))
        if single_object(target) is None and client_of(target).list(target):
            raise UserError(
                "already exists and contains objects",
                where=str(target),
                todo="Choose another location, or delete them.",
            )
        return Path(tempfile.mkdtemp(dir=self._folder)) / target.name

    def upload(self, target: Location, local: Path) -> str:
        """Upload a folder, or a file and its companions, and return a message.

        Raises:
            StoreError: The store does not respond; the local files are then kept.
        """
        # A file's folder contains nothing else; see `place`.
        files = _files(local.parent) if local.is_file() else _files(local)
        base = target.parent if local.is_file() else target
        client = client_of(target)
        try:
            with ThreadPoolExecutor(max_workers=MAX_REQUESTS) as pool:
                list(pool.map(client.write, map(base.below, files), files.values()))
            if _RUN_MARKER in files and not local.is_file():
                stored_files = {
                    name: StoredFile(key=name, size=path.stat().st_size, sha256=sha256_of(path))
                    for name, path in files.items()
                }
                client.write(
                    target.below(MANIFEST), Manifest(files=stored_files).to_json(str(local))
                )
        except StoreError as error:
            self._is_kept = True
            advice = f"The complete output is in {local}.\n  {error.todo}".rstrip()
            raise StoreError(error.what, where=error.where, todo=advice) from error
        size = sum(path.stat().st_size for path in files.values())
        return f"written to {target}: {counted(len(files), 'file')}, {size_text(size)}"


def _files(folder: Path) -> dict[str, Path]:
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }
