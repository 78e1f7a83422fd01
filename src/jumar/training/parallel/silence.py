"""Detecting unresponsive machines: a cut cable or a power failure closes no connection.

A collective waits half an hour for its peers, because a first step may compile for minutes. If
there are several machines, each therefore writes a heartbeat to the store every few seconds. A rank
that misses another machine's heartbeats, or gets no response from the store, exits, so that
torchrun restarts with the remaining machines.
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
    """The machine of this rank, and the address of the store through which the ranks meet.

    Attributes:
        node: Number of this machine, as assigned by torchrun.
        nodes: Number of machines.
        is_local_leader: Whether this rank writes heartbeats and messages for its machine.
        host: Address of the store.
        port: Port of the store.
    """

    node: int
    nodes: int
    is_local_leader: bool
    host: str
    port: int

    def store(self, wait: timedelta | None = None) -> dist.TCPStore:
        """Open a new connection, since one that waits blocks all other users of it.

        Args:
            wait: How long to wait for a response; by default `SILENCE_S`.

        Raises:
            RuntimeError: The store does not respond.
        """
        wait = wait or timedelta(seconds=SILENCE_S)
        return dist.TCPStore(self.host, self.port, None, is_master=False, timeout=wait)

    @property
    def answers(self) -> bool:
        """Whether the store responds within a second."""
        try:
            self.store(timedelta(seconds=1))
        except (RuntimeError, dist.DistError):
            return False
        return True


def announced_place(variables: Mapping[str, str]) -> Place | None:
    """The place according to torchrun's variables; None if torchrun did not start the ranks."""
    try:
        return Place(
            node=int(variables["GROUP_RANK"]),
            nodes=int(variables["GROUP_WORLD_SIZE"]),
            is_local_leader=variables["LOCAL_RANK"] == "0",
            host=variables["MASTER_ADDR"],
            port=int(variables["MASTER_PORT"]),
        )
    except (KeyError, ValueError):
        return None


class SilenceWatch:
    """Sends this machine's heartbeats and watches those of the others.

    Args:
        place: The place of this rank.
        advice: Returns advice for after the exit, printed once per machine.
        end: Ends this process at once, even if a thread waits for a collective.
    """

    def __init__(
        self, place: Place, advice: Callable[[], str], *, end: Callable[[int], object] = os._exit
    ) -> None:
        self._place, self._advice, self._end = place, advice, end
        self._store = place.store()
        self._keys = [f"{_KEY}{node}" for node in range(place.nodes)]
        self._names = [""] * place.nodes
        self._beats = [""] * place.nodes
        self._seen = [time.monotonic()] * place.nodes
        self._answered = time.monotonic()
        self._stopped = threading.Event()
        if place.is_local_leader:
            self._beat("0")

    def start(self) -> None:
        """Start watching, once every machine has created its watch."""
        for work in (self._send_beats, self._watch_beats):
            threading.Thread(target=work, daemon=True).start()

    def stop(self) -> None:
        """Sign off, so that this machine does not count as lost."""
        self._stopped.set()
        if self._place.is_local_leader:
            with contextlib.suppress(RuntimeError, dist.DistError):  # the store may leave first
                self._beat(_LEFT)

    def _beat(self, text: str) -> None:
        self._store.set(self._keys[self._place.node], f"{text} {platform.node()}")

    def _send_beats(self) -> None:
        for count in itertools.count(1):
            if self._stopped.wait(BEAT_S):
                return
            try:
                if self._place.is_local_leader:
                    self._beat(str(count))
                beats = [value.decode() for value in self._store.multi_get(self._keys)]
            except dist.DistStoreError:
                continue  # a late response; `_watch_beats` checks the time since the last one
            except (RuntimeError, dist.DistError):
                return  # the connection is gone for good
            now = self._answered = time.monotonic()
            for node, beat in enumerate(beats):
                if beat != self._beats[node] or beat.startswith(_LEFT):
                    self._beats[node], self._seen[node] = beat, now
                    self._names[node] = beat.partition(" ")[2]

    def _watch_beats(self) -> None:
        before = time.monotonic()
        while not self._stopped.wait(BEAT_S / 2):
            now = time.monotonic()
            if now - before > SILENCE_S / 2:
                # This process itself was suspended (Ctrl-Z, an overloaded machine), so the state of
                # the others is not known.
                self._answered, self._seen = now, [now] * self._place.nodes
            before = now
            message = self._silent(now)
            if message and not self._stopped.is_set():
                if self._place.is_local_leader:
                    # Not through sys.stderr, which a hanging thread may have locked.
                    os.write(2, f"jumar: {message}\n  {self._advice()}\n".encode())
                self._end(EXIT_CODE)
                return

    def _silent(self, now: float) -> str:
        """The message about a machine or store that is silent for too long; empty if none is."""
        if now - self._answered > SILENCE_S:
            return store_lost(self._place)
        for node, last_seen in enumerate(self._seen):
            if now - last_seen > SILENCE_S:
                name = f" ({self._names[node]})" if self._names[node] else ""
                return f"node {node}{name} has sent no heartbeat for {SILENCE_S:.0f} s"
        return ""


def store_lost(place: Place) -> str:
    """The message about a store that does not respond."""
    return f"the store through which the ranks meet, {place.host}:{place.port}, does not respond"
