"""Turns sample sets into a stream of batches, in the main process or with workers.

A run has one loader from its first step to its last: it does not stop at the end of an epoch, and
starting in the middle costs nothing, because the step number determines the keys.

Workers ignore SIGINT and SIGTERM, which a terminal or a scheduler sends to every process: the
main process decides when to stop, and needs the workers until then.
"""

import atexit
import gc
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from jumar.data.loading.faults import FaultTally
from jumar.data.loading.sampler import (
    Ordered,
    batch_keys,
    evaluation_keys,
    steps_per_epoch,
)
from jumar.data.loading.shared_batches import BatchPacker, BatchUnpacker, PackedBatch
from jumar.data.samples import Batch, Fault, SampleKey, SampleSet
from jumar.ground.errors import UserError
from jumar.ground.machine import checked_count, usable_cores

MAX_WORKERS = 16
"""Maximum per rank if jumar chooses the number; more rarely help, and each uses memory."""
PREFETCH = 2
"""Default number of batches that each worker prepares ahead."""


class _Parcel(NamedTuple):
    """A worker's message.

    Attributes:
        content: The batch.
        faults: Faults that occurred while preparing it.
        error: An error for the user as (what, where, todo). It is passed as a value, because an
            exception raised in a worker becomes a different one, whose message is a traceback.
    """

    content: Batch | PackedBatch
    faults: tuple[Fault, ...] = ()
    error: tuple[str, str, str] | None = None


_Running = tuple[Iterator[_Parcel], Sequence[BaseProcess]]


