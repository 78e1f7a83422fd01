"""Workers that hang in native code or die unnoticed cost a test, not the whole run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT

CONFTEST = """
from tests.stalled_workers import note_tests, watch


def pytest_configure(config):
    note_tests(config)
    watch(config)
"""
HOLDS_THE_LOCK = """
import ctypes


def test_bad():
    library, mutex = ctypes.PyDLL(None), (ctypes.c_char * 64)()
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)
"""
DIES_WITH_A_FORK = """
import os, signal, time


def test_bad():
    if os.fork() == 0:
        time.sleep(600)
    os.kill(os.getpid(), signal.SIGKILL)
"""
STOPS = """
import os, signal


def test_bad():
    os.kill(os.getpid(), signal.SIGSTOP)
"""
SLOW = """
import time


def test_slow():
    time.sleep(7)


def test_good():
    pass
"""


def run(folder: Path, limit_s: float, *files: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    for number, text in enumerate(files):
        (folder / f"test_{number}.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        env={
            **{name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")},
            "PYTHONPATH": str(CHECKOUT),
            "JUMAR_STALLED_AFTER_S": str(limit_s),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("text", "state"),
    [(HOLDS_THE_LOCK, "S"), (DIES_WITH_A_FORK, "Z"), (STOPS, "T")],
    ids=["hangs in native code", "dies and leaves a fork", "is stopped"],
)
def test_lost_worker_fails_its_test_by_name_and_the_others_continue(
    text: str, state: str, tmp_path: Path
) -> None:
    done = run(tmp_path, 4, text, *["def test_good():\n    pass\n"] * 3)
    assert done.returncode == 1
    assert "1 failed, 3 passed" in done.stdout
    assert "crashed while running 'test_0.py::test_bad'" in done.stdout
    assert f"has been at test_0.py::test_bad for 4 s; its state is {state}" in done.stderr
    if state == "S":
        assert "test_0.py" in done.stderr.partition("most recent call first")[2]


def test_slow_test_below_the_limit_is_left_alone(tmp_path: Path) -> None:
    done = run(tmp_path, 20, SLOW, SLOW)
    assert "4 passed" in done.stdout
    assert "has been at" not in done.stderr
