"""Progress output during a run: a live bar on a terminal, plain lines elsewhere."""

import contextlib
import os
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import TextIO

from rich.console import Console as RichConsole
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from jumar.ground.paths import unwritable
from jumar.ground.text import plain_text

REFRESH_SECONDS = 0.5
"""Redrawing a bar at every step can cost more than the step itself."""

_CLEAR_LINE = "\r\x1b[2K"


class Console:
    """Prints lines for users and writes them to a log file; silent on all ranks but the first.

    While a bar is shown, only one thread writes to the terminal, twice a second: the lines since
    the last refresh and the bar, in one write. `rich.live` would redraw the bar for every line.

    Args:
        silent: Whether to print nothing (on ranks other than the first).
        stream: The stream to print to; standard output by default.
    """

    def __init__(self, *, silent: bool = False, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self._silent = silent
        self._log: TextIO | None = None
        self._early: list[str] = []
        self._bars: list[Bar] = []
        self._waiting: list[str] = []
        self._lock = threading.Lock()
        self._last = -REFRESH_SECONDS
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_live(self) -> bool:
        """Whether there is a terminal to draw on."""
        return not self._silent and self.stream.isatty() and os.environ.get("TERM") != "dumb"

    def keep_log(self, path: Path) -> None:
        """Append every line to a file from now on, starting with those already printed.

        Raises:
            UserError: The file cannot be written.
        """
        if self._silent:
            return
        try:
            self._log = path.open("a", encoding="utf-8")
            self._log.writelines(line + "\n" for line in self._early)
            self._log.flush()
        except OSError as error:
            raise unwritable(path, error) from error
        self._early.clear()

    def line(self, text: str) -> None:
        """Print a line, above the live display if there is one."""
        if self._silent:
            return
        text = plain_text(text, keep="\n\t")
        if self._log is not None:
            # A full disk must not end the run here, where no data is lost: the line is printed too.
            with contextlib.suppress(OSError):
                self._log.write(text + "\n")
                self._log.flush()
        else:
            self._early.append(text)
        with self._lock:
            if self._bars:
                self._waiting.append(text)
                return
        try:
            self.stream.write(text + "\n")
            self.stream.flush()
        except OSError:
            if self._log is None:
                raise
            # The reader of the output is gone (`| head`, a closed session). The log file has the
            # lines, and a run of days must not end because of that. After redirecting to /dev/null,
            # Python does not fail when it flushes the stream at exit.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())

    def close(self) -> None:
        """Close the log file."""
        if self._log is not None:
            with contextlib.suppress(OSError):
                self._log.close()
            self._log = None

    def bar(self, what: str, total: int | None, done: int = 0) -> "Bar":
        """A bar that is shown on a terminal, and elsewhere invisible.

        A bar inside another one replaces it temporarily.

        Args:
            what: The name of the activity.
            total: The total amount of work; None if unknown.
            done: The amount done so far.
        """
        return Bar(self, what, total, done)

    def attach(self, bar: "Bar") -> None:
        """Start showing a bar."""
        with self._lock:
            self._bars.append(bar)
        if self._thread is None:
            self._done.clear()
            self._thread = threading.Thread(target=self._refresh, name="progress", daemon=True)
            self._thread.start()

    def detach(self, bar: "Bar") -> None:
        """Remove a bar; after the last one, the waiting lines are printed."""
        with self._lock:
            self._bars.remove(bar)
            if self._bars:
                return
        self._done.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._lock:
            self._write("")

    def _refresh(self) -> None:
        while not self._done.wait(self._last + REFRESH_SECONDS - time.monotonic()):
            with self._lock:
                try:
                    self._write(self._bars[-1].text() if self._bars else "")
                except OSError:
                    return  # the terminal is gone, which the next plain line will report

    def _write(self, bar: str) -> None:
        lines = "".join(f"{line}\n" for line in self._waiting)
        # With the cursor at the left margin, other output, such as a warning, starts there.
        end = f"{bar}\r" if bar else ""
        self._waiting.clear()
        self._last = time.monotonic()
        self.stream.write(_CLEAR_LINE + lines + end)
        self.stream.flush()


class Bar:
    """Progress of an activity, shown if there is a terminal; a context manager."""

    def __init__(self, console: Console, what: str, total: int | None, done: int) -> None:
        self._console = console
        self._what = what
        self._total = total
        self._begin = self._done = done
        self._note = ""
        self._progress: Progress | None = None

    def __enter__(self) -> "Bar":
        if self._console.is_live:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=RichConsole(file=self._console.stream, force_terminal=True),
                auto_refresh=False,
            )
            self._progress.add_task(
                self._what, total=self._total, completed=self._begin, note=self._note
            )
            self._console.attach(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._console.detach(self)
            self._progress = None

    def show(self, done: int, note: str = "") -> None:
        """Update the progress; costs nothing, since another thread draws the bar."""
        self._done, self._note = done, note

    def show_with_total(self, done: int, total: int) -> None:
        """Update the progress and the total, which may become known only now."""
        self._total = total
        self.show(done)

    def text(self) -> str:
        """The bar's current state as one coloured line of the terminal's width."""
        progress = self._progress
        if progress is None:
            return ""
        progress.update(
            progress.task_ids[0], completed=self._done, total=self._total, note=self._note
        )
        with progress.console.capture() as capture:
            progress.console.print(progress.get_renderable(), end="")
        return capture.get().split("\n", 1)[0].rstrip()
