"""The choice of a run's trackers; a new tracker is added here."""

import os
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Final, NamedTuple

from jumar.ground.errors import UserError
from jumar.observer import Observer
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.trackers import tensorboard
from jumar.training.trackers.console import ConsoleTracker
from jumar.training.trackers.json_lines import JsonLinesTracker
from jumar.training.trackers.mlflow_service import MlflowService
from jumar.training.trackers.services import Service, ServiceTracker, tracked
from jumar.training.trackers.swanlab_service import SwanLabService
from jumar.training.trackers.wandb_service import WandbService


class _Kind(NamedTuple):
    """A service, and the environment variable of the service that requests it."""

    create: Callable[[], Service]
    variable: str


SERVICES: Final[Mapping[str, _Kind]] = {
    "mlflow": _Kind(MlflowService, "MLFLOW_TRACKING_URI"),
    "swanlab": _Kind(SwanLabService, "SWANLAB_PROJ_NAME"),
    "wandb": _Kind(WandbService, "WANDB_PROJECT"),
}
"""Services by the name of their package, which is also the name of the extra."""


def create_trackers(run: RunDirectory, console: Console) -> list[Observer]:
    """The trackers of the first rank."""
    trackers: list[Observer] = [ConsoleTracker(console), JsonLinesTracker(run)]
    if tensorboard.is_installed():
        trackers.append(tensorboard.TensorBoardTracker(run, console))
    return trackers


def create_services(
    requested: Sequence[str], run: RunDirectory, say: Callable[[str], None], console: Console
) -> list[Observer]:
    """Create the services that track a run: requested ones, those of the run's earlier starts, and
    those whose environment variable is set.

    Args:
        requested: Names of the requested services.
        run: The run; a resumed one has recorded its services.
        say: Called with a line about a service that is not installed although its variable is set.
        console: Prints later failures.

    Raises:
        UserError: A service is unknown, or not installed.
    """
    for name in requested:
        if name not in SERVICES:
            raise UserError(
                f"there is no tracker '{name}'",
                where="--track",
                todo=f"Available: {', '.join(SERVICES)}.",
            )
    names = dict.fromkeys([*requested, *tracked(run)])
    for name, kind in SERVICES.items():
        if name in names or not os.environ.get(kind.variable):
            continue
        if find_spec(name) is None:
            say(f'{kind.variable} is set, but {name} is not installed: pip install "jumar[{name}]"')
        else:
            names[name] = None
    for name in names:
        if find_spec(name) is None:
            raise UserError(
                f"{name} is not installed", where="--track", todo=f'pip install "jumar[{name}]"'
            )
    return [
        ServiceTracker(name, SERVICES[name].create(), run, console)
        for name in names
        if name in SERVICES
    ]
