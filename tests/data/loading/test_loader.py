import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch

from jumar.data.images.image_set import ImageData, ImageSet, open_image_sets
from jumar.data.loading.faults import FaultTally
from jumar.data.loading.loader import eval_batches, resolve_workers, train_batches
from jumar.data.pixels.preprocessing import resnext_preprocessing
from jumar.data.samples import Batch, Fault, Fetched, SampleKey
from jumar.errors import UserError
from tests.data.pictures import pets, write_zip
from tests.data.scenes import MemorySource, jpeg

ROOT = Path(__file__).resolve().parents[3]

# A test with three workers on two cores is about order, not about speed.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


class Numbers:
    """A sample set whose samples say which they are; what some do is decided by their index."""

    def __init__(
        self,
        size: int = 40,
        *,
        broken: Sequence[int] = (),
        refused: int = -1,
        deadly: int = -1,
        slow_s: float = 0.0,
    ) -> None:
        self.size = size
        self.broken = set(broken)
        self.refused = refused
        self.deadly = deadly
        self.slow_s = slow_s

    def __len__(self) -> int:
        return self.size

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        time.sleep(self.slow_s)
        indices = [key.index for key in keys]
        if self.refused in indices:
            raise UserError("refused", where="here", todo="Do something else.")
        if self.deadly in indices:
            os.kill(os.getpid(), signal.SIGKILL)
        kept = [key for key in keys if key.index not in self.broken]
        batch = {"index": torch.tensor([key.index for key in kept]), "key": torch.tensor(kept)}
        faults = [
            Fault(origin=f"number {index}", reason="broken")
            for index in indices
            if index in self.broken
        ]
        return Fetched(batch=batch if kept else {}, faults=faults)


def train(
    samples: Numbers | ImageSet,
    *,
    first: int = 0,
    last: int = 10,
    batch: int = 4,
    rank: int = 0,
    world: int = 1,
    workers: int = 0,
    tally: FaultTally | None = None,
) -> Iterator[Batch]:
    return train_batches(
        samples,
        seed=1,
        first_step=first,
        last_step=last,
        batch_per_rank=batch,
        rank=rank,
        world=world,
        workers=workers,
        tally=tally or FaultTally(),
    )


def keys_of(batches: Iterator[Batch]) -> list[list[list[int]]]:
    return [batch["key"].tolist() for batch in batches]


