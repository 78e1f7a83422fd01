"""Records sent to a tracking service: Weights & Biases, MLflow, SwanLab."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jumar.ground.errors import UserError
from jumar.ground.paths import is_file
from jumar.observer import Observer, Record
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory, read_json, write_json
from jumar.training.trackers.records import numbers_of

PROJECT = "jumar"
"""Where runs go if the service's own variable names no project."""


class Service(ABC):
    """One tracking service; what it raises is turned into messages by `ServiceTracker`."""

    @abstractmethod
    def begin(
        self, run_id: str | None, name: str, settings: Mapping[str, object], folder: Path
    ) -> str:
        """Begin a run, or resume one.

        Args:
            run_id: The run to resume; None for a new one.
            name: Shown for a new one.
            settings: The recipe's fields, flat.
            folder: For the service's own files.

        Returns:
            The service's id of the run.
        """

    @abstractmethod
    def send(self, step: int, numbers: Mapping[str, float]) -> None:
        """Add numbers at a step, which never decreases."""

    @abstractmethod
    def end(self) -> None:
        """Send what is left, and end the run."""


class ServiceTracker(Observer):
    """Sends every number of a record to a service.

    A service that cannot be reached at the start is an error; one that fails later loses the rest
    of its records, but does not stop the training. What it was sent is noted in the run directory,
    so that a resumed run continues in the service's same run, without the steps that it repeats.

    Args:
        name: Name of the service.
        service: The service.
        run: What is tracked.
        console: Receives a line if the service fails.
    """

    def __init__(self, name: str, service: Service, run: RunDirectory, console: Console) -> None:
        self._name, self._service, self._run, self._console = name, service, run, console
        self._noted: dict[str, Any] = {}
        self._sends = False

    def open(self, first_step: int) -> None:
        """See `Observer.open`.

        Raises:
            UserError: The service cannot be reached, or does not know the run any more.
        """
        del first_step
        noted = tracked(self._run).get(self._name, {})
        settings = dict(flat(self._run.read_recipe().get("settings", {})))
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
        kind = str(data.pop("kind"))
        if not self._sends or record.step <= self._noted.get(kind, -1):
            return
        numbers = {f"{kind}/{name}": value for name, value in numbers_of(data) if name != "step"}
        try:
            self._service.send(record.step, numbers)
        except Exception as error:  # whatever a service raises
            self._sends = False
            self._console.line(
                f"{self._name} failed, and receives nothing more from this run until it is "
                "resumed: "
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
        # A full disk is reported by the log of the run itself.
        with suppress(UserError):
            write_json(self._run.tracked, {**tracked(self._run), self._name: self._noted})


def tracked(run: RunDirectory) -> dict[str, Any]:
    """What a run sent to each service: its id there, and the last step by kind of record.

    Raises:
        UserError: The file is damaged.
    """
    return read_json(run.tracked) if is_file(run.tracked) else {}


def flat(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, object]]:
    """The fields of a recipe as `optimizer.learning_rate`."""
    fields: list[tuple[str, object]] = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            fields += flat(value, f"{prefix}{name}.")  # pyright: ignore[reportUnknownArgumentType]
        else:
            fields.append((f"{prefix}{name}", value))
    return fields


def _reason(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
