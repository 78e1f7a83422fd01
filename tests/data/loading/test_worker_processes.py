"""Workers that die, outlive signals, and leave with the main process."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from tests.data.loading.numbers import Numbers, no_worker_is_left, train
from tests.running import is_running

ROOT = Path(__file__).resolve().parents[3]

# A test with three workers on two cores is about order, not about speed.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


def test_worker_killed_by_the_system_is_an_error_with_the_likely_reason() -> None:
    handler = signal.getsignal(signal.SIGCHLD)
    with pytest.raises(UserError, match="SIGKILL") as caught:
        list(train(Numbers(deadly=5), workers=2))
    assert "memory" in caught.value.todo
    assert signal.getsignal(signal.SIGCHLD) is handler
    assert no_worker_is_left()


def test_worker_death_during_batch_transfer_is_reported_as_such() -> None:
    """The connection breaks off before there is an exit status."""
    body = """
        import multiprocessing, signal
        from multiprocessing import connection
        from jumar.ground.errors import UserError
        def broken(address):
            (worker,) = multiprocessing.active_children()
            os.kill(worker.pid, signal.SIGKILL)
            raise ConnectionResetError
        connection.SocketClient = broken
        try:
            next(train(Numbers(), last=10**6, workers=1))
        except UserError as error:
            print(error.what)
        """
    done = subprocess.run(
        script(body), env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert "was killed (SIGKILL)" in done.stdout, done.stderr
    assert (done.returncode, done.stderr) == (0, "")


def test_workers_do_not_collect_the_main_process_garbage() -> None:
    """A decoder's destructor would wait in a worker for threads that a fork does not take along."""
    body = """
        import gc, torch
        main, seed = os.getpid(), torch.manual_seed
        class Decoder:
            def __del__(self):
                print("collected in", "main" if os.getpid() == main else "a worker", flush=True)
        def seed_after_collecting(number):
            gc.collect()
            return seed(number)
        torch.manual_seed = seed_after_collecting
        gc.disable()
        decoder = Decoder()
        decoder.itself = decoder
        del decoder
        list(train(Numbers(), last=2, workers=2))
        gc.collect()
        """
    done = subprocess.run(
        script(body), env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("collected in main\n", 0), done.stderr


def test_closing_a_stream_ends_its_workers() -> None:
    stream = train(Numbers(), last=10**6, workers=2)
    next(stream)
    assert len(multiprocessing.active_children()) == 2
    stream.close()  # type: ignore[attr-defined]
    assert no_worker_is_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_workers_ignore_the_signals_that_stop_a_run(number: signal.Signals) -> None:
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
        from tests.data.loading.numbers import Numbers, train
        """
    return [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(body)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


def test_interpreter_exit_with_an_open_stream_does_not_hang() -> None:
    body = """
        stream = train(Numbers(), last=10**6, workers=2)
        next(stream)
        print("leaving", flush=True)
        """
    done = subprocess.run(
        script(body), env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")


def test_full_shared_memory_error_says_what_to_enlarge() -> None:
    body = """
        import resource
        from jumar.ground.errors import UserError
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
        try:
            next(train(Numbers(), workers=1))
        except UserError as error:
            print(error)
        """
    done = subprocess.run(
        script(body), env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.startswith("/dev/shm: shared memory has no space")
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
    assert not any(is_running(pid) for pid in workers)


def test_interruption_during_batch_transfer_leaves_workers_silent() -> None:
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


def test_workers_exit_when_the_main_process_is_killed() -> None:
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
    while any(is_running(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(is_running(pid) for pid in workers)
