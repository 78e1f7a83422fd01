"""The differences between a run and its recipe, and the command that repeats the run."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jumar.experiments.grid import train_options
from jumar.experiments.json_reading import read_object, section, text_of
from jumar.experiments.run_reading import Run
from jumar.ground.errors import UserError
from jumar.ground.json_text import flattened
from jumar.training.run_directory import RunDirectory

_ABSENT = object()


@dataclass(kw_only=True)
class Repeating:
    """The command that repeats a run, and how the run differs from its recipe.

    Attributes:
        command: A shell command; empty for a run without settings.
        differences: Field, value in the recipe and value in the run, as texts.
        notes: Caveats about the command.
    """

    command: str = ""
    differences: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    notes: list[str] = field(default_factory=list[str])


def repeating(run: Run) -> Repeating:
    """Compare a run's settings with its recipe in this version of jumar.

    The run's own modules are not imported: code named by a run must not be executed.
    """
    result = Repeating()
    if run.settings is None or not run.recipe:
        return result
    after = flattened(run.settings)
    before = _of_recipe(run.recipe)
    if before is None:
        modules = f" ({', '.join(run.imports)} is not imported here)" if run.imports else ""
        result.notes.append(
            f"This jumar has no recipe '{run.recipe}'{modules}, so the command names every setting."
        )
    else:
        result.differences = [
            (name, _text(before.get(name, _ABSENT)), setting_text(after[name]))
            for name in _kinds_first(after)
            if before.get(name, _ABSENT) != after[name]
        ]
        new_fields = [
            name for name in before if name not in after and not _of_other_kind(name, after)
        ]
        if new_fields:
            result.notes.append(
                "This run was written by an earlier version of jumar, without the fields "
                f"{', '.join(new_fields[:6])}{' and more' if len(new_fields) > 6 else ''}."
            )
    paths = section(read_object(RunDirectory(run.directory).resolved, []), "places")
    assignments = [
        f"{name}={text_of(paths.get(name)) or _assigned(after[name])}"
        for name in _kinds_first(after)
        if before is None or before.get(name, _ABSENT) != after[name]
    ]
    result.command = _command(run, assignments)
    version = run.results.versions.get("jumar", "")
    if version:
        torch = run.results.versions.get("torch", "")
        result.notes.append(
            f"The run was made with jumar {version}{f' and torch {torch}' if torch else ''}; "
            "other versions and other processors may round differently."
        )
    return result


def setting_text(value: Any) -> str:
    """Return a setting as text."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)  # pyright: ignore[reportUnknownArgumentType]
    return str(value)


def _command(run: Run, assignments: list[str]) -> str:
    ranks = run.results.ranks or 1
    launcher = ["jumar"]
    if ranks > 1:
        launcher = ["torchrun", "--nproc-per-node", str(ranks), "-m", "jumar"]
    command = [*launcher, "train", run.recipe, "--run-dir", f"{run.directory.name}-again"]
    if run.results.device_kind:
        command += ["--device", run.results.device_kind]
    return shlex.join([*command, *train_options(run.imports, assignments)])


def _of_recipe(name: str) -> dict[str, Any] | None:
    """Return the recipe's settings as JSON types; None if it is unknown or torch is missing."""
    try:
        from jumar.recipes.registry import create_recipe
        from jumar.settings import to_json

        settings: Mapping[str, Any] = json.loads(json.dumps(to_json(create_recipe(name))))
    except (UserError, ImportError):
        return None
    return flattened(settings)


def _kinds_first(settings: Mapping[str, Any]) -> list[str]:
    """Return the fields in the order to set them: a component's kind determines its fields."""
    return sorted(settings, key=lambda name: not name.endswith(".kind"))


def _of_other_kind(name: str, settings: Mapping[str, Any]) -> bool:
    return f"{name.rpartition('.')[0]}.kind" in settings


def _text(value: Any) -> str:
    return "-" if value is _ABSENT else setting_text(value)


def _assigned(value: Any) -> str:
    """Return a value as it is written after `--set FIELD=`, with all digits."""
    if isinstance(value, list):
        return ",".join(map(_assigned, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return setting_text(value)
