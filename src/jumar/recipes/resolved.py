"""What a run learned from its data, kept in `resolved.json` so that later commands need no data.

Class names, settings determined by the data, where the data was, and which items it had.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from jumar.data.samples import SampleSet, fingerprint, fingerprint_of
from jumar.ground.errors import UserError
from jumar.ground.paths import exists, expanded, is_file, resolved, store_url
from jumar.ground.text import counted
from jumar.recipes.recipe import Recipe
from jumar.settings import field_of, from_json, override, to_json
from jumar.tasks.class_weights import FIELD as WEIGHTS
from jumar.tasks.task import Task
from jumar.training.run_directory import RunDirectory, read_json, write_json

_PARTS = {"train": "data.path", "eval": "data.eval_path"}
"""The parts of the data, and the fields that name their paths."""
_PLACES = (*_PARTS.values(), "model.vocabulary")
"""The fields whose paths a run keeps absolute, so that it can be used from any folder."""


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """What a run learned from its data.

    Attributes:
        outputs: What the network's outputs mean, such as the class names; empty if unknown.
        settings: Settings determined by the data, as in `recipe.json`.
        places: Absolute paths of the data, by the fields that name them.
        samples: Number of samples in an epoch, by part.
        fingerprints: Fingerprint of each part, if its items have one; see
            `jumar.data.samples.Fingerprinted`. That of the class weights, if there are any, has the
            name of their field.
    """

    outputs: tuple[str, ...] = ()
    settings: Mapping[str, Any]
    places: Mapping[str, str]
    samples: Mapping[str, int]
    fingerprints: Mapping[str, str]


def keep_resolved(run: RunDirectory, recipe: Recipe, task: Task) -> None:
    """Write what a recipe's task learned from its data to the run.

    Raises:
        UserError: The run cannot be written to.
    """
    paths = {field: _value(recipe, field) for field in _PLACES}
    content = {
        "outputs": list(task.outputs),
        "settings": _changes(to_json(recipe), to_json(recipe.settled(task))),
        "places": {
            field: str(resolved(expanded(text)))
            for field, text in paths.items()
            if text and store_url(text) is None and exists(expanded(text))
        },
        "samples": {part: len(data) for part, data in _parts(task)},
        "fingerprints": {
            **{part: fingerprint_of(data) for part, data in _parts(task) if fingerprint_of(data)},
            **_of_class_weights(task),
        },
    }
    write_json(run.resolved, content)


def read_resolved(run: RunDirectory) -> Resolved | None:
    """What a run learned from its data; None for a run of an earlier version.

    Raises:
        UserError: The file is damaged.
    """
    if not is_file(run.resolved):
        return None
    content = read_json(run.resolved)
    outputs = content.get("outputs", [])
    settings, paths, samples, fingerprints = (
        content.get(name, {}) for name in ("settings", "places", "samples", "fingerprints")
    )
    if not (
        isinstance(outputs, list)
        and all(isinstance(value, dict) for value in (settings, paths, samples, fingerprints))
        and all(type(count) is int for count in samples.values())
        and all(
            isinstance(text, str) for text in [*outputs, *paths.values(), *fingerprints.values()]
        )
    ):
        raise UserError(
            "the content is malformed",
            where=str(run.resolved),
            todo="Delete it: `jumar train --resume` writes it again.",
        )
    return Resolved(
        outputs=tuple(outputs),
        settings=settings,
        places=paths,
        samples=samples,
        fingerprints=fingerprints,
    )


def settled(recipe: Recipe, run: RunDirectory) -> Recipe:
    """A run's recipe with the settings determined by its data.

    Raises:
        UserError: `resolved.json` is damaged or belongs to another recipe.
    """
    recorded = read_resolved(run)
    if recorded is None:
        return recipe
    return from_json(recipe, recorded.settings, where=str(run.resolved))


def with_data_in_place(
    recipe: Recipe,
    run: RunDirectory,
    notice: Callable[[str], None],
    assignments: Sequence[str] = (),
) -> Recipe:
    """A run's recipe with its data paths replaced, where missing, by where the run had the data.

    This way a run with relative paths can be used from any folder.

    Args:
        recipe: The run's recipe.
        run: The run, which recorded where its data was.
        notice: Called with a line for each path that is replaced.
        assignments: Fields that the user set now; a path among them stays, even if it is missing.
    """
    set_fields = set(map(field_of, assignments))
    recorded = read_resolved(run)
    for field, path in {} if recorded is None else recorded.places.items():
        text = _value(recipe, field)
        if not text or field in set_fields or store_url(text) is not None:
            continue  # the URL of a store works from every folder
        if not exists(expanded(text)) and exists(expanded(path)):
            notice(f"{field}: '{text}' does not exist here; using {path}, where the run had it")
            recipe = override(recipe, [f"{field}={path}"])
    return recipe


def movable_paths(run: RunDirectory) -> set[str]:
    """The fields whose paths may differ when a run is resumed, since its items are known.

    Raises:
        UserError: `resolved.json` is damaged.
    """
    recorded = read_resolved(run)
    return set() if recorded is None else {_PARTS.get(part, part) for part in recorded.fingerprints}


def refuse_other_data(run: RunDirectory, task: Task) -> None:
    """Check that a run resumes with the items and class weights that it started with.

    Where they are now does not matter. With an item more or less, every later step would take
    other samples than the uninterrupted run. Parts without a fingerprint, and runs of earlier
    versions, are not checked.

    Args:
        run: The run that is resumed.
        task: With the data as it is now.

    Raises:
        UserError: Items were added, removed, renamed or reordered, or the class weights changed.
    """
    recorded = read_resolved(run)
    if recorded is None:
        return
    parts = dict(_parts(task))
    weights = recorded.fingerprints.get(WEIGHTS)
    if weights is not None and weights != _of_class_weights(task).get(WEIGHTS):
        raise UserError(
            "the class weights are not those the run began with",
            where=WEIGHTS,
            todo="Restore the file or the labels they are computed from, or start a new run from "
            f"these weights: --set transfer.start_from={run.path}",
        )
    for part, before in recorded.fingerprints.items():
        if part not in _PARTS:
            continue
        data = parts.get(part, ())
        fingerprint_now = fingerprint_of(data)
        if fingerprint_now == before or (data and not fingerprint_now):
            continue
        samples = recorded.samples.get(part, 0)
        change = (
            f"{counted(samples, 'sample')} then, {len(data)} now"
            if samples != len(data)
            else f"the same number of samples, {samples}, but with other names or in another order"
        )
        raise UserError(
            f"the data is not what the run began with: {change}",
            where=_PARTS[part],
            todo="Restore the data, or start a new run from these weights: "
            f"--set transfer.start_from={run.path}",
        )


def field_with(recipe: Recipe, path: str) -> str:
    """The field of a recipe that names a path of its data; empty if none does."""
    return next((field for field in _PARTS.values() if path and _value(recipe, field) == path), "")


def _parts(task: Task) -> list[tuple[str, SampleSet]]:
    parts = (("train", task.train_data), ("eval", task.eval_data))
    return [(part, data) for part, data in parts if data is not None]


def _of_class_weights(task: Task) -> dict[str, str]:
    """The fingerprint of the class weights, which no checkpoint stores and a file may change."""
    for objective in task.objectives:
        weights = dict(objective.named_buffers(recurse=False)).get("class_weights")
        if weights is not None:
            return {WEIGHTS: fingerprint(weights.cpu().numpy().tobytes())}
    return {}


def _value(recipe: Recipe, field: str) -> str:
    value = cast(Any, recipe)
    for name in field.split("."):
        value = getattr(value, name, "")
    return value if isinstance(value, str) else ""


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The values of `after` that differ from those of `before`, with the same nesting."""
    changes: dict[str, Any] = {}
    for name, value in after.items():
        earlier = before.get(name)
        if isinstance(value, dict) and isinstance(earlier, dict):
            nested = _changes(cast("dict[str, Any]", earlier), cast("dict[str, Any]", value))
            if nested:
                changes[name] = nested
        elif value != earlier:
            changes[name] = value
    return changes
