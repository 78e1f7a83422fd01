"""Records as `metrics.jsonl`."""

import json
from typing import TextIO

from jumar.observer import Record
from jumar.training.run_directory import RunDirectory, finite
from jumar.training.trackers.tracker import Tracker


class JsonLinesTracker(Tracker):
    """Appends one line per record, flushed immediately."""

    def __init__(self, run: RunDirectory) -> None:
        super().__init__(str(run))
        self._path = run.metrics
        self._file: TextIO | None = None

    def start(self, first_step: int) -> None:
        """Open the file."""
        del first_step
        self._file = self._path.open("a", encoding="utf-8")

    def write(self, record: Record) -> None:
        """Append the record."""
        assert self._file is not None
        self._file.write(json.dumps(finite(record.to_json())) + "\n")
        self._file.flush()

    def finish(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
