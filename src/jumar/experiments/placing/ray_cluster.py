"""Runs on a Ray cluster, with NPUs and GPUs as resources.

Ray's own retries are disabled: a run lost with its worker or node is restarted by this module after
checking its directory, since it may have finished before its worker was lost.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from jumar.experiments.placing.contract import OUTPUT, Ended, Job, Place
from jumar.experiments.placing.ray_worker import Errand, RayWorker, Returned
from jumar.experiments.run_reading import read_run
from jumar.experiments.sweep_plan import stopping_signal
from jumar.ground.errors import UserError
from jumar.ground.text import counted, first_line

MAX_LOSSES = 5
"""Number of losses after which a run counts as failed, since it may be the cause of the losses."""
ray: Any = import_module("ray")
_errors: Any = import_module("ray.exceptions")

_AUTO = "auto"
_RESOURCES = {"npu": "NPU", "cuda": "GPU", "cpu": "CPU"}
"""Ray's name of each device; it detects Ascend cards itself, or is told by --resources."""
_FORWARDED_PREFIXES = ("PYTHONPATH", "JUMAR_", "ONEDNN_", "ATEN_")
_POLL_INTERVAL_S = 1.0


@dataclass(kw_only=True)
class _Placed:
    job: Job
    actor: Any
    reply: Any
    losses: int = 0
    is_stopped: bool = False


class RayCluster(Place):
    """Runs in actors of a Ray cluster, one per device; an actor computes one run at a time.

    Every node must see the run directories and the working folder at the same paths, and have
    jumar installed.

    Args:
        address: `ray` for the cluster that this machine belongs to, or a new one on this machine
            if there is none; `ray://HOST:PORT` for another cluster.
        device: The value of --device: `auto` selects NPUs, otherwise GPUs, otherwise cores.
        at_once: Maximum number of parallel runs; 0 for as many as the cluster has devices.
        say: Prints a line.

    Raises:
        UserError: There is no such cluster, or it has no such device.
    """

    def __init__(
        self, address: str, *, device: str, at_once: int = 0, say: Callable[[str], None] = print
    ) -> None:
        super().__init__()
        self._at_once, self._say = at_once, say
        _connect(address, say)
        self._device = _device_of(device)
        self._placed: list[_Placed] = []
        self._idle: list[Any] = []
        nodes = sum(bool(node["Alive"]) for node in ray.nodes())
        self._say(
            f"Ray: {counted(nodes, 'node')}, {counted(self._capacity(), 'run')} at once, one "
            f"{_RESOURCES[self._device]} each"
        )

    @property
    def running(self) -> Sequence[Job]:
        """See `Place`."""
        return [placed.job for placed in self._placed]

    @property
    def shares_terminal(self) -> bool:
        """See `Place`: output is printed on another machine."""
        return False

    @property
    def has_room(self) -> bool:
        """Whether the cluster currently has a device for another run."""
        return not self._placed or len(self._placed) < self._capacity()

    def start(self, job: Job) -> None:
        """See `Place`."""
        self._placed.append(self._started(job))

    def stop(self, job: Job) -> None:
        """See `Place`."""
        for placed in self._placed:
            if placed.job is job and not placed.is_stopped:
                placed.is_stopped = True
                placed.actor.stop.remote()

    def wait(self, seconds: float) -> list[Ended]:
        """See `Place`; lost runs are restarted."""
        deadline = time.monotonic() + seconds
        # Idle actors occupy devices that a lost run may need.
        self._idle.clear()
        while self._placed:
            # In short intervals, since signals are only handled between them.
            timeout = min(_POLL_INTERVAL_S, max(0.0, deadline - time.monotonic()))
            replies = [placed.reply for placed in self._placed]
            ready, _ = ray.wait(replies, num_returns=len(replies), timeout=timeout)
            ended = [
                ended
                for placed in [item for item in self._placed if item.reply in ready]
                if (ended := self._ended(placed)) is not None
            ]
            if ended or time.monotonic() >= deadline:
                return ended
        return []

    def on_signal(self, number: int) -> None:
        """See `Place`."""
        del number
        for placed in self._placed:
            self.stop(placed.job)

    def __exit__(self, *error: object) -> None:
        """See `Place`; runs that are still running after an error end with their workers."""
        super().__exit__(*error)
        self._placed.clear()
        self._idle.clear()

    def _ended(self, placed: _Placed) -> Ended | None:
        """Return the outcome of a run; None if it was lost and has been restarted."""
        self._placed.remove(placed)
        try:
            returned: Returned = ray.get(placed.reply)
        except _errors.RayTaskError:
            raise
        except _errors.RayError as error:
            return self._after_loss(placed, type(error).__name__)
        self._idle.append(placed.actor)
        if returned.code is None:
            raise UserError(
                f"the node '{returned.node}' does not see this folder",
                where=returned.missing,
                todo="Choose a folder that all nodes of the cluster share, with --to.",
            )
        if self.stopped_by:
            return Ended(job=placed.job, code=128 + self.stopped_by)
        is_interrupted = stopping_signal(returned.code) and not placed.is_stopped
        # The lock of a run directory may briefly outlive a lost worker; the exit code is then 2.
        if is_interrupted or (placed.losses and returned.code == 2):
            return self._after_loss(placed, f"ended by {returned.node}")
        return Ended(job=placed.job, code=returned.code)

    def _after_loss(self, placed: _Placed, reason: str) -> Ended | None:
        job = placed.job
        if read_run(job.directory).state == "finished":
            return Ended(job=job, code=0)
        if self.stopped_by or placed.is_stopped:
            return Ended(job=job, code=128 + (self.stopped_by or signal.SIGTERM))
        if placed.losses >= MAX_LOSSES:
            note = f"lost {placed.losses + 1} times with its worker ({reason})"
            return Ended(job=job, code=-signal.SIGKILL, note=note)
        self._say(f"{job.name} was lost with its worker ({reason}); restarting it")
        restarted = self._started(job)
        restarted.losses = placed.losses + 1
        self._placed.append(restarted)
        return None

    def _started(self, job: Job) -> _Placed:
        output = job.output or job.directory / OUTPUT
        errand = Errand(
            command=tuple(job.command(self._device)),
            caller_python=sys.executable,
            folder=str(Path.cwd()),
            output=str(output.absolute()),
            environment={
                name: value
                for name, value in os.environ.items()
                if name.startswith(_FORWARDED_PREFIXES)
            },
        )
        actor = self._idle.pop() if self._idle else self._new_actor()
        return _Placed(job=job, actor=actor, reply=actor.run.remote(errand))

    def _new_actor(self) -> Any:
        resources: dict[str, Any] = {
            "npu": {"num_cpus": 0, "resources": {"NPU": 1}},
            "cuda": {"num_cpus": 0, "num_gpus": 1},
            "cpu": {"num_cpus": 1},
        }[self._device]
        remote: Any = ray.remote(RayWorker)
        return remote.options(max_concurrency=2, max_restarts=0, **resources).remote()

    def _capacity(self) -> int:
        devices = int(ray.cluster_resources().get(_RESOURCES[self._device], 0))
        return max(1, min(devices, self._at_once or devices))


