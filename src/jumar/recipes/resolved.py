"""What a run found out from its data, kept in `resolved.json` so that later commands need no data.

Names of classes, settings that the data decided, and where the data was.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from jumar.ground.errors import UserError
from jumar.ground.paths import exists, expanded, is_file, resolved
from jumar.recipes.recipe import Recipe
from jumar.settings import from_json, override, to_json
from jumar.tasks.task import Task
from jumar.training.run_directory import RunDirectory, read_json, write_json

_PLACES = ("data.path", "data.eval_path")


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """What a run found out.

    Attributes:
        outputs: What the network's outputs mean, such as the names of the classes; empty where
            nothing says so.
        settings: Those that the data decided, as `recipe.json` would hold them.
        places: Absolute paths of the data, by the fields that name them.
    """

    outputs: tuple[str, ...] = ()
    settings: Mapping[str, Any]
    places: Mapping[str, str]


def keep_resolved(run: RunDirectory, recipe: Recipe, task: Task) -> None:
    """Write what a recipe's task found out into its run.

    Raises:
        UserError: The run cannot be written to.
    """
    places = {field: _value(recipe, field) for field in _PLACES}
    content = {
        "outputs": list(task.outputs),
        "settings": _changes(to_json(recipe), to_json(recipe.settled(task))),
        "places": {
            field: str(resolved(expanded(text)))
            for field, text in places.items()
            if text and exists(expanded(text))
        },
        "samples": {
            part: len(data)
            for part, data in (("train", task.train_data), ("eval", task.eval_data))
            if data is not None
        },
    }
    write_json(run.resolved, content)


def read_resolved(run: RunDirectory) -> Resolved | None:
    """What a run found out; None for a run of an earlier version.

    Raises:
        UserError: The file is damaged.
    """
    if not is_file(run.resolved):
        return None
    content = read_json(run.resolved)
    outputs, settings, places = (
        content.get(name, default)
        for name, default in (("outputs", []), ("settings", {}), ("places", {}))
    )
    if not (
        isinstance(outputs, list)
        and isinstance(settings, dict)
        and isinstance(places, dict)
        and all(isinstance(text, str) for text in [*outputs, *places.values()])
    ):
        raise UserError(
            "'outputs', 'settings' or 'places' are not as a run writes them",
            where=str(run.resolved),
            todo="Delete it: `jumar train --resume` writes it anew.",
        )
    return Resolved(outputs=tuple(outputs), settings=settings, places=places)


def settled(recipe: Recipe, run: RunDirectory) -> Recipe:
    """The recipe of a run with the settings that its data decided.

    Raises:
        UserError: `resolved.json` is damaged or belongs to another recipe.
    """
    known = read_resolved(run)
    if known is None:
        return recipe
    return from_json(recipe, known.settings, where=str(run.resolved))


def with_data_in_place(recipe: Recipe, run: RunDirectory, notice: Callable[[str], None]) -> Recipe:
    """The recipe of a run with its data where the run found it, if it is not at its path.

    A run with relative paths can so be used from any folder.

    Args:
        recipe: Of the run.
        run: Where the places are kept.
        notice: Receives a line for each path that is replaced.
    """
    known = read_resolved(run)
    for field, place in {} if known is None else known.places.items():
        text = _value(recipe, field)
        if text and not exists(expanded(text)) and exists(expanded(place)):
            notice(f"{field}: '{text}' is not here; using {place}, where the run had it")
            recipe = override(recipe, [f"{field}={place}"])
    return recipe


def field_with(recipe: Recipe, path: str) -> str:
    """The field of a recipe that names a path of its data; empty where none does."""
    return next((field for field in _PLACES if path and _value(recipe, field) == path), "")


def _value(recipe: Recipe, field: str) -> str:
    value = cast(Any, recipe)
    for name in field.split("."):
        value = getattr(value, name, "")
    return value if isinstance(value, str) else ""


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The values of `after` that differ from those of `before`, in the same nesting."""
    changes: dict[str, Any] = {}
    for name, value in after.items():
        earlier = before.get(name)
        if isinstance(value, dict) and isinstance(earlier, dict):
            inner = _changes(cast("dict[str, Any]", earlier), cast("dict[str, Any]", value))
            if inner:
                changes[name] = inner
        elif value != earlier:
            changes[name] = value
    return changes
