import faulthandler
import gc
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest
import torch

from jumar.data.images.image_set import (
    ImageData,
    LabelledPictures,
    image_set,
    open_image_sets,
)
from jumar.data.loading.faults import FaultTally
from jumar.data.loading.loader import (
    MAX_WORKERS,
    PREFETCH,
    _handle_thread_error,
    _worker_death,
    eval_batches,
    resolve_workers,
    train_batches,
)
from jumar.data.loading.loader_settings import LoaderSettings
from jumar.data.pixels.preprocessing import resnext_preprocessing
from jumar.data.samples import Batch, SampleKey
from jumar.ground import machine
from jumar.ground.errors import UserError
from tests.data.loading.numbers import Numbers, no_worker_is_left, train
from tests.data.pictures import pets, write_zip
from tests.data.scenes import MemorySource, jpeg

# A test with three workers on two cores is about order, not about speed.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


def keys_of(batches: Iterator[Batch]) -> list[list[list[int]]]:
    return [batch["key"].tolist() for batch in batches]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_stream_continues_across_epochs(workers: int) -> None:
    keys = keys_of(train(Numbers(), last=25, workers=workers))
    assert len(keys) == 25
    assert [batch[0][0] for batch in keys] == [step // 10 for step in range(25)]
    first_epoch = sorted(index for batch in keys[:10] for _, index in batch)
    assert first_epoch == list(range(40))
    assert no_worker_is_left()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("first", [1, 7, 13, 24])
def test_stream_started_midway_continues_like_the_whole_one(first: int, workers: int) -> None:
    whole = keys_of(train(Numbers(), last=25))
    assert keys_of(train(Numbers(), first=first, last=25, workers=workers)) == whole[first:]


@pytest.mark.parametrize("prefetch", [1, 5])
def test_batches_are_the_same_however_many_are_prepared_ahead(prefetch: int) -> None:
    whole = keys_of(train(Numbers(), last=25))
    assert keys_of(train(Numbers(), last=25, workers=2, prefetch=prefetch)) == whole


def test_starting_late_costs_no_more_than_starting_at_0() -> None:
    samples = Numbers(size=100_000)

    def seconds(first: int) -> float:
        start = time.process_time()
        next(train(samples, first=first, last=first + 1))
        return time.process_time() - start

    seconds(0)
    assert seconds(10**9) < 10 * seconds(25_000) + 0.05


@pytest.mark.parametrize("workers", [0, 1])
def test_ranks_together_see_the_batches_of_one_rank(workers: int) -> None:
    whole = keys_of(train(Numbers(), batch=6, last=8))
    ranks = [
        keys_of(train(Numbers(), batch=2, rank=rank, world=3, last=8, workers=workers))
        for rank in range(3)
    ]
    assert [list(chain(*parts)) for parts in zip(*ranks, strict=True)] == whole


@pytest.mark.parametrize("workers", [0, 2])
def test_evaluation_delivers_each_sample_once_over_all_ranks(workers: int) -> None:
    seen = [
        index
        for rank in range(3)
        for batch in eval_batches(
            Numbers(47), batch=5, rank=rank, world=3, workers=workers, tally=FaultTally()
        )
        for index in batch["index"].tolist()
    ]
    assert sorted(seen) == list(range(47))


@pytest.mark.parametrize("training", [True, False])
def test_images_are_the_same_bytes_with_any_number_of_workers(training: bool) -> None:
    source = MemorySource([jpeg(seed=seed) for seed in range(6)], labels=list(range(6)))
    samples = image_set(
        LabelledPictures(
            source=source,
            preprocessing=resnext_preprocessing(),
            image_size=32,
            num_classes=6,
            seed=1,
            training=training,
        )
    )

    def stream(workers: int) -> list[Batch]:
        if training:
            return list(train(samples, last=7, batch=3, workers=workers))
        return list(eval_batches(samples, batch=4, workers=workers, tally=FaultTally()))

    alone = stream(0)
    for workers in (1, 3):
        for ours, theirs in zip(alone, stream(workers), strict=True):
            assert ours.keys() == theirs.keys()
            for name in ours:
                assert torch.equal(ours[name], theirs[name])
                assert ours[name].stride() == theirs[name].stride()


def test_forked_workers_do_not_read_each_others_bytes_from_one_zip(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "pets.zip", pets(30))
    other = write_zip(tmp_path / "e.zip", pets(2))
    data = ImageData(path=str(path), eval_path=str(other), image_size=16)
    samples, _ = open_image_sets(data, num_classes=2, seed=0)
    batches = [list(train(samples, last=60, batch=10, workers=workers)) for workers in (0, 3)]
    for ours, theirs in zip(*batches, strict=True):
        assert torch.equal(ours["image"], theirs["image"])


def test_delivered_batches_do_not_change_while_workers_continue() -> None:
    batches = list(train(Numbers(400), last=60, workers=2))
    assert keys_of(iter(batches)) == keys_of(train(Numbers(400), last=60))


def test_loader_does_not_touch_global_random_state() -> None:
    states = []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)
        if states:
            list(train(Numbers(), workers=1))
            list(train(Numbers()))
        states.append((torch.get_rng_state().tolist(), np.random.random()))
    assert states[0] == states[1]


