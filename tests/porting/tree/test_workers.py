"""Ports in several processes end with the command."""

import os
import subprocess
import sys

INTERRUPTED = """
import os, signal, sys
from jumar.porting.edits import FileReport
from jumar.porting.tree.workers import in_processes


def port(path):
    if path == "9":
        os.kill(os.getppid(), signal.SIGINT)
    return FileReport(path=path, status="ported", before="x" * 100_000_000)


try:
    in_processes(port, {str(number): 1 for number in range(20)}, processes=3)
except KeyboardInterrupt:
    sys.exit(130)
"""
"""The reports are so large that processes are killed while they write one."""


BUSY = """
import multiprocessing, os, signal, sys, time
from jumar.porting.tree.workers import in_processes


def port(path):
    if path == "0":
        os.kill(os.getppid(), signal.SIGINT)
    time.sleep(30)


try:
    in_processes(port, {"0": 1, "1": 1}, processes=2)
except KeyboardInterrupt:
    sys.exit(1 if multiprocessing.active_children() else 130)
"""


def run(script: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return done.returncode, done.stderr


def test_interruption_ends_at_once_even_while_reports_are_sent() -> None:
    assert run(INTERRUPTED) == (130, "")


def test_interruption_leaves_no_process_that_is_busy_with_a_script() -> None:
    assert run(BUSY) == (130, "")
