"""Applies `tuned.json` to training: `jumar train --tuned`."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jumar.devices.registry import open_device
from jumar.ground.errors import UserError
from jumar.ground.paths import exists, expanded, is_folder, missing
from jumar.ground.text import print_plain
from jumar.recipes.registry import create_recipe, import_modules
from jumar.recipes.stored import stored_recipe
from jumar.recipes.tuned import FILE, Tuned, default_folder, read_tuned, validity_of
from jumar.runs.train import TrainRequest
from jumar.settings import field_of, override
from jumar.training.parallel.announced import announced_ranks
from jumar.training.run_directory import RunDirectory


@dataclass(frozen=True, kw_only=True)
class TunedRequest:
    """The options about tuned settings.

    Attributes:
        path: The file or its folder; None for the recipe's default folder.
        even_if_stale: Whether to apply it although it was measured on something else.
        has_variables: Whether this process was started with the file's variables. Where they bind
            threads to cores, the cores of this machine can no longer be counted.
    """

    path: Path | None = None
    even_if_stale: bool = False
    has_variables: bool = False


@dataclass(frozen=True, kw_only=True)
class Application:
    """The applied part of a tuned file.

    Attributes:
        file: The file.
        tuned: Its content.
        differences: Differences from the measured state.
        settings: The fields that are set; without those that the user set.
        environment: The variables that are set; without those that the user set.
        own: Fields and variables set by the user.
        is_refused: Whether nothing is applied, since it is stale.
    """

    file: Path
    tuned: Tuned
    differences: Sequence[str]
    settings: Mapping[str, str]
    environment: Mapping[str, str]
    own: Sequence[str]
    is_refused: bool

    @property
    def missing_variables(self) -> dict[str, str]:
        """The variables that this process was not started with."""
        return {
            name: value for name, value in self.environment.items() if os.environ.get(name) != value
        }

    def lines(self) -> list[str]:
        """Messages about what is applied, and what is not."""
        if self.is_refused:
            return [
                f"{self.file} is not applied, since it is stale: {'; '.join(self.differences)}",
                f"  Measure again: jumar tune speed {self.tuned.validity.recipe}; or apply it "
                "anyway: --tuned-anyway",
            ]
        in_place = {
            name: value
            for name, value in self.environment.items()
            if name not in self.missing_variables
        }
        applied_settings = [
            f"{name}={value}" for name, value in {**self.settings, **in_place}.items()
        ]
        state = " (interrupted, not confirmed)" if self.tuned.state == "partial" else ""
        stale = f", although {'; '.join(self.differences)}" if self.differences else ""
        weights = " · weights round differently" if self.tuned.weights == "rounding" else ""
        lines = [
            f"tuned by {self.file}{state}{stale}: "
            f"{' '.join(applied_settings) or 'nothing'}{weights}"
        ]
        if self.own:
            lines.append(f"not changed by it, since you set it: {', '.join(self.own)}")
        if self.missing_variables:
            names = ", ".join(self.missing_variables)
            lines.append(f"not applied, since this process was started without: {names}")
        return lines

    def recorded(self) -> dict[str, Any]:
        """The record in the run."""
        late = self.missing_variables
        return {
            "file": str(self.file),
            "state": self.tuned.state,
            "weights": self.tuned.weights,
            "settings": dict(self.settings),
            "environment": {k: v for k, v in self.environment.items() if k not in late},
            "own": list(self.own),
            "differences": list(self.differences),
        }


def resolve_tuned(request: TrainRequest, tuned: TunedRequest) -> Application:
    """Read a tuned file and decide what to apply.

    Args:
        request: The training.
        tuned: The options about tuned settings.

    Raises:
        UserError: There is no such file or recipe.
    """
    name, recipe = _requested(request)
    path = default_folder(name) if tuned.path is None else expanded(tuned.path)
    if not exists(path):
        advice = f"Make one with: jumar tune speed {name}"
        raise missing(path, "tuned file", where="--tuned", more=advice)
    content = read_tuned(path)
    device = open_device(request.device)
    now = validity_of(name, recipe, device=device.kind, device_name=device.name)
    ignored_fields = ["cores"] if tuned.has_variables else []
    differences = content.validity.differences(now, apart_from=[*content.settings, *ignored_fields])
    is_refused = bool(differences) and not tuned.even_if_stale
    own_fields = [field for field in content.settings if _is_set(field, request.assignments)]
    own_variables = [
        variable
        for variable, value in content.environment.items()
        if os.environ.get(variable, value) != value
    ]
    return Application(
        file=path / FILE if is_folder(path) else path,
        tuned=content,
        differences=differences,
        settings=_without({} if is_refused else content.settings, own_fields),
        environment=_without({} if is_refused else content.environment, own_variables),
        own=[*own_fields, *own_variables],
        is_refused=is_refused,
    )


def with_application(request: TrainRequest, application: Application) -> TrainRequest:
    """The training with the applied settings; its first rank prints them."""
    if announced_ranks().is_first:
        for line in application.lines():
            print_plain(line)
    if application.is_refused:
        return request
    fields = [f"{name}={value}" for name, value in application.settings.items()]
    return replace(
        request,
        assignments=[*fields, *request.assignments],
        tuned=application.recorded(),
    )


def _requested(request: TrainRequest) -> tuple[str, Any]:
    """Name and settings of the recipe, untuned."""
    if request.recipe is None:
        run = None if request.run_dir is None else RunDirectory(request.run_dir)
        if run is None or not run.exists:
            raise UserError("no recipe given", todo="`jumar recipes list` lists the recipes.")
        name, _, stored = stored_recipe(run, request.imports, as_recorded=True)
        return name, override(stored, request.assignments)
    import_modules(request.imports)
    return request.recipe, create_recipe(request.recipe, request.assignments)


def _is_set(field: str, assignments: Sequence[str]) -> bool:
    """Whether the user sets a field."""
    return field in map(field_of, assignments)


def _without(values: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if name not in names}
