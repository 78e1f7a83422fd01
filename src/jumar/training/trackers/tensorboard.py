"""Records as TensorBoard events."""

import importlib
import importlib.util
import os
import socket
import time
from typing import Any, BinaryIO

from jumar.observer import Record
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.trackers.records import numbers_of
from jumar.training.trackers.tracker import Tracker


def is_installed() -> bool:
    """Whether tensorboard is installed."""
    return importlib.util.find_spec("tensorboard") is not None


class TensorBoardTracker(Tracker):
    """Writes every number of a record as a scalar.

    Uses tensorboard's own record writer, because `torch.utils.tensorboard` writes in a thread that
    dies with a traceback on a full disk. If tensorboard cannot be loaded, a line reports it and
    nothing is written.

    Args:
        run: The run directory, in which the folder `tensorboard` is created.
        console: Prints the line if tensorboard cannot be loaded.
    """

    def __init__(self, run: RunDirectory, console: Console) -> None:
        super().__init__(str(run))
        self._folder = run.tensorboard
        self._console = console
        self._file: BinaryIO | None = None
        self._event: Any = None
        self._summary: Any = None
        self._records: Any = None

    def start(self, first_step: int) -> None:
        """Open a new event file."""
        proto = "tensorboard.compat.proto"
        try:
            self._event = importlib.import_module(f"{proto}.event_pb2")
            self._summary = importlib.import_module(f"{proto}.summary_pb2")
            records = importlib.import_module("tensorboard.summary.writer.record_writer")
        except ImportError as error:
            self._console.line(
                f"no TensorBoard events, because tensorboard cannot be loaded: {error}"
            )
            return
        self._folder.mkdir(exist_ok=True)
        now, host = int(time.time()), socket.gethostname()
        name = f"events.out.tfevents.{now:010d}.{host}.{os.getpid()}"
        self._file = (self._folder / name).open("ab")
        self._records = records.RecordWriter(self._file)
        self._append(file_version="brain.Event:2")
        start = self._event.SessionLog(status=self._event.SessionLog.START)
        # Hides events of an interrupted run after the checkpoint, which will be written again.
        self._append(session_log=start, step=first_step + 1)

    def write(self, record: Record) -> None:
        """Write every number of the record as a scalar."""
        if self._records is None:
            return
        values = [
            self._summary.Summary.Value(tag=name, simple_value=value)
            for name, value in numbers_of(record.to_json()).items()
        ]
        self._append(summary=self._summary.Summary(value=values), step=record.step)

    def finish(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _append(self, **content: Any) -> None:
        assert self._file is not None
        event = self._event.Event(wall_time=time.time(), **content)
        self._records.write(event.SerializeToString())
        self._file.flush()
