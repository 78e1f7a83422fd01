"""Which trackers a run has; a new one is added here."""

from jumar.observer import Observer
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.trackers import tensorboard
from jumar.training.trackers.console import ConsoleTracker
from jumar.training.trackers.json_lines import JsonLinesTracker


def create_trackers(run: RunDirectory, console: Console) -> list[Observer]:
    """The trackers of the first rank."""
    trackers: list[Observer] = [ConsoleTracker(console), JsonLinesTracker(run)]
    if tensorboard.is_installed():
        trackers.append(tensorboard.TensorBoardTracker(run, console))
    return trackers
