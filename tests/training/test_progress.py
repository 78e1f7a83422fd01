"""What is written to a terminal, how often, and what is written where there is none."""

import io
import os
import pty
import re
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.training.progress import Console

CHECKOUT = Path(__file__).resolve().parents[2]
FRAME = b"\r\x1b[2K"


class Terminal:
    """A terminal of our own: what is written to it, and when."""

    def __init__(self) -> None:
        self._ours, theirs = pty.openpty()
        self.stream = os.fdopen(theirs, "w")

    def read(self) -> bytes:
        """All that was written so far."""
        self.stream.flush()
        read = b""
        while select.select([self._ours], [], [], 0.05)[0]:
            read += os.read(self._ours, 1 << 16)
        return read

    def close(self) -> None:
        self.stream.close()
        os.close(self._ours)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    made = Terminal()
    yield made
    made.close()


def plain(written: bytes) -> str:
    """Without colours and movements of the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode()).replace("\r", "\n")


def test_bar_and_many_lines_are_drawn_at_most_twice_per_second(terminal: Terminal) -> None:
    console = Console(stream=terminal.stream)
    start = time.monotonic()
    with console.bar("training", 1000) as bar:
        for step in range(100):
            bar.show(step)
            console.line(f"line {step}")
            with console.bar("evaluation", 3) as inner:
                inner.show(1)
            time.sleep(0.012)
    seconds = time.monotonic() - start
    written = terminal.read()
    # One at the beginning, two a second, and one that clears the bar.
    assert 2 <= written.count(FRAME) <= 2 * seconds + 2
    lines = [line for line in plain(written).split("\n") if line.startswith("line ")]
    assert lines == [f"line {step}" for step in range(100)]


def test_bar_shows_progress_and_is_removed_at_the_end(terminal: Terminal) -> None:
    console = Console(stream=terminal.stream)
    with console.bar("training", 40, 10) as bar:
        time.sleep(0.1)
        bar.show(25)
        time.sleep(0.6)
        before = plain(terminal.read())
    assert re.search(r"training .* 10/40 ", before)
    assert re.search(r"training .* 25/40 ", before)
    assert terminal.read() == FRAME
    console.line("the end")
    assert terminal.read() == b"the end\r\n"


def test_bar_without_a_total_shows_its_count(terminal: Terminal) -> None:
    console = Console(stream=terminal.stream)
    with console.bar("training", None) as bar:
        bar.show(7)
        time.sleep(0.6)
    assert "7/?" in plain(terminal.read())


def test_nested_bar_replaces_the_outer_one(terminal: Terminal) -> None:
    console = Console(stream=terminal.stream)
    with console.bar("training", 10), console.bar("evaluation", 10):
        time.sleep(0.6)
    assert "evaluation" in plain(terminal.read())


def test_bar_fits_into_one_line_of_a_narrow_terminal(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    console = Console(stream=terminal.stream)
    with console.bar("training", 100000):
        time.sleep(0.1)
    (bar,) = [text for text in plain(terminal.read()).split("\n") if "training" in text]
    assert len(bar) <= 30


def test_buffered_lines_are_printed_when_an_error_ends_the_work(terminal: Terminal) -> None:
    console = Console(stream=terminal.stream)

    def fail() -> None:
        with console.bar("training", 3):
            time.sleep(0.1)
            console.line("the last words")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert "the last words" in plain(terminal.read())


@pytest.mark.parametrize("kind", ["a file", "a dumb terminal"])
def test_without_a_capable_terminal_only_plain_lines_are_printed(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    stream: io.StringIO | io.TextIOWrapper = io.StringIO()
    if kind == "a dumb terminal":
        monkeypatch.setenv("TERM", "dumb")
        stream = terminal.stream
    console = Console(stream=stream)
    with console.bar("training", 3) as bar:
        bar.show(1)
        console.line("one")
        bar.show(2)
    console.line("two")
    written = stream.getvalue() if isinstance(stream, io.StringIO) else terminal.read().decode()
    assert written.replace("\r", "") == "one\ntwo\n"


def test_only_the_first_rank_prints(terminal: Terminal, tmp_path: Path) -> None:
    console = Console(silent=True, stream=terminal.stream)
    console.keep_log(tmp_path / "log.txt")
    with console.bar("training", 3):
        console.line("one")
    assert terminal.read() == b""
    assert not (tmp_path / "log.txt").exists()


def test_log_starts_with_the_lines_printed_before_it_was_opened(tmp_path: Path) -> None:
    console = Console(stream=io.StringIO())
    console.line("early")
    console.keep_log(tmp_path / "log.txt")
    console.line("late")
    assert (tmp_path / "log.txt").read_text() == "early\nlate\n"
    console.close()


def test_unopenable_log_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        Console(stream=io.StringIO()).keep_log(tmp_path / "none" / "log.txt")


def test_terminal_output_refreshes_at_most_twice_per_second(tmp_path: Path) -> None:
    """The whole command, with a log line at every step of two milliseconds."""
    arguments = ["train", "small", "--import", "tests.cli.small_recipe", "--device", "cpu"]
    for field in ("training.duration=2s", "schedule.kind=constant", "training.evaluate_every=0.3s"):
        arguments += ["--set", field]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        environment = {
            **os.environ,
            "TERM": "xterm",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT / 'src'}",
        }
        os.execve(sys.executable, [sys.executable, "-m", "jumar", *arguments], environment)
    frames: list[float] = []
    written = b""
    while True:
        try:
            read = os.read(terminal, 1 << 16)
        except OSError:  # the other end was closed
            break
        if not read:
            break
        frames += [time.monotonic()] * read.count(FRAME)
        written += read
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0, written.decode()
    assert len(frames) >= 4
    # In no second more than two, but for the one that clears the bar at the end of the training,
    # and those of a second before, which we see late where we wait for a core.
    busiest = max(sum(at <= frame < at + 1 for frame in frames) for at in frames)
    assert busiest <= 5
    assert len(frames) <= 2 * (frames[-1] - frames[0]) + 3
    steps = re.findall(r"^step: +(\d+)", plain(written), re.MULTILINE)
    assert [int(step) for step in steps] == list(range(1, len(steps) + 1))


def test_closed_pipe_does_not_end_a_run_with_a_log(tmp_path: Path) -> None:
    def closed() -> io.TextIOWrapper:
        reading, writing = os.pipe()
        os.close(reading)
        return os.fdopen(writing, "w")

    stream = closed()
    console = Console(stream=stream)
    console.keep_log(tmp_path / "log.txt")
    console.line("one")
    console.line("two")
    assert (tmp_path / "log.txt").read_text() == "one\ntwo\n"
    if Path("/proc/self/fd").exists():
        assert Path(f"/proc/self/fd/{stream.fileno()}").readlink() == Path(os.devnull)
    console.close()
    console.close()
    stream.close()
    stream = closed()
    with pytest.raises(BrokenPipeError):
        Console(stream=stream).line("one")
    with pytest.raises(BrokenPipeError):
        stream.close()


def test_log_is_appended_to_and_closed_and_lines_after_it_are_kept_for_the_next(
    tmp_path: Path,
) -> None:
    stream = io.StringIO()
    for number in (1, 2):
        console = Console(stream=stream)
        console.line(f"early {number}")
        console.keep_log(tmp_path / "log.txt")
        console.line(f"late {number}\x1b[2J\tand\nmore")
        assert (tmp_path / "log.txt").read_text().count("late") == number
        console.close()
        console.line("after")
    lines = "early {0}\nlate {0}\\x1b[2J\tand\nmore\n"
    assert (tmp_path / "log.txt").read_text() == lines.format(1) + lines.format(2)
    assert stream.getvalue() == "".join(lines.format(n) + "after\n" for n in (1, 2))
    console.keep_log(tmp_path / "other.txt")
    assert (tmp_path / "other.txt").read_text() == "after\n"
    console.close()


def test_full_disk_loses_log_lines_but_not_screen_lines() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    stream = io.StringIO()
    console = Console(stream=stream)
    console.keep_log(Path("/dev/full"))
    console.line("one")
    console.close()
    assert stream.getvalue() == "one\n"


def test_bar_accepts_a_later_total_and_note(terminal: Terminal) -> None:
    console = Console(stream=terminal.stream)
    bar = console.bar("training", None)
    bar.show(3)
    assert bar.text() == ""
    with bar:
        bar.show_with_total(4, 9)
        assert re.search(r"^training .* 4/9 ", plain(bar.text().encode()))
        bar.show(5, "slow")
        assert re.search(r"^training .* 5/9 .* slow$", plain(bar.text().encode()))
    assert bar.text() == ""
    terminal.read()


def test_console_is_live_on_a_terminal_that_can_draw_and_only_for_the_first_rank(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Console(stream=terminal.stream).is_live
    assert not Console(stream=terminal.stream, silent=True).is_live
    assert not Console(stream=io.StringIO()).is_live
    monkeypatch.setenv("TERM", "dumb")
    assert not Console(stream=terminal.stream).is_live
    monkeypatch.delenv("TERM")
    assert Console(stream=terminal.stream).is_live


def test_second_bar_is_refreshed_after_the_first_has_ended(terminal: Terminal) -> None:
    console = Console(stream=terminal.stream)
    with console.bar("first", 2):
        pass
    written, latest = b"", time.monotonic() + 20
    with console.bar("second", 9) as bar:
        bar.show(4)
        while b"4/9" not in written and time.monotonic() < latest:
            written += terminal.read()
    assert b"second" in written
    assert b"4/9" in written