def test_set_smaller_than_a_batch_is_an_immediate_error() -> None:
    with pytest.raises(UserError, match="larger than the training set"):
        train(Numbers(3), batch=4)


@pytest.mark.parametrize("workers", [0, 2])
def test_batch_with_a_broken_sample_is_not_delivered(workers: int) -> None:
    order = [index for batch in keys_of(train(Numbers())) for _, index in batch]
    stream = train(Numbers(broken=[order[9]]), workers=workers)
    assert len([next(stream), next(stream)]) == 2
    with pytest.raises(UserError, match="broken") as caught:
        next(stream)
    assert caught.value.where == f"number {order[9]}"
    assert no_worker_is_left()


@pytest.mark.parametrize("workers", [0, 2])
def test_broken_samples_within_the_allowance_are_counted(workers: int) -> None:
    tally = FaultTally(3)
    delivered = list(
        eval_batches(Numbers(20, broken=[2, 3, 11]), batch=2, workers=workers, tally=tally)
    )
    assert sorted(chain(*(batch["index"].tolist() for batch in delivered))) == [
        index for index in range(20) if index not in (2, 3, 11)
    ]
    assert [fault.origin for fault in tally.faults] == ["number 2", "number 3", "number 11"]


@pytest.mark.parametrize("workers", [0, 2])
def test_user_error_in_a_worker_propagates_unchanged(workers: int) -> None:
    with pytest.raises(UserError) as caught:
        list(train(Numbers(refused=5), workers=workers))
    assert str(caught.value) == "here: refused\n  Do something else."
    assert no_worker_is_left()


def test_defect_in_a_worker_keeps_its_traceback() -> None:
    samples = Numbers()
    samples.broken = None  # type: ignore[assignment]
    with pytest.raises(TypeError, match="in fetch"):
        list(train(samples, workers=1))
    assert no_worker_is_left()


def test_worker_count_follows_the_cores_by_default() -> None:
    assert resolve_workers(0, local_world=1, on_cpu=False) == 0
    assert resolve_workers(7, local_world=4, on_cpu=True) == 7
    chosen = resolve_workers(-1, local_world=1, on_cpu=False)
    assert 1 <= chosen <= 16
    assert resolve_workers(-1, local_world=10**6, on_cpu=False) == 1
    assert resolve_workers(-1, local_world=10**6, on_cpu=True) == 0


@pytest.mark.parametrize(
    ("local_world", "on_cpu", "chosen"),
    [
        (1, False, 16),
        (0, False, 16),
        (2, False, 16),
        (3, False, 13),
        (40, False, 1),
        (41, False, 1),
        (1, True, 2),
        (2, True, 1),
        (20, True, 1),
        (21, True, 0),
        (0, True, 2),
    ],
)
def test_forty_cores_are_shared_among_the_ranks_of_a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, local_world: int, on_cpu: bool, chosen: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(40)))
    monkeypatch.setattr(machine, "SYSTEM", tmp_path)  # without a container's limit
    assert resolve_workers(-1, local_world=local_world, on_cpu=on_cpu) == chosen
    assert resolve_workers(0, local_world=local_world, on_cpu=on_cpu) == 0
    assert resolve_workers(1, local_world=local_world, on_cpu=on_cpu) == 1


