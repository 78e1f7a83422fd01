"""Replay steps of a run and hash the state after each, in a separate process per rank.

Threads and op lists are settings of a whole process, and the compared runs may differ in them.
"""

# Torch documents TCPStore under this name but does not export it.
# pyright: reportPrivateImportUsage=false

import contextlib
import hashlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import torch
import torch.distributed as dist

from jumar.ground.errors import UserError
from jumar.ground.processes import begin_worker
from jumar.ground.text import counted
from jumar.observer import Observer
from jumar.precision.recording.observing import DumpObserver
from jumar.precision.recording.recorder import RecordSettings
from jumar.runs.context import open_context
from jumar.runs.dump import DumpRequest, chosen_run, step_recorder
from jumar.runs.observed_steps import NOWHERE, check_step, observing_trainer, starting_task
from jumar.training.progress import Console
from jumar.training.state_hashes import Hashes, StepHashes

_HOST: Final = "127.0.0.1"
_GRACE_S: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The steps to replay.

    Attributes:
        run: The run.
        first: Number of finished steps at the start: a checkpoint's, or 0 for the initial weights.
        until: Number of finished steps at the end.
        assignments: Changed fields.
        imports: Modules to import first.
        device: The value of `--device`.
        dump: Folder in which to record the last step; None for hashes only.
        record: The settings of the recording.
    """

    run: Path
    first: int
    until: int
    assignments: Sequence[str]
    imports: Sequence[str]
    device: str
    dump: Path | None = None
    record: RecordSettings = field(default_factory=RecordSettings)


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """The result of a replay.

    Attributes:
        steps: The hashes of the state, one per part, by the number of finished steps; when
            recording, only after the last step.
        last: The hashes of the state after the last step.
    """

    steps: Mapping[int, Mapping[str, str]]
    last: Hashes


class Replayer:
    """Replays steps of one run.

    Args:
        name: Name of the run in messages.
        pools: The processes to replay in, one per rank.
        pids: Their process ids.
        say: Prints a line before each replay.

    Attributes:
        count: Number of replays so far.
    """

    def __init__(
        self,
        name: str,
        pools: Sequence[ProcessPoolExecutor],
        pids: Sequence[Future[int]],
        say: Callable[[str], None],
    ) -> None:
        self.name, self._pools, self._pids, self._say = name, pools, pids, say
        self.count = 0

    def replay(self, request: Replay) -> Replayed:
        """Replay steps.

        Raises:
            UserError: See `replay`, or the process was killed.
        """
        self.count += 1
        start = f"from step {request.first}" if request.first else "from the initial weights"
        recording = "" if request.dump is None else f", recording step {request.until - 1}"
        steps = counted(request.until - request.first, "step")
        world = len(self._pools)
        ranks = f" on {world} ranks" if world > 1 else ""
        self._say(f"{self.name}: replaying {steps} {start}{ranks}{recording}")
        try:
            if world == 1:
                return self._pools[0].submit(replay, request).result()
            store = dist.TCPStore(_HOST, 0, is_master=True, wait_for_workers=False)
            shares = [pool.submit(_replay_share, request, store.port) for pool in self._pools]
            return _merged(self._results(shares))
        except BrokenProcessPool as error:
            raise UserError(
                f"the process that replays {self.name} was killed",
                todo="It may have run out of memory; see its messages above.",
            ) from error

    def _results(self, shares: Sequence[Future[Replayed]]) -> list[Replayed]:
        """Wait for all ranks and return their results.

        Raises:
            Exception: The first error of a rank; the other ranks may wait for it and are killed.
        """
        wait(shares, return_when=FIRST_EXCEPTION)
        # If a rank is killed, another may fail first, since their connection closes.
        done, waiting = wait(shares, timeout=_GRACE_S)
        errors = [error for future in done if (error := future.exception()) is not None]
        if not errors:
            return [future.result() for future in shares]
        if waiting:
            for pid in self._pids:
                with contextlib.suppress(ProcessLookupError, BrokenProcessPool):
                    os.kill(pid.result(), signal.SIGKILL)
        raise next((error for error in errors if isinstance(error, BrokenProcessPool)), errors[0])


@contextmanager
def replayer(name: str, say: Callable[[str], None], ranks: int = 1) -> Generator[Replayer]:
    """Start the processes that replay a run, one per rank, and end them when the context exits."""
    # The fork server imports torch once but computes nothing, so each process can still choose its
    # number of threads.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch._dynamo", __name__])
    with ExitStack() as stack:
        pools = [
            stack.enter_context(
                ProcessPoolExecutor(
                    1, mp_context=context, initializer=_begin_rank, initargs=(rank, ranks)
                )
            )
            for rank in range(ranks)
        ]
        # Before the first replay, so that all processes of both runs start in parallel.
        pids = [pool.submit(os.getpid) for pool in pools]
        yield Replayer(name, pools, pids, say)


def _begin_rank(rank: int, world: int) -> None:
    """Initialise a process as torchrun would."""
    begin_worker()
    if world == 1:
        return
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
    os.environ.update({name: str(value) for name, value in variables.items()})
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)


def _replay_share(request: Replay, port: int) -> Replayed:
    """Replay on one of several ranks, which connect through a store of the parent process."""
    variables = {
        "MASTER_ADDR": _HOST,
        "MASTER_PORT": str(port),
        # The parent keeps the store open, so that no other process can take its port.
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0",
    }
    os.environ.update(variables)
    return replay(request)


def _merged(shares: Sequence[Replayed]) -> Replayed:
    """Merge the results of all ranks; where their states differ, hash the ranks' hashes.

    Each rank has its own batch-norm averages, and a checkpoint does not store those of all ranks.
    """
    steps = {
        step: {
            part: _merged_hash([share.steps[step][part] for share in shares])
            for part in shares[0].steps[step]
        }
        for step in shares[0].steps
    }
    return Replayed(steps=steps, last=shares[0].last)


def _merged_hash(hashes: Sequence[str]) -> str:
    if len(set(hashes)) == 1:
        return hashes[0]
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:16]


def replay(request: Replay) -> Replayed:
    """Replay steps of a run in this process, without changing the run.

    Raises:
        UserError: The run, its data or a checkpoint cannot be used, or the run has no such step.
    """
    dump_request = DumpRequest(
        what=str(request.run),
        steps=(request.first,),
        settings=request.record,
        assignments=request.assignments,
        imports=request.imports,
        to=request.dump or NOWHERE.path,
        device=request.device,
    )
    # The parent's stdout may be JSON.
    with (
        contextlib.redirect_stdout(sys.stderr),
        open_context(
            lambda ranks: chosen_run(dump_request, ranks), device=request.device, writes=False
        ) as context,
    ):
        chosen = context.chosen
        checkpoint, plan, first = chosen.checkpoint, chosen.plan, chosen.first
        task = starting_task(context, checkpoint)
        span = request.until - first
        hashes = StepHashes(span, first=0 if request.dump is None else span - 1)
        observers: list[Observer] = [hashes]
        if request.dump is not None:
            plan = replace(plan, training=replace(plan.training, compile=False))
            recorder = step_recorder(dump_request, context, task)
            steps = (request.until - 1,)
            # First, so that hashing the state is not recorded.
            observers.insert(
                0, DumpObserver(recorder, steps=steps, first=first, say=lambda _: None)
            )
        trainer = observing_trainer(context, task, plan, observers, Console(silent=True))
        check_step(trainer, request.until - 1, "--steps")
        hashes.state = trainer.state
        trainer.observe(checkpoint)
        return Replayed(steps=hashes.steps, last=hashes.last)
