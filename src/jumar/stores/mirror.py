"""Mirrors a local run directory to a store during training.

The run is written locally, like any run. A thread periodically checks for new and changed files,
uploads them, and then replaces the manifest; only then are objects deleted that no manifest names.
So whenever the machine is lost, the store's manifest names a complete state.
"""

import fcntl
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

from jumar.ground.errors import UserError
from jumar.ground.files import remove_folder, write_text
from jumar.ground.json_text import parse_json
from jumar.ground.paths import make_folder
from jumar.ground.text import counted, size_text
from jumar.stores.cache import cache_root
from jumar.stores.client import Absent, Changed, Client, StoreError, client_of
from jumar.stores.download import Wanted, download, sha256_of
from jumar.stores.location import Location
from jumar.stores.manifest import MANIFEST, KeptFile, Manifest, read_manifest
from jumar.stores.ownership import OWNER, LostRun, Ownership

STATE = ".mirror.json"
"""The store's run that a local directory is a copy of."""
_PERIOD_S = 5.0
_LONGEST_PERIOD_S = 60.0
_UPLOADED = re.compile(r"checkpoints/step-\d{8,}/.+|[^/]+@[0-9a-f]{16}")
"""Keys as a mirror writes them; others may be a user's files, or runs in subfolders."""
_IN_MEMORY = 32 * 2**20
"""Files up to this size are read once, so that what is hashed is what is uploaded."""


class Unsettled(Exception):
    """A file changed or vanished during its upload; the next pass will find it at rest."""


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """A file as it was when it was uploaded."""

    size: int
    changed_ns: int
    kept: KeptFile


def local_run(run: Location) -> Path:
    """Local directory of a store's run."""
    return cache_root().parent / "runs" / run.scheme / run.bucket / run.key


def url_of_local(local: Path) -> str | None:
    """The URL of the run that a directory is the local copy of; None for any other directory."""
    try:
        scheme, bucket, *key = local.relative_to(cache_root().parent / "runs").parts
    except ValueError:
        return None
    return str(Location(scheme=scheme, bucket=bucket, key="/".join(key))) if key else None


def pull(run: Location, say: Callable[[str], None]) -> Path:
    """Bring the local copy of a run to the state in its manifest.

    A copy from which this manifest was made is kept, even if it has grown since; another is set
    aside.

    Args:
        run: The run.
        say: Called with lines for the user.

    Returns:
        The local run directory; it does not exist if the store has no such run.

    Raises:
        UserError: The store does not answer, or an object is not what the manifest says.
    """
    local = local_run(run)
    make_folder(local.parent)
    # All ranks of a machine do this at once.
    with local.with_name(f".{local.name}.pulling").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _pull(run, local, say)
    return local


def _pull(run: Location, local: Path, say: Callable[[str], None]) -> None:
    client = client_of(run)
    try:
        manifest = read_manifest(client, run)
    except Absent:
        manifest = None
    if local.exists():
        if _base(local) == (None if manifest is None else manifest.e_tag):
            return
        if any(local.iterdir()):
            moved_copy = _free_name(local)
            local.rename(moved_copy)
            say(f"the local copy of {run} is out of sync; moved to {moved_copy}")
    if manifest is None:
        return
    unfinished = local.with_name(f".{local.name}.unfinished")
    remove_folder(unfinished)
    make_folder(unfinished)
    objects = manifest.objects(run)
    size = size_text(sum(file.size for file in manifest.files.values()))
    say(f"fetching {run}: {counted(len(objects), 'file')}, {size}, into {local}")
    wanted = [
        Wanted(stored=stored_object, path=unfinished / name, sha256=manifest.files[name].sha256)
        for name, stored_object in objects.items()
    ]
    if wanted:
        download(client, wanted, scratch=unfinished)
    _note_base(unfinished, run, manifest.e_tag)
    remove_folder(local)
    unfinished.rename(local)


