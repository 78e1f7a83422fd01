"""Ensures that a run has one writer: a store has no locks, so an object records the owner.

The object is created only if it does not exist, and renewed only if it is still the version last
written; the store enforces both conditions. A killed job stops renewing it. Another job that wants
the run watches whether the object changes during `JUMAR_STORE_LEASE` seconds, by its own clock, and
replaces it if not, so clocks of different machines are never compared.
"""

import json
import os
import socket
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

from jumar.ground.errors import UserError
from jumar.stores.client import Client, ConditionFailed, NoSuchObject, StoreError, seconds_of
from jumar.stores.location import Location
from jumar.stores.manifest import json_object

OWNER = "owner.json"
LEASE_VARIABLE = "JUMAR_STORE_LEASE"
_LEASE_S = 60.0
_RENEWALS = 4
"""Number of renewals within a lease."""


class RunTakenOver(UserError):
    """Another job has taken over the run."""


class Ownership:
    """The exclusive right to write to a run in a store, until it is released.

    Args:
        client: The client of the run's bucket.
        run: The run.
        report: Called with lines for the user.
    """

    def __init__(self, client: Client, run: Location, report: Callable[[str], None]) -> None:
        self._client, self._run, self._report = client, run, report
        self._location = run.below(OWNER)
        self._lease_s = max(seconds_of(LEASE_VARIABLE, _LEASE_S), 0.1)
        self.writer = uuid.uuid4().hex
        """A name that is unique to this writer."""
        self._count = 0
        self._e_tag: str | None = None
        self._stop = Event()
        self._lost: RunTakenOver | None = None
        self._thread = Thread(target=self._keep_renewing, name="owner of a run", daemon=True)

    def claim(self) -> None:
        """Become the owner.

        Raises:
            UserError: Another running job owns the run.
            StoreError: The store does not respond, or rejects the request.
        """
        existing = self._existing()
        if existing is not None:
            self._await_expiry(*existing)
        self._write(None if existing is None else existing[1])
        if existing is None:
            self._check_conditions()
        self._thread.start()

    def check(self) -> None:
        """Check that this job still owns the run.

        Raises:
            RunTakenOver: Another job has taken it over.
        """
        if self._lost is not None:
            raise self._lost

    def release(self) -> None:
        """Release the run, so that the next job need not wait.

        Raises:
            StoreError: The store does not respond.
        """
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._e_tag is not None and self._lost is None:
            self._client.delete(self._location)

    def _write(self, e_tag: str | None) -> None:
        self._count += 1
        content = json.dumps({"id": self.writer, "renewed": self._count, **_process()}).encode()
        try:
            self._e_tag = self._client.write_if(self._location, content, e_tag=e_tag)
        except ConditionFailed:
            raise RunTakenOver(
                "another job has taken over this run",
                where=str(self._run),
                todo="Wait for it, stop it, or choose another --run-dir.",
            ) from None

    def _existing(self) -> tuple[dict[str, Any], str] | None:
        try:
            content, e_tag = self._client.read_small(self._location)
        except NoSuchObject:
            return None
        return json_object(content), e_tag

    def _await_expiry(self, owner: dict[str, Any], e_tag: str) -> None:
        """Wait until the owner's lease has expired; raise a UserError if the owner is alive."""
        if _is_dead(owner):
            return
        owner_name = f"process {owner.get('process')} on {owner.get('host')}"
        self._report(
            f"{self._run} belongs to {owner_name}; watching for {self._lease_s:.0f} s "
            "to see whether it is alive"
        )
        deadline = time.monotonic() + self._lease_s
        while (remaining_s := deadline - time.monotonic()) > 0:
            time.sleep(min(remaining_s, max(self._lease_s / _RENEWALS / 2, 0.05)))
            current = self._existing()
            if current is None or current[1] != e_tag:
                raise UserError(
                    f"another job is writing to this run: {owner_name}",
                    where=str(self._run),
                    todo="Wait for it, stop it, or choose another --run-dir.",
                )

    def _check_conditions(self) -> None:
        """Warn if the store ignores write conditions; a space is then appended, harmlessly."""
        content, e_tag = self._client.read_small(self._location)
        try:
            self._client.write_if(self._location, content + b" ", e_tag=None)
        except ConditionFailed:
            if self._client.has_conditions:
                return
        self._e_tag = self._client.head(self._location).e_tag or e_tag
        self._report(
            f"{self._run}: this store ignores write conditions, so nothing prevents two "
            "jobs from writing to the same run; make sure only one does"
        )

    def _keep_renewing(self) -> None:
        while not self._stop.wait(self._lease_s / _RENEWALS):
            try:
                self._write(self._e_tag)
            except RunTakenOver as error:
                self._lost = error
                return
            except StoreError:
                continue  # the mirror reports that the store does not respond


def _process() -> dict[str, Any]:
    """Return data that identify this process on this machine."""
    return {
        "host": socket.gethostname(),
        "process": os.getpid(),
        "boot": _read("/proc/sys/kernel/random/boot_id"),
        "space": _link("/proc/self/ns/pid"),
        "started": _started("self"),
    }


def _is_dead(owner: dict[str, Any]) -> bool:
    """Return whether the owner was a process of this machine that has ended; False if unknown."""
    this_process = _process()
    if not this_process["boot"] or not this_process["space"]:
        return False
    if owner.get("boot") != this_process["boot"] or owner.get("space") != this_process["space"]:
        return False
    process, started = owner.get("process"), owner.get("started")
    if not isinstance(process, int) or not started:
        return False
    return _started(str(process)) != started


def _started(process: str) -> str:
    """Return when a process started, in clock ticks since boot; empty if it is not running."""
    fields = _read(f"/proc/{process}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""
