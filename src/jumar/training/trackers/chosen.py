"""Which trackers a run has; a new one is added here."""

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
    """A service, and its own variable that requests it."""

    create: Callable[[], Service]
    variable: str


SERVICES: Final[Mapping[str, _Kind]] = {
    "mlflow": _Kind(MlflowService, "MLFLOW_TRACKING_URI"),
    "swanlab": _Kind(SwanLabService, "SWANLAB_PROJ_NAME"),
    "wandb": _Kind(WandbService, "WANDB_PROJECT"),
}
"""By the name of the package, which is also the name of the extra."""


def create_trackers(run: RunDirectory, console: Console) -> list[Observer]:
    """The trackers of the first rank."""
    trackers: list[Observer] = [ConsoleTracker(console), JsonLinesTracker(run)]
    if tensorboard.is_installed():
        trackers.append(tensorboard.TensorBoardTracker(run, console))
    return trackers


def create_services(
    asked: Sequence[str], run: RunDirectory, say: Callable[[str], None], console: Console
) -> list[Observer]:
    """The services that track a run: those requested, those with which it began, and those whose
    own variable is set.

    Args:
        asked: Names of the requested services.
        run: The run; a resumed one has recorded its services.
        say: Called with a line about a service that is not installed although its variable is set.
        console: For failures later on.

    Raises:
        UserError: One is unknown, or not installed.
    """
    for name in asked:
        if name not in SERVICES:
            raise UserError(
                f"no tracker '{name}'", where="--track", todo=f"Available: {', '.join(SERVICES)}."
            )
    names = dict.fromkeys([*asked, *tracked(run)])
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
