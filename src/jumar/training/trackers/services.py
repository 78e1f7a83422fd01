"""Records sent to a tracking service: Weights & Biases, MLflow, SwanLab."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jumar.ground.errors import UserError
from jumar.ground.json_text import flattened
from jumar.ground.paths import is_file
from jumar.ground.text import first_line
from jumar.observer import Observer, Record
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory, read_json, write_json
from jumar.training.trackers.records import numbers_of

PROJECT = "jumar"
"""The project of a run if the service's environment variable names none."""


class Service(ABC):
    """One tracking service; `ServiceTracker` turns its exceptions into messages."""

    @abstractmethod
    def begin(
        self, run_id: str | None, name: str, settings: Mapping[str, object], folder: Path
    ) -> str:
        """Begin a run, or resume one.

        Args:
            run_id: The id of the run to resume; None for a new run.
            name: The displayed name of a new run.
            settings: The recipe's fields by path.
            folder: The folder for the service's files.

        Returns:
            The run's id at the service.
        """

    @abstractmethod
    def send(self, step: int, numbers: Mapping[str, float]) -> None:
        """Send numbers of a step; steps never decrease."""

    @abstractmethod
    def end(self) -> None:
        """Send pending numbers, and end the run."""


class LibraryService(Service):
    """A service whose library represents the run by an object with `log` and `finish`."""

    def __init__(self) -> None:
        self._run: Any = None

    def send(self, step: int, numbers: Mapping[str, float]) -> None:
        """See `Service.send`."""
        self._run.log(dict(numbers), step=step)

    def end(self) -> None:
        """See `Service.end`."""
        self._run.finish()


class ServiceTracker(Observer):
    """Sends every number of a record to a service.

    A service that cannot be reached at the start is an error; one that fails later gets no further
    records, but does not stop the training. The last step sent is stored in the run directory, so
    that a resumed run continues the same run of the service, without sending a step twice.

    Args:
        name: Name of the service.
        service: The service.
        run: The run to track.
        console: Prints a line if the service fails.
    """

    def __init__(self, name: str, service: Service, run: RunDirectory, console: Console) -> None:
        self._name, self._service, self._run, self._console = name, service, run, console
        self._noted: dict[str, Any] = {}
        self._sends = False

    def open(self, first_step: int) -> None:
        """See `Observer.open`.

        Raises:
            UserError: The service cannot be reached, or no longer has the run.
        """
        del first_step
        noted = tracked(self._run).get(self._name, {})
        settings = flattened(self._run.read_recipe().get("settings", {}))
        name = self._run.path.absolute().name
        try:
            run_id = self._service.begin(noted.get("id"), name, settings, self._run.path)
        except Exception as error:  # whatever a service raises
            raise UserError(
                f"{self._name} cannot track the run: {_reason(error)}",
                where="--track",
                todo="Check its address and key, or train without it; in that case also remove "
                f"'{self._name}' from {self._run.tracked}.",
            ) from error
        self._noted = {**noted, "id": run_id}
        self._sends = True
        self._note()

    def record(self, record: Record) -> None:
        """See `Observer.record`."""
        data = record.to_json()
        kind = str(data["kind"])
        if not self._sends or record.step <= self._noted.get(kind, -1):
            return
        try:
            self._service.send(record.step, numbers_of(data))
        except Exception as error:  # whatever a service raises
            self._sends = False
            self._console.line(
                f"{self._name} failed and gets no further records until the run is resumed: "
                f"{_reason(error)}"
            )
            return
        self._noted[kind] = record.step
        self._note()

    def close(self) -> None:
        """See `Observer.close`."""
        if not self._noted:
            return
        try:
            self._service.end()
        except Exception as error:  # whatever a service raises
            self._console.line(f"{self._name} could not be ended: {_reason(error)}")

    def _note(self) -> None:
        # A full disk is reported when the run writes its own log.
        with suppress(UserError):
            write_json(self._run.tracked, {**tracked(self._run), self._name: self._noted})


def tracked(run: RunDirectory) -> dict[str, Any]:
    """The state of each service of a run: the run's id, and the last step by kind of record.

    Raises:
        UserError: The file is damaged.
    """
    return read_json(run.tracked) if is_file(run.tracked) else {}


def _reason(error: BaseException) -> str:
    return ": ".join(filter(None, (type(error).__name__, first_line(str(error)))))
