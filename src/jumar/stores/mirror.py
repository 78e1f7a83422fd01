"""Mirrors a local run directory to a store during training.

The run is written locally, like any run. A thread periodically checks for new and changed files,
uploads them, and replaces the manifest; only then does it delete objects that are no longer listed.
So even if the machine is lost, the store's manifest lists a complete state.
"""

import fcntl
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

from jumar.ground.errors import UserError
from jumar.ground.files import remove_folder, write_text
from jumar.ground.json_text import parse_json
from jumar.ground.paths import make_folder
from jumar.ground.text import counted, size_text
from jumar.stores.cache import cache_root
from jumar.stores.client import Client, ConditionFailed, NoSuchObject, StoreError, client_of
from jumar.stores.download import DownloadItem, download, sha256_of, total_size
from jumar.stores.location import Location
from jumar.stores.manifest import MANIFEST, Manifest, StoredFile, read_manifest
from jumar.stores.ownership import OWNER, Ownership, RunTakenOver

STATE = ".mirror.json"
"""File in a local copy that names the run in the store and the manifest it was last equal to."""
_PERIOD_S = 5.0
_LONGEST_PERIOD_S = 60.0
_UPLOADED = re.compile(r"checkpoints/step-\d{8,}/.+|[^/]+@[0-9a-f]{16}")
"""Keys written by a mirror; others may be files of users, or runs in subfolders."""
_IN_MEMORY = 32 * 2**20
"""Files up to this size are read only once, so that the hashed and the uploaded content agree."""


class _FileChanging(Exception):
    """A file changed or vanished during its upload; the next pass will upload it again."""


@dataclass(frozen=True, kw_only=True)
class _UploadedFile:
    """A file as it was when it was uploaded."""

    size: int
    modified_ns: int
    stored: StoredFile


def local_run(run: Location) -> Path:
    """Return the local directory of a run in a store."""
    return cache_root().parent / "runs" / run.scheme / run.bucket / run.key


def url_of_local(local: Path) -> str | None:
    """Return the URL of the run of which a directory is the local copy; None for any other."""
    try:
        scheme, bucket, *key = local.relative_to(cache_root().parent / "runs").parts
    except ValueError:
        return None
    return str(Location(scheme=scheme, bucket=bucket, key="/".join(key))) if key else None


def pull(run: Location, report: Callable[[str], None]) -> Path:
    """Update the local copy of a run to the state in its manifest.

    A copy from which this manifest was written is kept, even if files were added since; any other
    is renamed.

    Args:
        run: The run.
        report: Called with lines for the user.

    Returns:
        The local run directory; it does not exist if the store has no such run.

    Raises:
        UserError: The store does not respond, or an object differs from the manifest.
    """
    local = local_run(run)
    make_folder(local.parent)
    # All ranks of a machine do this at the same time.
    with local.with_name(f".{local.name}.pulling").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _pull(run, local, report)
    return local


def _pull(run: Location, local: Path, report: Callable[[str], None]) -> None:
    client = client_of(run)
    try:
        manifest = read_manifest(client, run)
    except NoSuchObject:
        manifest = None
    if local.exists():
        if _synced_manifest(local) == (None if manifest is None else manifest.e_tag):
            return
        if any(local.iterdir()):
            moved_copy = _free_name(local)
            local.rename(moved_copy)
            report(f"the local copy of {run} is out of sync; moved to {moved_copy}")
    if manifest is None:
        return
    unfinished = local.with_name(f".{local.name}.unfinished")
    remove_folder(unfinished)
    make_folder(unfinished)
    objects = manifest.objects(run)
    size = size_text(total_size(objects))
    report(f"fetching {run}: {counted(len(objects), 'file')}, {size}, into {local}")
    wanted = [
        DownloadItem(
            stored=stored_object, path=unfinished / name, sha256=manifest.files[name].sha256
        )
        for name, stored_object in objects.items()
    ]
    download(client, wanted, scratch=unfinished)
    _record_synced_manifest(unfinished, run, manifest.e_tag)
    remove_folder(local)
    unfinished.rename(local)


