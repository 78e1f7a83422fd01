"""Ports that Ctrl-C or SIGTERM ends."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command_line import environment
from tests.porting.trees import SESSION, content, write_files

SLOW_RULE = """\
import sys
import time
from pathlib import Path

from jumar.cli.main import run
from jumar.porting.edits import Text
from jumar.porting.rewriting.registry import rule


@rule("slow", title=Text(en="a", zh="a"), source="a")
def slow(tree, view):
    Path("started").touch()
    time.sleep(60)
    yield


run(sys.argv[1:])
"""
"""The command line with a rule that takes longer than the test waits."""

LATE = """\
import os
import signal
import sys

from jumar.cli.main import run
from jumar.porting.report import saving


def interrupt(*_):
    os.kill(os.getpid(), signal.SIGTERM)


saving.save_report = interrupt
run(sys.argv[1:])
"""
"""The command line with a signal after the tree is written."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("more", [("--jobs", "1"), ("--jobs", "2", "--to", "out"), ("--in-place",)])
def test_interrupted_port_says_that_nothing_was_written(
    number: signal.Signals, more: tuple[str, ...], tmp_path: Path
) -> None:
    write_files(tmp_path / "tree", {f"m{number}.py": SESSION for number in range(4)})
    before = content(tmp_path)
    force = ["--force"] if "--in-place" in more else []
    running = subprocess.Popen(
        [sys.executable, "-c", SLOW_RULE, "port", "tree", *more, *force],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    running.send_signal(number)
    _, message = running.communicate(timeout=20)
    assert running.returncode == 128 + number
    assert message == "jumar: interrupted: nothing was written\n"
    (tmp_path / "started").unlink()
    assert content(tmp_path) == before


def test_interruption_after_writing_names_what_was_written(tmp_path: Path) -> None:
    write_files(tmp_path / "tree", {"train.py": SESSION})
    done = subprocess.run(
        [sys.executable, "-c", LATE, "port", "tree", "--to", "out", "--report", "a.md"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stderr == "jumar: interrupted: already written: out\n"
    assert (tmp_path / "out" / "train.py").exists()
