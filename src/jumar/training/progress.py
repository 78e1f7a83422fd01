"""What a person sees while a run works: a live line on a terminal, plain lines elsewhere."""

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TextIO

from rich.console import Console as RichConsole
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

REFRESH_SECONDS = 0.5
"""A bar that is redrawn at every step can cost more than the step."""


class Console:
    """Lines for a person, kept in a log file too; silent on all ranks but the first.

    Args:
        silent: Print nothing (ranks other than the first).
        stream: Where to print; the standard output by default.
    """

    def __init__(self, *, silent: bool = False, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._silent = silent
        self._log: TextIO | None = None
        self._early: list[str] = []
        self._progress: Progress | None = None

    @property
    def is_live(self) -> bool:
        """Whether there is a terminal to draw on."""
        return not self._silent and self._stream.isatty()

    def keep_log(self, path: Path) -> None:
        """Append every line to a file from now on, beginning with those printed already."""
        if not self._silent:
            self._log = path.open("a", encoding="utf-8")
            self._log.writelines(line + "\n" for line in self._early)
            self._early.clear()

    def line(self, text: str) -> None:
        """Print a line, above the live display if there is one."""
        if self._silent:
            return
        if self._log is not None:
            self._log.write(text + "\n")
            self._log.flush()
        else:
            self._early.append(text)
        if self._progress is not None:
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            self._stream.write(text + "\n")
            self._stream.flush()

    def close(self) -> None:
        """Close the log file."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def bar(self, what: str, total: int, done: int = 0) -> "Bar":
        """A live bar on a terminal; elsewhere the same object that shows nothing."""
        if not self.is_live or self._progress is not None:
            return Bar(self, None, None)
        progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=RichConsole(file=self._stream),
            refresh_per_second=1 / REFRESH_SECONDS,
            transient=True,
        )
        task = progress.add_task(what, total=total, completed=done, note="")
        return Bar(self, progress, task)

    def attach(self, progress: Progress | None) -> None:
        """Let lines be printed above this display."""
        self._progress = progress


class Bar:
    """A live display of how far something is; a context manager."""

    def __init__(self, console: Console, progress: Progress | None, task: TaskID | None) -> None:
        self._console = console
        self._progress = progress
        self._task = task
        self._next = 0.0

    def __enter__(self) -> "Bar":
        if self._progress is not None:
            self._progress.start()
            self._console.attach(self._progress)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._console.attach(None)

    def show(self, done: int, note: str = "") -> None:
        """Say how far it is; drawn at most twice a second."""
        if self._progress is None or self._task is None:
            return
        now = time.monotonic()
        if now >= self._next:
            self._next = now + REFRESH_SECONDS
            self._progress.update(self._task, completed=done, note=note)

    def show_of(self, done: int, total: int) -> None:
        """The same where the total is known only now."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, total=total)
        self.show(done)