class Mirror:
    """Keeps a run's copy in a store up to date, in a thread, until it is closed.

    Args:
        run: The run in the store.
        ownership: The claimed right to write to it.
        report: Called with lines for the user.
        period_s: Interval between checks of the files.
    """

    def __init__(
        self,
        run: Location,
        ownership: Ownership,
        report: Callable[[str], None],
        period_s: float = _PERIOD_S,
    ) -> None:
        self._run, self._ownership, self._report, self._period_s = run, ownership, report, period_s
        self._local = local_run(run)
        self._client: Client = client_of(run)
        self._manifest = Manifest()
        self._leftover_keys: frozenset[str] = frozenset()
        self._uploaded: dict[str, _UploadedFile] = {}
        self._stop = Event()
        self._failure: UserError | None = None
        self._thread = Thread(target=self._keep_mirroring, name="mirror of a run", daemon=True)

    def start(self) -> None:
        """Read the current state of the store, and start mirroring.

        Raises:
            StoreError: The store does not respond.
        """
        try:
            self._manifest = read_manifest(self._client, self._run)
            self._leftover_keys = self._keys_of_earlier_jobs()
        except NoSuchObject:
            # Without a manifest, existing objects may not belong to a run, so they are kept.
            self._manifest = Manifest()
        self._thread.start()

    def _keys_of_earlier_jobs(self) -> frozenset[str]:
        """Return the keys that earlier jobs uploaded, whether the manifest lists them or not."""
        start = len(self._run.below("").key)
        keys = (stored.location.key[start:] for stored in self._client.list(self._run))
        return frozenset(key for key in keys if _UPLOADED.fullmatch(key))

    def close(self) -> UserError | None:
        """Bring the store up to date one last time, and release the run.

        Returns:
            Why the copy in the store is incomplete; None if it is complete.
        """
        self._stop.set()
        self._thread.join()
        failure = (
            self._failure
            if isinstance(self._failure, RunTakenOver)
            else self._try_to_mirror(last=True)
        )
        try:
            self._ownership.release()
        except StoreError as error:
            failure = failure or error
        return failure

    def _keep_mirroring(self) -> None:
        period = self._period_s
        while not self._stop.wait(period):
            previous_failure = self._failure
            self._failure = self._try_to_mirror(last=False)
            if self._failure is None:
                period = self._period_s
                if previous_failure is not None:
                    self._report(f"{self._run}: the store is up to date again")
                continue
            period = min(2 * period, _LONGEST_PERIOD_S)
            if isinstance(self._failure, RunTakenOver):
                self._report(f"{self._failure}\n  Training continues; nothing more is mirrored.")
                return
            if previous_failure is None:
                self._report(f"{self._failure}\n  Training continues; mirroring will be retried.")

    def _try_to_mirror(self, *, last: bool) -> UserError | None:
        try:
            for _ in range(3):
                try:
                    self._mirror_once()
                    if last:
                        self._settle()
                    return None
                except _FileChanging:
                    time.sleep(0.2)
        except UserError as error:
            return error
        except OSError as error:
            return UserError(f"cannot be read for the mirror: {error}", where=str(self._local))
        if last:
            return UserError("the files are still changing", where=str(self._local))
        return None

    def _mirror_once(self) -> None:
        """Upload new and changed files, then the manifest."""
        self._ownership.check()
        files = {
            name: self._uploaded_file(name, path)
            for name, path in sorted(_files(self._local).items())
        }
        if files != self._manifest.files:
            self._replace_manifest(files)

    def _uploaded_file(self, name: str, path: Path) -> StoredFile:
        """Return the file's entry for the manifest, after uploading it if necessary."""
        try:
            before = path.stat()
            last_upload = self._uploaded.get(name)
            if last_upload and (last_upload.size, last_upload.modified_ns) == (
                before.st_size,
                before.st_mtime_ns,
            ):
                return last_upload.stored
            content = path.read_bytes() if before.st_size <= _IN_MEMORY else None
            digest = sha256_of(path) if content is None else hashlib.sha256(content).hexdigest()
            size = before.st_size if content is None else len(content)
            stored_file = self._manifest.files.get(name)
            if stored_file is None or stored_file.sha256 != digest:
                stored_file = StoredFile(key=self._free_key(name, digest), size=size, sha256=digest)
                self._ownership.check()
                self._client.write(
                    self._run.below(stored_file.key), path if content is None else content
                )
            after = path.stat()
        except FileNotFoundError:
            raise _FileChanging from None
        if content is None and (after.st_size, after.st_mtime_ns) != (
            before.st_size,
            before.st_mtime_ns,
        ):
            raise _FileChanging
        # The modification time before reading: the next pass detects any later change.
        self._uploaded[name] = _UploadedFile(
            size=size, modified_ns=before.st_mtime_ns, stored=stored_file
        )
        return stored_file

    def _free_key(self, name: str, digest: str) -> str:
        """Return the file's name, with its hash appended if the manifest already uses that key."""
        used_keys = {file.key for file in self._manifest.files.values()}
        return f"{name}@{digest[:16]}" if name in used_keys else name

    def _settle(self) -> None:
        """Copy objects to keys equal to their file names, now that the run no longer changes."""
        renamed = dict(self._manifest.files)
        used_keys = {file.key for file in renamed.values()}
        for name, file in self._manifest.files.items():
            if file.key != name and name not in used_keys:
                self._ownership.check()
                content = (self._local / name).read_bytes()
                if hashlib.sha256(content).hexdigest() != file.sha256:
                    raise _FileChanging
                self._client.write(self._run.below(name), content)
                renamed[name] = replace(file, key=name)
        if renamed != self._manifest.files:
            self._replace_manifest(renamed)
            for name, file in renamed.items():
                self._uploaded[name] = replace(self._uploaded[name], stored=file)

    def _replace_manifest(self, files: Mapping[str, StoredFile]) -> None:
        self._ownership.check()
        content = Manifest(files=files).to_json(self._ownership.writer)
        try:
            e_tag = self._client.write_if(
                self._run.below(MANIFEST), content, e_tag=self._manifest.e_tag
            )
        except ConditionFailed:
            raise RunTakenOver(
                "another job has written to this run",
                where=str(self._run),
                todo="Choose another --run-dir.",
            ) from None
        obsolete_keys = {file.key for file in self._manifest.files.values()} | self._leftover_keys
        obsolete_keys -= {file.key for file in files.values()}
        self._leftover_keys = frozenset()
        self._manifest = Manifest(files=dict(files), e_tag=e_tag)
        _record_synced_manifest(self._local, self._run, e_tag)
        for key in sorted(obsolete_keys):
            self._client.delete(self._run.below(key))


def _files(local: Path) -> dict[str, Path]:
    """Return the complete files of a run; names with a leading dot are of files being written."""
    files: dict[str, Path] = {}
    if not local.is_dir():
        return files
    for path in local.rglob("*"):
        parts = path.relative_to(local).parts
        if not any(part.startswith(".") for part in parts) and path.is_file():
            name = "/".join(parts)
            if name not in (MANIFEST, OWNER):
                files[name] = path
    return files


def _synced_manifest(local: Path) -> str | None:
    """Return the ETag of the manifest that a local copy was last equal to."""
    try:
        parsed: Any = parse_json((local / STATE).read_text(encoding="utf-8"))
        return str(parsed["manifest"]) if parsed["manifest"] is not None else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _record_synced_manifest(local: Path, run: Location, e_tag: str | None) -> None:
    write_text(local / STATE, json.dumps({"run": str(run), "manifest": e_tag}) + "\n")


def _free_name(local: Path) -> Path:
    names = (f"{local.name}.aside-{number}" for number in count(1))
    return next(path for path in map(local.with_name, names) if not path.exists())
