"""Detects unresponsive machines: a cut cable or a power failure closes no connection.

A collective waits half an hour for its peers, because a first step may compile for minutes. With
several machines, each therefore writes a heartbeat to the store every few seconds. A rank that
misses another machine's heartbeats, or gets no answer from the store, exits, so that torchrun
restarts with the remaining machines.
"""

# Torch documents TCPStore under this name but does not export it.
# pyright: reportPrivateImportUsage=false

import contextlib
import itertools
import os
import platform
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import torch.distributed as dist

from jumar.ground.errors import EXIT_CODE

BEAT_S = 2.0
"""Time between two heartbeats."""
SILENCE_S = 15.0
"""Time without a heartbeat after which a machine counts as lost."""

_LEFT = "left"
_KEY = "jumar/alive/"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where this rank runs, and where the ranks meet.

    Attributes:
        node: Number of this machine among all of them, in torchrun's count.
        speaks: Whether this rank writes heartbeats and messages for its machine.
        host: Address of the store.
        port: Port of the store.
    """

    node: int
    nodes: int
    speaks: bool
    host: str
    port: int

    def store(self, wait: timedelta | None = None) -> dist.TCPStore:
        """A separate connection, since a waiting one holds a lock that others need.

        Args:
            wait: How long to wait for an answer; `SILENCE_S` without it.

        Raises:
            RuntimeError: The store does not answer.
        """
        wait = wait or timedelta(seconds=SILENCE_S)
        return dist.TCPStore(self.host, self.port, None, is_master=False, timeout=wait)

    @property
    def answers(self) -> bool:
        """Whether the store answers; takes a second or so if not."""
        try:
            wait = timedelta(seconds=1)
            dist.TCPStore(self.host, self.port, None, is_master=False, timeout=wait)
        except (RuntimeError, dist.DistError):
            return False
        return True


def announced_place(variables: Mapping[str, str]) -> Place | None:
    """The place according to torchrun's variables; None if something else started the ranks."""
    try:
        return Place(
            node=int(variables["GROUP_RANK"]),
            nodes=int(variables["GROUP_WORLD_SIZE"]),
            speaks=variables["LOCAL_RANK"] == "0",
            host=variables["MASTER_ADDR"],
            port=int(variables["MASTER_PORT"]),
        )
    except (KeyError, ValueError):
        return None


class SilenceWatch:
    """Sends this machine's heartbeats and watches those of the others.

    Args:
        place: Where this rank runs.
        advice: Returns advice for after the exit, printed once per machine.
        end: Ends this process; others would wait for a collective that never returns.
    """

    def __init__(
        self, place: Place, advice: Callable[[], str], *, end: Callable[[int], object] = os._exit
    ) -> None:
        self._place, self._advice, self._end = place, advice, end
        self._store = place.store()
        self._keys = [f"{_KEY}{node}" for node in range(place.nodes)]
        self._names = [""] * place.nodes
        self._signs = [""] * place.nodes
        self._seen = [time.monotonic()] * place.nodes
        self._answered = time.monotonic()
        self._stopped = threading.Event()
        if place.speaks:
            self._sign("0")

    def start(self) -> None:
        """Start watching; every machine must have created its own watch before."""
        for work in (self._keep_signing, self._keep_judging):
            threading.Thread(target=work, daemon=True).start()

    def stop(self) -> None:
        """Sign off, so that this machine does not count as lost."""
        self._stopped.set()
        if self._place.speaks:
            with contextlib.suppress(RuntimeError, dist.DistError):  # the store may leave first
                self._sign(_LEFT)

    def _sign(self, text: str) -> None:
        self._store.set(self._keys[self._place.node], f"{text} {platform.node()}")

    def _keep_signing(self) -> None:
        for count in itertools.count(1):
            if self._stopped.wait(BEAT_S):
                return
            try:
                if self._place.speaks:
                    self._sign(str(count))
                signs = [value.decode() for value in self._store.multi_get(self._keys)]
            except dist.DistStoreError:
                continue  # answered too late; the judge counts the time since the last answer
            except (RuntimeError, dist.DistError):
                return  # the connection is gone for good
            now = self._answered = time.monotonic()
            for node, sign in enumerate(signs):
                if sign != self._signs[node] or sign.startswith(_LEFT):
                    self._signs[node], self._seen[node] = sign, now
                    self._names[node] = sign.partition(" ")[2]

    def _keep_judging(self) -> None:
        before = time.monotonic()
        while not self._stopped.wait(BEAT_S / 2):
            now = time.monotonic()
            if now - before > SILENCE_S / 2:
                # This process was stopped itself (Ctrl-Z, a full machine), so nothing is known.
                self._answered, self._seen = now, [now] * self._place.nodes
            before = now
            message = self._silent(now)
            if message and not self._stopped.is_set():
                if self._place.speaks:
                    # Not through sys.stderr, whose lock a thread that hangs may hold.
                    os.write(2, f"jumar: {message}\n  {self._advice()}\n".encode())
                self._end(EXIT_CODE)
                return

    def _silent(self, now: float) -> str:
        """Machines without a heartbeat for too long; empty if there are none."""
        if now - self._answered > SILENCE_S:
            return store_lost(self._place)
        for node, last_seen in enumerate(self._seen):
            if now - last_seen > SILENCE_S:
                name = f" ({self._names[node]})" if self._names[node] else ""
                return f"node {node}{name} has given no sign of life for {SILENCE_S:.0f} s"
        return ""


def store_lost(place: Place) -> str:
    """The sentence about a store that does not answer."""
    return f"{place.host}:{place.port}, where the ranks meet, does not answer"
