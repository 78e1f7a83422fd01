"""Records as lines on the console and in `log.txt`."""

from jumar.observer import Observer, Record
from jumar.training.progress import Console
from jumar.training.trackers.records import TRAIN_HEADER, TrainRecord


class ConsoleTracker(Observer):
    """Prints a line per record.

    Args:
        console: Belongs to the caller, who closes it.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._headed = False

    def record(self, record: Record) -> None:
        """Print the record's line, preceded the first time by the column names."""
        if isinstance(record, TrainRecord) and not self._headed:
            self._console.line(TRAIN_HEADER)
            self._headed = True
        if line := record.line():
            self._console.line(line)