def no_worker_is_left() -> bool:
    gc.collect()
    return not multiprocessing.active_children()


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_stream_goes_over_epochs_without_stopping(workers: int) -> None:
    keys = keys_of(train(Numbers(), last=25, workers=workers))
    assert len(keys) == 25
    assert [batch[0][0] for batch in keys] == [step // 10 for step in range(25)]
    first_epoch = sorted(index for batch in keys[:10] for _, index in batch)
    assert first_epoch == list(range(40))
    assert no_worker_is_left()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("first", [1, 7, 13, 24])
def test_a_stream_that_starts_in_the_middle_goes_on_as_the_whole_one(
    first: int, workers: int
) -> None:
    whole = keys_of(train(Numbers(), last=25))
    assert keys_of(train(Numbers(), first=first, last=25, workers=workers)) == whole[first:]


def test_starting_late_costs_no_more_than_starting_early() -> None:
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
def test_pictures_are_the_same_bytes_from_any_number_of_workers(training: bool) -> None:
    source = MemorySource([jpeg(seed=seed) for seed in range(6)], labels=list(range(6)))
    samples = ImageSet(
        source,
        resnext_preprocessing(),
        image_size=32,
        num_classes=6,
        seed=1,
        training=training,
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
    data = ImageData(path=str(path), eval_path=str(write_zip(tmp_path / "e.zip", pets(2))))
    samples, _ = open_image_sets(data, num_classes=2, seed=0)
    samples.image_size = 16
    batches = [list(train(samples, last=60, batch=10, workers=workers)) for workers in (0, 3)]
    for ours, theirs in zip(*batches, strict=True):
        assert torch.equal(ours["image"], theirs["image"])


def test_batches_stay_as_they_are_while_workers_go_on() -> None:
    batches = list(train(Numbers(400), last=60, workers=2))
    assert keys_of(iter(batches)) == keys_of(train(Numbers(400), last=60))


def test_a_loader_leaves_the_global_randomness_alone() -> None:
    states = []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)
        if states:
            list(train(Numbers(), workers=1))
            list(train(Numbers()))
        states.append((torch.get_rng_state().tolist(), np.random.random()))
    assert states[0] == states[1]


def test_a_set_smaller_than_a_batch_is_an_error_at_once() -> None:
    with pytest.raises(UserError, match="does not fit"):
        train(Numbers(3), batch=4)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_with_a_broken_sample_is_not_delivered(workers: int) -> None:
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
def test_an_error_for_the_user_arrives_from_a_worker_as_it_is(workers: int) -> None:
    with pytest.raises(UserError) as caught:
        list(train(Numbers(refused=5), workers=workers))
    assert str(caught.value) == "here: refused\n  Do something else."
    assert no_worker_is_left()


def test_a_defect_in_a_worker_keeps_its_traceback() -> None:
    samples = Numbers()
    samples.broken = None  # type: ignore[assignment]
    with pytest.raises(TypeError, match="in fetch"):
        list(train(samples, workers=1))
    assert no_worker_is_left()


def test_a_worker_that_the_system_kills_is_an_error_with_the_likely_reason() -> None:
    handler = signal.getsignal(signal.SIGCHLD)
    with pytest.raises(UserError, match="SIGKILL") as caught:
        list(train(Numbers(deadly=5), workers=2))
    assert "memory" in caught.value.todo
    assert signal.getsignal(signal.SIGCHLD) is handler
    assert no_worker_is_left()


def test_closing_a_stream_ends_its_workers() -> None:
    stream = train(Numbers(), last=10**6, workers=2)
    next(stream)
    assert len(multiprocessing.active_children()) == 2
    stream.close()  # type: ignore[attr-defined]
    assert no_worker_is_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_workers_outlive_the_signals_that_stop_a_run(number: signal.Signals) -> None:
    stream = train(Numbers(), last=200, workers=2)
    next(stream)
    for worker in multiprocessing.active_children():
        assert worker.pid is not None
        os.kill(worker.pid, number)
    assert len(list(stream)) == 199


def script(body: str) -> list[str]:
    head = """
        import os, sys, time
        from jumar.data.loading.faults import FaultTally
        from jumar.data.loading.loader import train_batches
        from tests.data.loading.test_loader import Numbers, train
        """
    return [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(body)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_an_interpreter_that_ends_with_an_open_stream_does_not_hang() -> None:
    body = """
        stream = train(Numbers(), last=10**6, workers=2)
        next(stream)
        print("leaving", flush=True)
        """
    done = subprocess.run(
        script(body), env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")


def test_full_shared_memory_is_an_error_that_says_what_to_enlarge() -> None:
    body = """
        import resource
        from jumar.errors import UserError
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
        try:
            next(train(Numbers(), workers=1))
        except UserError as error:
            print(error)
        """
    done = subprocess.run(
        script(body), env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.startswith("/dev/shm: shared memory has no room")
    assert "--shm-size" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_leaves_one_traceback_and_no_process() -> None:
    body = """
        import multiprocessing
        stream = train(Numbers(slow_s=0.02), last=10**6, workers=2)
        next(stream)
        print(*[child.pid for child in multiprocessing.active_children()], flush=True)
        for batch in stream:
            pass
        """
    child = subprocess.Popen(
        script(body),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    workers = [int(pid) for pid in child.stdout.readline().split()]
    os.killpg(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1
    assert not any(is_alive(pid) for pid in workers)


def test_an_interruption_while_a_batch_is_taken_over_leaves_the_workers_silent() -> None:
    """The worker hands over the memory's descriptor through a connection, which breaks off."""
    body = """
        import socket
        from multiprocessing import connection
        def interrupted(address):
            with socket.socket(socket.AF_UNIX) as opened:
                opened.connect(address)
                raise KeyboardInterrupt
        connection.SocketClient = interrupted
        try:
            next(train(Numbers(), last=10**6, workers=1))
        except KeyboardInterrupt:
            print("stopped")
        """
    done = subprocess.run(
        script(body), env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")


def test_workers_leave_when_the_main_process_is_killed() -> None:
    body = """
        import multiprocessing
        stream = train(Numbers(slow_s=0.02), last=10**6, workers=2)
        next(stream)
        print(*[child.pid for child in multiprocessing.active_children()], flush=True)
        time.sleep(600)
        """
    child = subprocess.Popen(script(body), env=environment(), stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    workers = [int(pid) for pid in child.stdout.readline().split()]
    assert len(workers) == 2
    child.kill()
    child.wait()
    deadline = time.monotonic() + 30
    while any(is_alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(is_alive(pid) for pid in workers)


def test_the_number_of_workers_follows_the_cores_unless_it_is_given() -> None:
    assert resolve_workers(0, local_world=1, on_cpu=False) == 0
    assert resolve_workers(7, local_world=4, on_cpu=True) == 7
    chosen = resolve_workers(-1, local_world=1, on_cpu=False)
    assert 1 <= chosen <= 16
    assert resolve_workers(-1, local_world=10**6, on_cpu=False) == 1
    assert resolve_workers(-1, local_world=10**6, on_cpu=True) == 0
