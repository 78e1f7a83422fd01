"""Worker processes end with the process that started them, however that ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jumar.ground.processes import in_order
from tests.running import is_running

STARTS_TWO = """
import multiprocessing, os, sys, time
from concurrent.futures import ProcessPoolExecutor
from jumar.ground.processes import begin_worker

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    pools = [ProcessPoolExecutor(1, context, begin_worker) for _ in range(2)]
    print(*[pool.submit(os.getpid).result() for pool in pools], flush=True)
    time.sleep(100)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_end_when_their_parent_is_killed(method: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(STARTS_TWO, encoding="utf-8")
    parent = subprocess.Popen(
        [sys.executable, script, method], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert parent.stdout is not None
    workers = [int(word) for word in parent.stdout.readline().split()]
    assert len(workers) == 2
    assert all(is_running(pid) for pid in workers)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 20
    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    left = [pid for pid in workers if is_running(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def test_results_arrive_in_the_order_of_the_arguments_until_one_fails() -> None:
    def halved(number: int) -> float:
        time.sleep(0.002 * (number % 3 == 0))
        return number / (number - 9)

    results = in_order(halved, range(20), threads=3, ahead=5)
    assert [next(results) for _ in range(9)] == [number / (number - 9) for number in range(9)]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(in_order(halved, (), threads=1, ahead=1)) == []
