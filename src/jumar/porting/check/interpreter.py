"""Finds or creates the Python 3.7 with TensorFlow 1.15 that runs the checked scripts."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.paths import exists, is_file, is_folder
from jumar.porting.check.supervision import supervise

VARIABLE = "JUMAR_TF115_PYTHON"
PINS = ("tensorflow==1.15.0", "protobuf==3.20.3", "numpy==1.18.5", "h5py==2.10.0")
"""Pinned packages of an environment; pip resolves gast 0.2.2 and tensorflow-estimator 1.15.1."""

_INSTALL_S = 1800.0
_PROBE_S = 60.0
_PROBE = """
import glob, json, os, sys
names = {"tensorflow", "tensorflow_cpu", "tensorflow_gpu", "nvidia_tensorflow"}
found = [os.path.basename(path).rsplit(".", 1)[0].split("-")
         for folder in sys.path for path in glob.glob(os.path.join(folder, "*tensorflow*-info"))]
print(json.dumps({"python": "%d.%d.%d" % sys.version_info[:3],
                  "tensorflow": [name[1] for name in found if name[0] in names]}))
"""


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """A Python interpreter and its packages; `tensorflow` is empty if it has none."""

    path: Path
    python: str
    tensorflow: str

    @property
    def is_suitable(self) -> bool:
        return self.python.startswith("3.7.") and self.tensorflow.startswith("1.15.")


def find_interpreter(
    *, python: Path | None, make_env: Path | None, environment: Mapping[str, str]
) -> Interpreter:
    """Find the interpreter to check with, or create an environment on request.

    Without `python` and `make_env`, this is the interpreter that JUMAR_TF115_PYTHON names, or else
    the first suitable one among `python3.7` on the path and pyenv's versions.

    Args:
        python: The interpreter that the user names, as a path or a command on the path; with
            `make_env`, the base of a new environment.
        make_env: A folder for a virtual environment, used if it exists, otherwise created.
        environment: The environment variables.

    Returns:
        A Python 3.7 with TensorFlow 1.15.

    Raises:
        UserError: None is suitable; the message lists the commands that create one.
    """
    if make_env is not None:
        bases = [_named(python, environment)] if python else list(_candidates(environment))
        return _environment_in(make_env, bases)
    if python is not None:
        return _suitable(_named(python, environment), where="--python")
    if path_text := environment.get(VARIABLE, ""):
        return _suitable(_named(Path(path_text), environment), where=VARIABLE)
    candidates = _python37_of(_candidates(environment))
    for candidate in candidates:
        if candidate.is_suitable:
            return candidate
    raise _not_found(candidates)


def probe(path: Path) -> Interpreter | None:
    """Return the versions that an interpreter reports; None if it is not an interpreter."""
    path = path.absolute()  # it is later started from other folders
    try:
        ended = supervise(
            [str(path), "-c", _PROBE],
            folder=Path.cwd(),
            environment=_clean(os.environ),
            timeout_s=_PROBE_S,
        )
        answer = json.loads(ended.tail[-1])
    except (OSError, IndexError, ValueError):
        return None
    versions = answer["tensorflow"]
    return Interpreter(
        path=path, python=answer["python"], tensorflow=versions[0] if versions else ""
    )


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Drop the variables that would make another Python's modules importable."""
    return {name: value for name, value in environment.items() if not name.startswith("PYTHON")}


def _named(python: Path, environment: Mapping[str, str]) -> Path:
    """Return the path of an interpreter; a bare name that is no file is a command on the path."""
    if python.name != str(python) or is_file(python):
        return python
    on_path = shutil.which(str(python), path=environment.get("PATH"))
    return Path(on_path) if on_path else python


def _suitable(path: Path, *, where: str) -> Interpreter:
    if not is_file(path):
        is_bare = path.name == str(path)
        detail = " in this folder, nor as a command on PATH" if is_bare else ""
        raise UserError(
            f"'{path}' does not exist{detail}", where=where, todo=_commands("python3.7")
        )
    interpreter = probe(path)
    if interpreter is None:
        raise UserError(
            f"'{path}' is not a Python interpreter", where=where, todo=_commands("python3.7")
        )
    if not interpreter.is_suitable:
        tensorflow = (
            f"TensorFlow {interpreter.tensorflow}" if interpreter.tensorflow else "no TensorFlow"
        )
        raise UserError(
            f"'{path}' is Python {interpreter.python} with {tensorflow}; "
            "Python 3.7 with TensorFlow 1.15 is required",
            where=where,
            todo=_commands(str(path) if interpreter.python.startswith("3.7.") else "python3.7"),
        )
    return interpreter


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    on_path = shutil.which("python3.7", path=environment.get("PATH"))
    if on_path:
        yield Path(on_path)
    root = Path(environment.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(root.glob("versions/3.7*/bin/python"), reverse=True)


def _python37_of(paths: Iterable[Path]) -> list[Interpreter]:
    interpreters = [probe(path) for path in paths]
    return [
        interpreter
        for interpreter in interpreters
        if interpreter is not None and interpreter.python.startswith("3.7.")
    ]


def _environment_in(folder: Path, bases: Iterable[Path]) -> Interpreter:
    """Return the virtual environment in a folder, created with the pinned versions if missing."""
    inside = folder / "bin" / "python"
    if is_file(inside):
        return _suitable(inside, where="--make-env")
    if exists(folder) and (not is_folder(folder) or any(folder.iterdir())):
        raise UserError(
            f"'{folder}' exists but is not a virtual environment",
            where="--make-env",
            todo="Specify a folder that is empty or does not exist.",
        )
    candidates = _python37_of(bases)
    if not candidates:
        raise _not_found(candidates)
    try:
        _install(folder.absolute(), str(candidates[0].path))
    except BaseException:
        # The next call would mistake an incomplete environment for a complete one.
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return _suitable(inside, where="--make-env")


def _install(folder: Path, base: str) -> None:
    python = str(folder / "bin" / "python")
    for command in ([base, "-m", "venv", str(folder)], [python, "-m", "pip", "install", *PINS]):
        ended = supervise(
            command, folder=Path.cwd(), environment=_clean(os.environ), timeout_s=_INSTALL_S
        )
        if ended.how != "exited" or ended.code != 0:
            raise UserError(
                f"'{' '.join(command)}' failed: {' / '.join(ended.tail[-3:])}",
                where="--make-env",
                todo="Create the environment by hand where packages can be downloaded:\n"
                + _commands(base),
            )


def _not_found(candidates: list[Interpreter]) -> UserError:
    base = str(candidates[0].path) if candidates else "python3.7"
    detail = f"; '{base}' has no TensorFlow 1.15" if candidates else ", nor any Python 3.7"
    preparation = "" if candidates else "Install Python 3.7 first (pyenv install 3.7.16).\n  "
    return UserError(
        f"no Python 3.7 with TensorFlow 1.15 was found{detail}", todo=preparation + _commands(base)
    )


def _commands(base: str) -> str:
    return (
        f"Create one:\n    {base} -m venv ~/tf115\n"
        f"    ~/tf115/bin/python -m pip install {' '.join(PINS)}\n"
        f"    export {VARIABLE}=~/tf115/bin/python\n"
        "  or specify another with --python, or let --make-env DIR create it."
    )
