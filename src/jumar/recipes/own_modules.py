"""Import a user's own modules, only if the user names them and never from a run directory.

A run may come from someone else. Its `recipe.json` names the modules that registered its recipe,
and the working directory may be the run itself or contain it; without the checks here, opening
such a run would execute code in it.
"""

import importlib
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import jumar
from jumar.ground.errors import UserError
from jumar.ground.json_text import parse_json

_named: set[str] = set()
"""Modules passed to `--import` in this process."""

_INSTALLED = tuple(
    f"{path}/"
    for path in (
        *(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
        Path(jumar.__file__).parent,
    )
)
"""Folders of Python and jumar, trusted even in a virtual environment in a run directory."""


class _OutsideRuns(PathFinder):
    """Finds modules as Python does, but skips those inside a run directory."""

    @classmethod
    def find_spec(
        cls,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Find the first module of that name outside all runs."""
        folders = list(sys.path if path is None else path)
        while True:
            spec = super().find_spec(fullname, folders, target)
            # A folder without __init__.py has no origin and no code to execute.
            if spec is None or spec.origin is None or enclosing_run(Path(spec.origin)) is None:
                return spec
            levels = 0 if spec.submodule_search_locations is None else 1
            skipped = Path(spec.origin).parents[levels].resolve()
            remaining = [folder for folder in folders if Path(folder).resolve() != skipped]
            if len(remaining) == len(folders):
                return None
            folders = remaining


def keep_runs_from_being_imported() -> None:
    """Make modules inside run directories impossible to import in this process.

    This applies to imports in any code, and to processes forked from this one.
    """
    finders: list[Any] = sys.meta_path
    if PathFinder in finders:
        # Replace PathFinder, which would otherwise find the skipped modules.
        finders[finders.index(PathFinder)] = _OutsideRuns


def enclosing_run(path: Path) -> Path | None:
    """Return the run directory that contains a file, also through symbolic links, or None."""
    if str(path).startswith(_INSTALLED):
        return None
    for location in (path.absolute(), path.resolve()):
        for folder in location.parents:
            if _is_run(folder):
                return folder
    return None


def import_named(names: Sequence[str]) -> None:
    """Import the modules that the user named with `--import`.

    The current directory is searched first, as `python -m` does.

    Raises:
        UserError: A module does not exist outside of run directories, or importing it fails.
    """
    keep_runs_from_being_imported()
    current_folder = str(Path.cwd())
    if names and current_folder not in sys.path:
        sys.path.insert(0, current_folder)
    for name in names:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise _not_found(error.name or name, f"--import {name}") from None
        except UserError:
            raise
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            raise UserError(
                f"importing the module failed: {type(error).__name__}: {error}",
                where=f"--import {name}",
                todo=f"The error was raised in {frame.filename}, line {frame.lineno}.",
            ) from error
        _named.add(name)


def check_named(modules: Sequence[str], where: str) -> None:
    """Check that the user named every module that a run needs.

    Args:
        modules: The modules that the run recorded.
        where: The file that names them.

    Raises:
        UserError: A module was not named in this process, and therefore not imported.
    """
    missing = [module for module in modules if module not in _named]
    if missing:
        is_plural = len(missing) > 1
        raise UserError(
            f"the run needs the {'modules' if is_plural else 'module'} {', '.join(missing)}, and "
            f"{'modules named by a run' if is_plural else 'a module named by a run'} "
            "could execute anything",
            where=where,
            todo=f"If you trust {'them' if is_plural else 'it'}, add to the command: "
            f"{' '.join(f'--import {module}' for module in missing)}",
        )


def _not_found(missing: str, where: str) -> UserError:
    for folder in sys.path:
        module = Path(folder, *missing.split("."))
        for file in (module.with_name(f"{module.name}.py"), module / "__init__.py"):
            run = enclosing_run(file) if file.is_file() else None
            if run is not None:
                return UserError(
                    f"'{file}' is in the run directory '{run}', from which nothing is imported",
                    where=where,
                    todo="Read it; if you trust it, copy it to a folder outside the run.",
                )
    return UserError(
        f"there is no module '{missing}'",
        where=where,
        todo=f"Run the command in the folder of {missing.split('.')[0]}.py, or set PYTHONPATH; "
        "pass the module's name without .py.",
    )


def _is_run(folder: Path) -> bool:
    """Whether a folder contains a run's `recipe.json`, not another program's file of that name."""
    file = folder / "recipe.json"
    try:
        if not file.is_file():
            return False
        recipe = parse_json(file.read_bytes())
    except (OSError, ValueError):
        return True
    return isinstance(recipe, dict) and "recipe" in recipe and "settings" in recipe