def _connect(address: str, say: Callable[[str], None]) -> None:
    """Connect to a cluster.

    Raises:
        UserError: The cluster cannot be reached.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    quiet["ignore_reinit_error"] = True
    cluster_address = "auto" if address == "ray" else address
    try:
        ray.init(address=cluster_address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        if address != "ray" or os.environ.get("RAY_ADDRESS"):
            message = first_line(str(error))
            raise UserError(
                f"no Ray cluster answers: {message}",
                where=os.environ.get("RAY_ADDRESS", address) if address == "ray" else address,
                todo="Start one with `ray start --head` and use its client port, 10001: "
                "--on ray://HOST:10001.",
            ) from None
        say("no Ray cluster is running here: starting one on this machine")
        ray.init(include_dashboard=False, **quiet)


def _device_of(device: str) -> str:
    """Return the kind of device that the runs use.

    Raises:
        UserError: The cluster has no such device, or the request names a particular one.
    """
    resources = ray.cluster_resources()
    if device == _AUTO:
        return next(
            kind for kind, name in _RESOURCES.items() if resources.get(name) or kind == "cpu"
        )
    if device not in _RESOURCES:
        raise UserError(
            f"cannot be '{device}' with --on ray, which chooses the device of each run",
            where="--device",
            todo=f"Allowed: {_AUTO}, {', '.join(_RESOURCES)}.",
        )
    if not resources.get(_RESOURCES[device]):
        available = ", ".join(name for name in ("NPU", "GPU", "CPU") if resources.get(name))
        raise UserError(
            f"the Ray cluster has no {_RESOURCES[device]}, only {available}",
            where="--device",
            todo="If Ray does not detect the cards of a node, announce them: "
            f"ray start --resources '{{\"{_RESOURCES[device]}\": 8}}'.",
        )
    return device
