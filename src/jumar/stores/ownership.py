"""One writer per run: a store has no locks, so an object records the owner.

The object is created on the condition that there is none, and renewed on the condition that it is
still the one that was written; both are decided by the store. A job that was killed stops renewing
it. Another job that wants the run watches whether the object changes during `JUMAR_STORE_LEASE`
seconds, by its own clock, and replaces it if not: no two clocks are ever compared.
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
from jumar.ground.json_text import parse_json
from jumar.stores.client import Absent, Changed, Client, StoreError
from jumar.stores.location import Location

OWNER = "owner.json"
LEASE_VARIABLE = "JUMAR_STORE_LEASE"
_LEASE_S = 60.0
_RENEWALS = 4
"""Signs of life within a lease."""


class LostRun(UserError):
    """Another job has taken over the run."""


class Ownership:
    """The right to write into a run of a store, held until it is released.

    Args:
        client: Of the run's bucket.
        run: The run.
        say: Called with lines for the user.
    """

    def __init__(self, client: Client, run: Location, say: Callable[[str], None]) -> None:
        self._client, self._run, self._say = client, run, say
        self._location = run.below(OWNER)
        self._lease_s = _lease_s()
        self._id = uuid.uuid4().hex
        self._count = 0
        self._e_tag: str | None = None
        self._stop = Event()
        self._lost: LostRun | None = None
        self._thread = Thread(target=self._renew_on, name="owner of a run", daemon=True)

    @property
    def writer(self) -> str:
        """A name unique to this writer."""
        return self._id

    def claim(self) -> None:
        """Become the owner.

        Raises:
            UserError: Another job is, and is alive.
            StoreError: The store does not answer, or refuses.
        """
        existing = self._existing()
        if existing is not None:
            self._wait_for_its_end(*existing)
        self._write(None if existing is None else existing[1])
        if existing is None:
            self._check_conditions()
        self._thread.start()

    def check(self) -> None:
        """Check that the run is still this job's.

        Raises:
            LostRun: Another job has taken it over.
        """
        if self._lost is not None:
            raise self._lost

    def release(self) -> None:
        """Release the run, so that the next job need not wait.

        Raises:
            StoreError: The store does not answer.
        """
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._e_tag is not None and self._lost is None:
            self._client.delete(self._location)

    def _write(self, e_tag: str | None) -> None:
        self._count += 1
        content = json.dumps({"id": self._id, "renewed": self._count, **_process()}).encode()
        try:
            self._e_tag = self._client.write_if(self._location, content, e_tag=e_tag)
        except Changed:
            raise LostRun(
                "another job has taken over this run",
                where=str(self._run),
                todo="Wait for it, stop it, or choose another --run-dir.",
            ) from None

    def _existing(self) -> tuple[dict[str, Any], str] | None:
        try:
            content, e_tag = self._client.read_small(self._location)
        except Absent:
            return None
        try:
            parsed = parse_json(content)
        except ValueError:
            parsed = None
        return (parsed if isinstance(parsed, dict) else {}), e_tag

    def _wait_for_its_end(self, owner: dict[str, Any], e_tag: str) -> None:
        """Return when the owner shows no sign of life."""
        if _is_dead(owner):
            return
        owner_name = f"process {owner.get('process')} on {owner.get('host')}"
        self._say(
            f"{self._run} belongs to {owner_name}; watching for {self._lease_s:.0f} s "
            "to see whether it is alive"
        )
        ends = time.monotonic() + self._lease_s
        while (remaining_s := ends - time.monotonic()) > 0:
            time.sleep(min(remaining_s, max(self._lease_s / _RENEWALS / 2, 0.05)))
            current = self._existing()
            if current is None or current[1] != e_tag:
                raise UserError(
                    f"another job is writing into this run: {owner_name}",
                    where=str(self._run),
                    todo="Wait for it, stop it, or choose another --run-dir.",
                )

    def _check_conditions(self) -> None:
        """Warn if a store ignores conditions; the same bytes do no harm."""
        content, e_tag = self._client.read_small(self._location)
        try:
            self._client.write_if(self._location, content + b" ", e_tag=None)
        except Changed:
            if self._client.has_conditions:
                return
        self._e_tag = self._client.head(self._location).e_tag or e_tag
        self._say(
            f"{self._run}: this store ignores write conditions, so nothing prevents two "
            "jobs from writing to the same run; make sure only one does"
        )

    def _renew_on(self) -> None:
        while not self._stop.wait(self._lease_s / _RENEWALS):
            try:
                self._write(self._e_tag)
            except LostRun as error:
                self._lost = error
                return
            except StoreError:
                continue  # the mirror says that the store does not answer


def _lease_s() -> float:
    text = os.environ.get(LEASE_VARIABLE, "")
    try:
        return max(float(text), 0.1) if text else _LEASE_S
    except ValueError:
        raise UserError(f"'{text}' is not a number of seconds", where=LEASE_VARIABLE) from None


def _process() -> dict[str, Any]:
    """The identity of this process on this machine."""
    return {
        "host": socket.gethostname(),
        "process": os.getpid(),
        "boot": _read("/proc/sys/kernel/random/boot_id"),
        "space": _link("/proc/self/ns/pid"),
        "started": _started("self"),
    }


def _is_dead(owner: dict[str, Any]) -> bool:
    """Whether the owner was a process of this machine that has ended; False if unknown."""
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
    """When a process started, in ticks since boot; empty if there is none."""
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