def resolve_workers(requested: int, *, local_world: int, on_cpu: bool) -> int:
    """Return the number of worker processes of a rank.

    Args:
        requested: The number in the settings; -1 to choose it here.
        local_world: Number of ranks on this machine, which share its cores.
        on_cpu: Whether the model computes on the same cores. Then one worker per 16 cores is
            enough, and none is better than occupying the only core.

    Raises:
        UserError: This machine cannot handle so many processes.
    """
    if requested >= 0:
        checked_count(
            requested * max(1, local_world), "processes", "data.workers of all ranks here"
        )
        return requested
    cores = max(1, usable_cores() // max(1, local_world))
    if on_cpu:
        return 0 if cores == 1 else max(1, cores // 16)
    return min(cores, MAX_WORKERS)


def train_batches(
    samples: SampleSet,
    *,
    seed: int,
    first_step: int,
    last_step: int,
    batch_per_rank: int,
    rank: int = 0,
    world: int = 1,
    workers: int = 0,
    prefetch: int = PREFETCH,
    tally: FaultTally,
) -> Iterator[Batch]:
    """Return the batches of one rank for steps first_step to last_step - 1.

    Args:
        samples: Training samples.
        seed: Seed of the order.
        first_step: First step, counted from 0 over the whole run.
        last_step: The step before which the stream ends.
        batch_per_rank: Number of samples in a batch.
        rank: This rank.
        world: Number of ranks.
        workers: Worker processes; 0 prepares the batches in this process.
        prefetch: Batches that each worker prepares ahead.
        tally: Counter of unreadable samples, which raises an error if there are too many.

    Raises:
        UserError: The set is smaller than a global batch, too many samples cannot be read, or a
            worker was killed.
    """
    size = len(samples)
    steps_per_epoch(size, batch_per_rank * world)  # raises before the first batch, not mid-run
    keys_of = partial(
        batch_keys,
        seed,
        size=size,
        batch_per_rank=batch_per_rank,
        rank=rank,
        world=world,
        epoch_keys=samples.epoch_keys if isinstance(samples, Ordered) else None,
    )
    keys = _StepKeys(range(first_step, last_step), keys_of)
    return _batches(samples, keys, workers, tally, prefetch)


def eval_batches(
    samples: SampleSet,
    *,
    batch: int,
    rank: int = 0,
    world: int = 1,
    workers: int = 0,
    tally: FaultTally,
) -> Iterator[Batch]:
    """Return one rank's part of the samples, in batches of at most `batch`.

    All ranks together have each sample once. The arguments are as for `train_batches`. A batch
    without a readable sample is skipped.

    Raises:
        UserError: Too many samples cannot be read, or a worker was killed.
    """
    keys = list(evaluation_keys(len(samples), batch, rank, world))
    return _batches(samples, keys, workers, tally)


class _StepKeys:
    """The keys of each step, generated on demand, since a permutation is long."""

    def __init__(self, steps: range, keys_of: Callable[[int], list[SampleKey]]) -> None:
        self._steps = steps
        self._keys_of = keys_of

    def __iter__(self) -> Iterator[list[SampleKey]]:
        return map(self._keys_of, self._steps)

    def __len__(self) -> int:
        return len(self._steps)


class _Fetcher(Dataset[Any]):
    """A sample set in the form that torch's DataLoader needs."""

    def __init__(self, samples: SampleSet, prefetch: int) -> None:
        self._samples, self._prefetch = samples, prefetch
        self._packer: BatchPacker | None = None

    def __getitems__(self, keys: Sequence[SampleKey]) -> _Parcel:
        try:
            fetched = self._samples.fetch(keys)
            return _Parcel(self._sendable(fetched.batch), tuple(fetched.faults))
        except UserError as error:
            return _Parcel({}, error=(error.what, error.where, error.todo))

    def _sendable(self, batch: Batch) -> Batch | PackedBatch:
        worker = get_worker_info()
        if worker is None:
            return batch
        if self._packer is None:
            # One buffer per prefetched batch, and one for the batch that the receiver is copying.
            self._packer = BatchPacker(worker.id, self._prefetch + 1)
        return self._packer.pack(batch)


def _batches(
    samples: SampleSet,
    keys: Iterable[list[SampleKey]],
    workers: int,
    tally: FaultTally,
    prefetch: int = PREFETCH,
) -> Iterator[Batch]:
    loader: DataLoader[Any] = DataLoader(
        _Fetcher(samples, prefetch),
        batch_sampler=keys,
        num_workers=workers,
        collate_fn=_unchanged,
        prefetch_factor=prefetch if workers else None,
        worker_init_fn=_start_worker,
        # Fork shares the index of a large source between workers; spawn would copy it to each.
        multiprocessing_context="fork" if workers and sys.platform == "linux" else None,
        # With torch's global generator, from which the loader would draw its base seed, the
        # model's dropout would depend on how often loaders were started.
        generator=torch.Generator(),
    )
    unpacker = BatchUnpacker()
    with _running(loader) as (parcels, processes):
        while True:
            try:
                content, faults, error = next(parcels)
            except StopIteration:
                return
            except (RuntimeError, OSError, EOFError) as failure:
                if not isinstance(failure, RuntimeError):
                    _await_exit_codes(processes)
                death = _worker_death(processes)
                if death is None:
                    raise
                raise death from failure
            if error is not None:
                what, where, todo = error
                raise UserError(what, where=where, todo=todo)
            batch = unpacker.unpack(content) if isinstance(content, PackedBatch) else content
            tally.add(faults)
            if batch:
                yield batch


@contextmanager
def _running(loader: DataLoader[Any]) -> Generator[_Running, None, None]:
    """Start a loader's iterator and its workers, which end with the block."""
    with _signals_blocked(), _garbage_frozen():
        parcels: Iterator[_Parcel] = iter(loader)
    # Not multiprocessing.active_children(), which omits workers that have already died.
    processes: Sequence[BaseProcess] = tuple(getattr(parcels, "_workers", ()))

    def stop() -> None:
        shutdown = getattr(parcels, "_shutdown_workers", None)
        if shutdown is not None:
            shutdown()
        for process in processes:
            if process.is_alive():
                process.kill()  # SIGTERM is ignored
                process.join()

    # If the interpreter exits within the block, multiprocessing would send SIGTERM to the workers
    # and wait forever; exit functions run in reverse order, so this one runs before that.
    atexit.register(stop)
    try:
        yield parcels, processes
    finally:
        stop()
        atexit.unregister(stop)


@contextmanager
def _signals_blocked() -> Generator[None, None, None]:
    """Context for starting workers: no signal reaches them before they ignore it, and torch cannot
    raise its error about a dead worker at an arbitrary point of the main process.
    """
    stopping = {signal.SIGINT, signal.SIGTERM}
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, stopping)
    on_child = signal.getsignal(signal.SIGCHLD)
    try:
        yield
    finally:
        if on_child is not None and signal.getsignal(signal.SIGCHLD) is not on_child:
            signal.signal(signal.SIGCHLD, on_child)
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


@contextmanager
def _garbage_frozen() -> Generator[None, None, None]:
    """Context for starting workers: excludes inherited objects from garbage collection.

    A worker that collected a decoder of the main process would wait forever for the decoder's
    threads, which do not survive a fork; and traversing inherited objects would copy their pages.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _start_worker(_: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    sys.excepthook = _handle_thread_error


def _handle_thread_error(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Handle an uncaught error in a worker's thread.

    The main process fetches a batch's memory through a connection. If it exits before that is
    complete, the serving thread would print a traceback about the broken connection.
    """
    if not isinstance(error, ConnectionError | EOFError):
        sys.__excepthook__(kind, error, trace)


def _await_exit_codes(processes: Sequence[BaseProcess]) -> None:
    """Wait until dead workers have an exit code, since their connections break before that."""
    ended = wait([process.sentinel for process in processes], timeout=1) if processes else []
    for process in processes:
        if process.sentinel in ended:
            process.join()  # its files are closed before it has an exit code


def _worker_death(processes: Sequence[BaseProcess]) -> UserError | None:
    """Return the error for a dead worker; None if all are alive or exited normally."""
    exit_codes = [process.exitcode for process in processes if process.exitcode not in (None, 0)]
    if not exit_codes:
        return None
    code = exit_codes[0] or 0
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    likely_causes = {
        "SIGKILL": "Most likely, the machine ran out of memory: use fewer workers or a smaller "
        "batch (data.workers, data.batch_size), or check the kernel's log.",
        "SIGBUS": "Most likely, shared memory is full: enlarge /dev/shm (docker run --shm-size) "
        "or use fewer workers (data.workers).",
    }
    return UserError(
        f"a data loader worker was killed ({name})",
        todo=likely_causes.get(
            name, "Try data.workers=0, which prepares batches in the main process."
        ),
    )


def _unchanged(parcel: Any) -> Any:
    return parcel
