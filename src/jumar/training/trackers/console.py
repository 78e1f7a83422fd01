"""Records as lines on the console and in `log.txt`."""

from jumar.observer import Observer, Record
from jumar.training.progress import Console
from jumar.training.trackers.records import TRAIN_HEADER, TrainRecord


class ConsoleTracker(Observer):
    """Prints a line per record.

    Args:
        console: The console, which the caller closes.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._has_header = False

    def record(self, record: Record) -> None:
        """Print the record's line, after the column names if it is the first."""
        if isinstance(record, TrainRecord) and not self._has_header:
            self._console.line(TRAIN_HEADER)
            self._has_header = True
        if line := record.line():
            self._console.line(line)
