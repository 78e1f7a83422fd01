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


def test_interruption_ends_at_once_even_while_reports_are_sent() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stderr) == (130, "")
