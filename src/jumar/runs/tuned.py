"""Apply the settings in `tuned.json` to a run: `jumar train --tuned`."""

import os
from collections.abc import Collection, Mapping, Sequence
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
class Application:
    """The applied part of a tuned file.

    Attributes:
        file: The file.
        tuned: Its content.
        differences: Differences from the measured state.
        settings: The fields to set, without those set by the user.
        environment: The environment variables to set, without those set by the user.
        own: Fields and variables set by the user.
        is_refused: Whether nothing is applied because the file is stale.
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
        """The environment variables that are not set to the file's value in this process."""
        return {
            name: value for name, value in self.environment.items() if os.environ.get(name) != value
        }

    def lines(self) -> list[str]:
        """Return messages about the applied and the omitted settings."""
        if self.is_refused:
            return [
                f"{self.file} is not applied, since it is stale: {'; '.join(self.differences)}",
                f"  Measure again: jumar tune speed {self.tuned.validity.recipe}; or apply it "
                "anyway: --tuned-anyway",
            ]
        present = _without(self.environment, self.missing_variables)
        applied = [f"{name}={value}" for name, value in {**self.settings, **present}.items()]
        state = " (interrupted, not confirmed)" if self.tuned.state == "partial" else ""
        stale = f", although {'; '.join(self.differences)}" if self.differences else ""
        weights = " · weights round differently" if self.tuned.weights == "rounding" else ""
        lines = [f"tuned by {self.file}{state}{stale}: {' '.join(applied) or 'nothing'}{weights}"]
        if self.own:
            lines.append(f"not changed by it, since you set it: {', '.join(self.own)}")
        if self.missing_variables:
            names = ", ".join(self.missing_variables)
            lines.append(f"not applied, since this process was started without: {names}")
        return lines

    def recorded(self) -> dict[str, Any]:
        """Return the record for the run."""
        return {
            "file": str(self.file),
            "state": self.tuned.state,
            "weights": self.tuned.weights,
            "settings": dict(self.settings),
            "environment": _without(self.environment, self.missing_variables),
            "own": list(self.own),
            "differences": list(self.differences),
        }


def resolve_tuned(
    request: TrainRequest, path: Path | None, *, even_if_stale: bool, has_variables: bool
) -> Application:
    """Read a tuned file and decide what to apply.

    Args:
        request: The training.
        path: The file or its folder; None for the recipe's default folder.
        even_if_stale: Whether to apply it even if it was measured under different conditions.
        has_variables: Whether this process was started with the file's variables. If they bind
            threads to cores, the machine's cores can no longer be counted.

    Raises:
        UserError: There is no such file or recipe.
    """
    name, recipe = _requested(request)
    path = default_folder(name) if path is None else expanded(path)
    if not exists(path):
        advice = f"Create it with: jumar tune speed {name}"
        raise missing(path, "tuned file", where="--tuned", more=advice)
    content = read_tuned(path)
    device = open_device(request.device)
    now = validity_of(name, recipe, device=device.kind, device_name=device.name)
    ignored_fields = ["cores"] if has_variables else []
    differences = content.validity.differences(now, apart_from=[*content.settings, *ignored_fields])
    is_refused = bool(differences) and not even_if_stale
    assigned = set(map(field_of, request.assignments))
    own_fields = [field for field in content.settings if field in assigned]
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
    """Return the training with the applied settings, which the first rank prints."""
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
    """Return the name and the recipe without tuned settings."""
    if request.recipe is None:
        run = None if request.run_dir is None else RunDirectory(request.run_dir)
        if run is None or not run.exists:
            raise UserError("the recipe is missing", todo="`jumar recipes list` lists the recipes.")
        name, _, stored = stored_recipe(run, request.imports, as_recorded=True)
        return name, override(stored, request.assignments)
    import_modules(request.imports)
    return request.recipe, create_recipe(request.recipe, request.assignments)


def _without(values: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if name not in names}
