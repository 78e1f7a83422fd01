"""Time blocks of steps of a recipe or a run on request; started by `jumar tune speed`.

The process trains like `jumar train`, but discards the result. It first trains a few steps, hashes
the weights, evaluates and writes a checkpoint, to reach the peak memory of a run. Then it answers
requests: `measure N` on a line trains N steps. Replies are JSON, one per line.
"""

import json
import multiprocessing
import os
import re
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TextIO

import torch

from jumar.data.loading.faults import FaultTally
from jumar.data.samples import Fetched, SampleKey, SampleSet
from jumar.devices.contract import Device
from jumar.ground.errors import UserError
from jumar.ground.machine import memory_bytes, usable_cores
from jumar.observer import DATA, Observer
from jumar.runs.context import ChosenRun, RunContext, open_context
from jumar.runs.observed_steps import (
    SourceRequest,
    find_source,
    observing_trainer,
    starting_task,
)
from jumar.training.evaluation import evaluate
from jumar.training.keeper import CheckpointKeeper
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.state_hashes import combined, live_hashes
from jumar.training.trainer import Trainer

PROOF_STEPS: Final = 3
"""Steps after which the weights are hashed."""
_WARM_UP_STEPS: Final = 2
"""Steps between the evaluation and the first timed step."""
_NUM_EVAL_BATCHES: Final = 2
_ENDLESS: Final = 1 << 40


@dataclass(frozen=True, kw_only=True)
class SpeedRequest(SourceRequest):
    """The recipe or run to time.

    Attributes:
        scratch: An empty folder for a checkpoint.
    """

    scratch: Path


def answer_requests(request: SpeedRequest, requests: TextIO, replies: TextIO) -> int:
    """Train and time blocks of steps until there are no more requests.

    Args:
        request: The recipe or run.
        requests: Lines of the form `measure N`.
        replies: Receives a line of JSON when timing can start, and one after each block.

    Returns:
        The exit code.

    Raises:
        UserError: There is no such recipe or run, or it cannot be trained here.
    """

    def reply(content: dict[str, Any]) -> None:
        replies.write(json.dumps(content) + "\n")
        replies.flush()

    scratch = RunDirectory(request.scratch)
    with open_context(
        lambda ranks: replace(find_source(request, ranks), run=scratch),
        device=request.device,
        writes=False,
    ) as context:
        task = starting_task(context, context.chosen.checkpoint)
        blocks = _TimedBlocks(context, requests, reply)
        blocks.trainer = observing_trainer(
            context, task, context.chosen.plan, [blocks], Console(silent=True)
        )
        with suppress(_NoMoreRequests):
            blocks.trainer.observe(context.chosen.checkpoint)
    return 0


class _NoMoreRequests(Exception):
    """Raised when the requesting process has ended."""


class _TimedBlocks(Observer):
    """Pauses training between blocks of steps, and times the blocks.

    Attributes:
        trainer: The trainer; set before the first step.
    """

    span = _ENDLESS

    def __init__(
        self,
        context: RunContext[ChosenRun],
        requests: TextIO,
        reply: Callable[[dict[str, Any]], None],
    ) -> None:
        self._context, self._requests, self._reply = context, requests, reply
        self.trainer: Trainer | None = None
        self._proof: dict[str, Any] = {}
        self._left = PROOF_STEPS + _WARM_UP_STEPS
        self._block: _Block | None = None
        self._waited_s = 0.0

    def phase(self, name: str, detail: str = "") -> AbstractContextManager[object] | None:
        """Time how long the loop waits for data."""
        del detail
        return self._waiting() if name == DATA else None

    def begin_step(self, step: int) -> None:
        """Reply at the end of a block, and wait for the next request."""
        del step
        if self._left == _WARM_UP_STEPS and self._block is None:
            self._hash_and_save()
        if self._left == 0:
            if self._block is None:
                self._reply({"kind": "ready", **self._proof, **self._described()})
            else:
                self._reply({"kind": "block", **self._block.ended(self._context.device)})
            self._left = self._requested()
            self._block = _Block(self._left, lambda: self._waited_s)
        self._left -= 1

    def _requested(self) -> int:
        words = self._requests.readline().split()
        if len(words) != 2 or words[0] != "measure":
            raise _NoMoreRequests
        return max(1, int(words[1]))

    @contextmanager
    def _waiting(self) -> Generator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self._waited_s += time.perf_counter() - start

    def _hash_and_save(self) -> None:
        """Hash the weights, then evaluate and save to reach the peak memory of a run."""
        trainer = self.trainer
        assert trainer is not None
        self._proof = {"hashes": combined(live_hashes(trainer.state))}
        try:
            _evaluate_some(trainer)
        except UserError as error:
            self._proof["not_evaluated"] = error.what
        keeper = CheckpointKeeper(
            trainer.run,
            trainer.plan,
            trainer.ranks,
            trainer.task.headline,
            epoch_size=len(trainer.task.train_data),
            steps_per_epoch=trainer.steps_per_epoch,
        )
        with closing(keeper):
            keeper.save(trainer.state)
            keeper.finish()

    def _described(self) -> dict[str, Any]:
        trainer, device = self.trainer, self._context.device
        assert trainer is not None
        memory = memory_peak(device)
        total = device.memory_total_bytes()
        free = memory_bytes()[0] if device.on_host else total - memory
        return {
            "memory_bytes": memory,
            "memory_free_bytes": free,
            "device": device.kind,
            "device_name": device.name,
            "on_host": device.on_host,
            "cores": usable_cores(),
            "threads": torch.get_num_threads(),
            "workers": trainer.workers,
        }