def test_more_workers_than_a_machine_can_handle_are_refused() -> None:
    for requested, local_world in ((10**6, 0), (1000, 1000)):
        with pytest.raises(UserError) as error:
            resolve_workers(requested, local_world=local_world, on_cpu=True)
        assert error.value.where == "data.workers of all ranks here"
        assert error.value.what.startswith("1000000 processes are more than")


def test_stream_defaults_to_one_rank_in_this_process() -> None:
    tally = FaultTally()
    stream = train_batches(
        Numbers(), seed=1, first_step=0, last_step=3, batch_per_rank=4, tally=tally
    )
    assert keys_of(stream) == keys_of(train(Numbers(), last=3))
    batches = eval_batches(Numbers(10), batch=4, tally=tally)
    assert [batch["index"].tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert (PREFETCH, MAX_WORKERS) == (2, 16)
    assert LoaderSettings().prefetch == PREFETCH


def test_set_with_its_own_order_is_streamed_in_it() -> None:
    class Backwards(Numbers):
        def epoch_keys(self, seed: int, epoch: int, rows: slice) -> list[SampleKey]:
            order = list(reversed(range(len(self))))
            return [SampleKey(10 * seed + epoch, index) for index in order[rows]]

    keys = keys_of(train(Backwards(8), last=3))
    assert keys == [
        [[10, 7], [10, 6], [10, 5], [10, 4]],
        [[10, 3], [10, 2], [10, 1], [10, 0]],
        [[11, 7], [11, 6], [11, 5], [11, 4]],
    ]


def test_stream_restores_signals_and_garbage_collection() -> None:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    before = signal.getsignal(signal.SIGCHLD), gc.get_freeze_count()
    stream = train(Numbers(), workers=1)
    next(stream)
    assert (signal.getsignal(signal.SIGCHLD), gc.get_freeze_count()) == before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == blocked
    assert len(list(stream)) == 9
    assert no_worker_is_left()


def test_worker_death_is_reported_with_the_likely_reason() -> None:
    context = multiprocessing.get_context("fork")

    def ended(*codes: int) -> list[BaseProcess]:
        started: list[BaseProcess] = []
        for code in codes:
            end = partial(os._exit, code) if code >= 0 else partial(_kill_itself, -code)
            process = context.Process(target=end)
            process.start()
            process.join()
            started.append(process)
        return started

    assert _worker_death(ended(0, 0)) is None
    assert _worker_death([]) is None
    killed = _worker_death(ended(0, -signal.SIGKILL, 3))
    assert killed is not None
    assert str(killed) == (
        "a data loader worker was killed (SIGKILL)\n  Most likely, the machine ran out of memory: "
        "use fewer workers or a smaller batch (data.workers, data.batch_size), or check the "
        "kernel's log."
    )
    full = _worker_death(ended(-signal.SIGBUS))
    assert full is not None
    assert full.todo == (
        "Most likely, shared memory is full: enlarge /dev/shm (docker run --shm-size) or use fewer "
        "workers (data.workers)."
    )
    left = _worker_death(ended(1))
    assert left is not None
    assert str(left) == (
        "a data loader worker was killed (exit code 1)\n"
        "  Try data.workers=0, which prepares batches in the main process."
    )


def _kill_itself(number: int) -> None:
    # Without a core file and a report.
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), number)


def test_worker_is_silent_about_a_closed_pipe_and_prints_other_errors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for error in (ConnectionResetError("gone"), BrokenPipeError("gone"), EOFError("gone")):
        _handle_thread_error(type(error), error, None)
    assert capsys.readouterr().err == ""
    defect = ValueError("a defect")
    _handle_thread_error(ValueError, defect, None)
    assert capsys.readouterr().err == "ValueError: a defect\n"


def test_thread_may_stream_without_workers() -> None:
    """Where no handler of a signal may be set."""
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: keys_of(train(Numbers()))).result() == keys_of(train(Numbers()))
