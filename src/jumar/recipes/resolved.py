"""Facts about a run's data, stored in `resolved.json` so that later commands need no data.

They are class names, settings determined by the data, the data's paths, and fingerprints of its
items.
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
_PATH_FIELDS = (*_PARTS.values(), "model.vocabulary")
"""The fields whose absolute paths a run stores, so that it can be used from any folder."""


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """Facts about a run's data.

    Attributes:
        outputs: Names of the network's outputs, such as class names; empty if unknown.
        settings: Settings determined by the data, as in `recipe.json`.
        places: Absolute paths of the data, by the fields that name them.
        samples: Number of samples in an epoch, by part.
        fingerprints: Fingerprint of each part, if its items have one (see
            `jumar.data.samples.Fingerprinted`), and of the class weights, if there are any, under
            the name of their field.
    """

    outputs: tuple[str, ...] = ()
    settings: Mapping[str, Any]
    places: Mapping[str, str]
    samples: Mapping[str, int]
    fingerprints: Mapping[str, str]


def keep_resolved(run: RunDirectory, recipe: Recipe, task: Task) -> None:
    """Write the facts about the data of a recipe's task to the run.

    Raises:
        UserError: The run cannot be written to.
    """
    paths = {field: _value(recipe, field) for field in _PATH_FIELDS}
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
            **_class_weights_fingerprint(task),
        },
    }
    write_json(run.resolved, content)


def data_line(recipe: Recipe, task: Task) -> str:
    """Return the line that names the data of a recipe's task, with the number of samples."""
    # A second stage without a path uses the data of the first stage's run.
    first_stage = recipe.first_stage_field and _value(recipe, recipe.first_stage_field)
    train_path = _value(recipe, _PARTS["train"]) or (first_stage and f"as in {first_stage}")
    paths = {"train": train_path, "eval": _value(recipe, _PARTS["eval"]) or train_path}
    texts = {
        part: f"{paths[part]} ({counted(len(data), 'sample')})".lstrip()
        for part, data in _parts(task)
    }
    return f"data: {texts['train']} · evaluation: {texts.get('eval', 'none')}"


def read_resolved(run: RunDirectory) -> Resolved | None:
    """Read the facts about a run's data; None for a run of an earlier version.

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
    """Return a run's recipe with the settings determined by its data.

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
    """Return a run's recipe with data paths that do not exist replaced by the recorded ones.

    This way, a run with relative paths can be used from any folder.

    Args:
        recipe: The run's recipe.
        run: The run, which has recorded the absolute paths.
        notice: Called with a line for each path that is replaced.
        assignments: Fields that the user has set; their paths are not replaced.
    """
    set_fields = set(map(field_of, assignments))
    recorded = read_resolved(run)
    for field, path in {} if recorded is None else recorded.places.items():
        text = _value(recipe, field)
        if not text or field in set_fields or store_url(text) is not None:
            continue  # URLs do not depend on the working directory.
        if not exists(expanded(text)) and exists(expanded(path)):
            notice(f"{field}: '{text}' does not exist here; using {path}, as recorded by the run")
            recipe = override(recipe, [f"{field}={path}"])
    return recipe


def movable_paths(run: RunDirectory) -> set[str]:
    """Return the fields whose paths may differ on resuming, because their content is verified.

    Raises:
        UserError: `resolved.json` is damaged.
    """
    recorded = read_resolved(run)
    return set() if recorded is None else {_PARTS.get(part, part) for part in recorded.fingerprints}


def refuse_other_data(run: RunDirectory, task: Task) -> None:
    """Check that a run resumes with the items and class weights with which it started.

    Their paths may differ. If an item were added or removed, every later step would use other
    samples than the uninterrupted run. Parts without a fingerprint, and runs of earlier versions,
    are not checked.

    Args:
        run: The run that is resumed.
        task: The run's task, with the current data.

    Raises:
        UserError: Items were added, removed, renamed or reordered, or the class weights changed.
    """
    recorded = read_resolved(run)
    if recorded is None:
        return
    parts = dict(_parts(task))
    weights = recorded.fingerprints.get(WEIGHTS)
    if weights is not None and weights != _class_weights_fingerprint(task).get(WEIGHTS):
        raise UserError(
            "the class weights have changed since the run started",
            where=WEIGHTS,
            todo="Restore the file or labels that determine them, or start a new run from the "
            f"weights of this one: --set transfer.start_from={run.path}",
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
            f"the data has changed since the run started: {change}",
            where=_PARTS[part],
            todo="Restore the data, or start a new run from the weights of this one: "
            f"--set transfer.start_from={run.path}",
        )


def field_with(recipe: Recipe, path: str) -> str:
    """Return the data field of a recipe that contains a path; empty if none does."""
    return next((field for field in _PARTS.values() if path and _value(recipe, field) == path), "")


def _parts(task: Task) -> list[tuple[str, SampleSet]]:
    parts = (("train", task.train_data), ("eval", task.eval_data))
    return [(part, data) for part, data in parts if data is not None]


def _class_weights_fingerprint(task: Task) -> dict[str, str]:
    """Return the fingerprint of the class weights, which no checkpoint stores; empty if none."""
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
    """Return the values of `after` that differ from those of `before`, with the same nesting."""
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