class _Block:
    """The clocks of a block of steps, which begins when it is created."""

    def __init__(self, steps: int, waited_s: Callable[[], float]) -> None:
        self._steps, self._waited_s = steps, waited_s
        self._waited_before = waited_s()
        self._cpu_before, self._loader_before = time.process_time(), _loader_cpu_s()
        self._begun = time.perf_counter()

    def ended(self, device: Device) -> dict[str, Any]:
        """Wait for the device and return the timing of the block."""
        issued = time.perf_counter()
        device.synchronize()
        ended = time.perf_counter()
        return {
            "steps": self._steps,
            "seconds": ended - self._begun,
            "queued_s": ended - issued,
            "data_s": self._waited_s() - self._waited_before,
            "cpu_s": time.process_time() - self._cpu_before,
            "loader_cpu_s": _loader_cpu_s() - self._loader_before,
            "memory_bytes": memory_peak(device),
        }


class _FirstSamples(SampleSet):
    """The first samples of a set."""

    def __init__(self, samples: SampleSet, length: int) -> None:
        self._samples, self._length = samples, min(length, len(samples))

    def __len__(self) -> int:
        return self._length

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        return self._samples.fetch(keys)


def _evaluate_some(trainer: Trainer) -> None:
    """Score a few batches, with the averaged weights if there are any.

    Raises:
        UserError: The task cannot be scored on so few samples, or they cannot be read.
    """
    task, plan = trainer.task, trainer.plan
    eval_data = task.eval_data
    if eval_data is None:
        return
    task.eval_data = _FirstSamples(eval_data, _NUM_EVAL_BATCHES * plan.eval_batch_size)
    try:
        with trainer.state.scored_weights():
            evaluate(
                task,
                trainer.policy,
                device=trainer.device,
                ranks=trainer.ranks,
                batch_size=plan.eval_batch_size,
                workers=trainer.workers,
                tally=FaultTally(plan.skip_corrupt),
                console=Console(silent=True),
            )
    finally:
        task.eval_data = eval_data


def memory_peak(device: Device) -> int:
    """Return the device's peak memory in bytes; on a host, including the loader processes."""
    peak = device.memory_peak_bytes() or 0
    if not device.on_host:
        return peak
    return peak + sum(_peak_of(process) for process in _loader_processes())


def _peak_of(process: int) -> int:
    match = re.search(r"VmHWM:\s+(\d+) kB", _read(f"/proc/{process}/status"))
    return int(match[1]) * 1024 if match else 0


def _loader_cpu_s() -> float:
    """Return the CPU time of the loader processes so far, in seconds."""
    ticks = 0
    for process in _loader_processes():
        # The name in parentheses may contain spaces; user and system time are fields 14 and 15.
        fields = _read(f"/proc/{process}/stat").rpartition(")")[2].split()
        ticks += sum(int(field) for field in fields[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def _loader_processes() -> list[int]:
    return [process.pid for process in multiprocessing.active_children() if process.pid is not None]


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
