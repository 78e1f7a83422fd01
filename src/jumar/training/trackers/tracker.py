"""The base class of trackers that write files; it reports a full disk as a user's error."""

import contextlib
from abc import ABC, abstractmethod

from jumar.ground.errors import UserError
from jumar.ground.paths import unwritable
from jumar.observer import Observer, Record


class Tracker(Observer, ABC):
    """An observer that writes the records of a run into its folder.

    Args:
        where: The run's folder, for messages.
    """

    def __init__(self, where: str) -> None:
        self._where = where

    @abstractmethod
    def start(self, first_step: int) -> None:
        """Open the destination; see `Observer.open`."""

    @abstractmethod
    def write(self, record: Record) -> None:
        """Write a record."""

    @abstractmethod
    def finish(self) -> None:
        """Close the destination; called even if `start` failed."""

    def open(self, first_step: int) -> None:
        """See `Observer.open`.

        Raises:
            UserError: The run's folder cannot be written.
        """
        try:
            self.start(first_step)
        except OSError as error:
            raise self._unwritable(error) from error

    def record(self, record: Record) -> None:
        """See `Observer.record`.

        Raises:
            UserError: The disk is full or cannot be written to.
        """
        try:
            self.write(record)
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """See `Observer.close`."""
        # `record` has already reported a full disk.
        with contextlib.suppress(OSError):
            self.finish()

    def _unwritable(self, error: OSError) -> UserError:
        return unwritable(
            self._where,
            error,
            what="the training log cannot be written",
            more="Existing checkpoints are intact.",
        )