class Mirror:
    """Keeps a run's copy in a store up to date, from a thread, until it is closed.

    Args:
        run: The run in the store, which must be owned.
        ownership: The right to write there.
        say: Called with lines for the user.
        period_s: Seconds between two checks of the files.
    """

    def __init__(
        self,
        run: Location,
        ownership: Ownership,
        say: Callable[[str], None],
        period_s: float = _PERIOD_S,
    ) -> None:
        self._run, self._ownership, self._say, self._period_s = run, ownership, say, period_s
        self._local = local_run(run)
        self._client: Client = client_of(run)
        self._manifest = Manifest()
        self._earlier_keys: frozenset[str] = frozenset()
        self._seen: dict[str, _Seen] = {}
        self._stop = Event()
        self._failure: UserError | None = None
        self._thread = Thread(target=self._mirror_on, name="mirror of a run", daemon=True)

    def start(self) -> None:
        """Start from the current state of the store.

        Raises:
            StoreError: The store does not answer.
        """
        try:
            self._manifest = read_manifest(self._client, self._run)
            self._earlier_keys = self._keys_of_earlier_jobs()
        except Absent:
            # Without a manifest nothing shows that what is here is a run: it may be anybody's.
            self._manifest = Manifest()
        self._thread.start()

    def _keys_of_earlier_jobs(self) -> frozenset[str]:
        """Keys that earlier jobs uploaded, named by a manifest or not."""
        start = len(self._run.below("").key)
        keys = (stored.location.key[start:] for stored in self._client.list(self._run))
        return frozenset(key for key in keys if _UPLOADED.fullmatch(key))

    def close(self) -> UserError | None:
        """Bring the store up to date one last time, and release the run.

        Returns:
            Why the store does not have all of the run; None if it has.
        """
        self._stop.set()
        self._thread.join()
        failure = self._failure if isinstance(self._failure, LostRun) else self._tried(last=True)
        try:
            self._ownership.release()
        except StoreError as error:
            failure = failure or error
        return failure

    def _mirror_on(self) -> None:
        period = self._period_s
        while not self._stop.wait(period):
            previous_failure = self._failure
            self._failure = self._tried(last=False)
            if self._failure is None:
                period = self._period_s
                if previous_failure is not None:
                    self._say(f"{self._run}: the store is up to date again")
                continue
            period = min(2 * period, _LONGEST_PERIOD_S)
            if isinstance(self._failure, LostRun):
                self._say(f"{self._failure}\n  Training continues; nothing more is mirrored.")
                return
            if previous_failure is None:
                self._say(f"{self._failure}\n  Training continues; mirroring will be tried again.")

    def _tried(self, *, last: bool) -> UserError | None:
        try:
            for _ in range(3):
                try:
                    self._pass()
                    if last:
                        self._settle()
                    return None
                except Unsettled:
                    time.sleep(0.2)
        except UserError as error:
            return error
        except OSError as error:
            return UserError(f"cannot be read for the mirror: {error}", where=str(self._local))
        if last:
            return UserError("the files are still changing", where=str(self._local))
        return None

    def _pass(self) -> None:
        """Upload new and changed files, then the manifest."""
        self._ownership.check()
        files: dict[str, KeptFile] = {}
        for name, path in sorted(_files(self._local).items()):
            files[name] = self._uploaded_file(name, path)
        if files != self._manifest.files:
            self._replace_manifest(files)

    def _uploaded_file(self, name: str, path: Path) -> KeptFile:
        """The file as in the store, uploaded first if it is missing there."""
        try:
            before = path.stat()
            last_upload = self._seen.get(name)
            if last_upload and (last_upload.size, last_upload.changed_ns) == (
                before.st_size,
                before.st_mtime_ns,
            ):
                return last_upload.kept
            content = path.read_bytes() if before.st_size <= _IN_MEMORY else None
            digest = sha256_of(path) if content is None else hashlib.sha256(content).hexdigest()
            size = before.st_size if content is None else len(content)
            kept_file = self._manifest.files.get(name)
            if kept_file is None or kept_file.sha256 != digest:
                kept_file = KeptFile(key=self._free_key(name, digest), size=size, sha256=digest)
                self._ownership.check()
                self._client.write(
                    self._run.below(kept_file.key), path if content is None else content
                )
            after = path.stat()
        except FileNotFoundError:
            raise Unsettled from None
        if content is None and (after.st_size, after.st_mtime_ns) != (
            before.st_size,
            before.st_mtime_ns,
        ):
            raise Unsettled
        # The time before the file was read: a change since then is seen in the next pass.
        self._seen[name] = _Seen(size=size, changed_ns=before.st_mtime_ns, kept=kept_file)
        return kept_file

    def _free_key(self, name: str, digest: str) -> str:
        """The file's own name, or one with its hash if the manifest has an object of that name."""
        used_keys = {file.key for file in self._manifest.files.values()}
        return f"{name}@{digest[:16]}" if name in used_keys else name

    def _settle(self) -> None:
        """Rename objects to their file names, now that nothing changes any more."""
        renamed = dict(self._manifest.files)
        used_keys = {file.key for file in renamed.values()}
        for name, file in self._manifest.files.items():
            if file.key != name and name not in used_keys:
                self._ownership.check()
                content = (self._local / name).read_bytes()
                if hashlib.sha256(content).hexdigest() != file.sha256:
                    raise Unsettled
                self._client.write(self._run.below(name), content)
                renamed[name] = KeptFile(key=name, size=file.size, sha256=file.sha256)
        if renamed != self._manifest.files:
            self._replace_manifest(renamed)
            for name, file in renamed.items():
                last_upload = self._seen[name]
                self._seen[name] = _Seen(
                    size=last_upload.size, changed_ns=last_upload.changed_ns, kept=file
                )

    def _replace_manifest(self, files: Mapping[str, KeptFile]) -> None:
        self._ownership.check()
        new_manifest = Manifest(files=dict(files), e_tag=self._manifest.e_tag)
        try:
            e_tag = self._client.write_if(
                self._run.below(MANIFEST),
                new_manifest.to_json(self._ownership.writer),
                e_tag=self._manifest.e_tag,
            )
        except Changed:
            raise LostRun(
                "another job has written into this run",
                where=str(self._run),
                todo="Choose another --run-dir.",
            ) from None
        obsolete_keys = {file.key for file in self._manifest.files.values()} | self._earlier_keys
        obsolete_keys -= {file.key for file in files.values()}
        self._earlier_keys = frozenset()
        self._manifest = Manifest(files=dict(files), e_tag=e_tag)
        _note_base(self._local, self._run, e_tag)
        for key in sorted(obsolete_keys):
            self._client.delete(self._run.below(key))


def _files(local: Path) -> dict[str, Path]:
    """The complete files of a run: files being written have names with a leading dot."""
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


def _base(local: Path) -> str | None:
    """The ETag of the manifest that a local copy last matched."""
    try:
        parsed: Any = parse_json((local / STATE).read_text(encoding="utf-8"))
        return str(parsed["manifest"]) if parsed["manifest"] is not None else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _note_base(local: Path, run: Location, e_tag: str | None) -> None:
    write_text(local / STATE, json.dumps({"run": str(run), "manifest": e_tag}) + "\n")


def _free_name(local: Path) -> Path:
    number = 1
    while (free_path := local.with_name(f"{local.name}.aside-{number}")).exists():
        number += 1
    return free_path
