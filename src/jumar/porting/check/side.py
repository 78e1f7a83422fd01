"""Runs the script once: the port with the stand-in, or the original without it."""

import json
import os
import shlex
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jumar.porting.check.children import Children
from jumar.porting.check.interpreter import Interpreter
from jumar.porting.check.record import Record, read_record
from jumar.porting.check.supervision import supervise
from jumar.porting.check.workspace import Workspace, in_workspace, make_workspace
from jumar.porting.python2.conversion import Converted, to_python3, with_python3_names
from jumar.porting.script.module import parsed
from jumar.porting.script.project import MAX_SCRIPT_BYTES
from jumar.porting.script.source import Unreadable, decode
from jumar.porting.standin import RECORD_VARIABLE, standin_folder

_RUNNER = Path(__file__).resolve().parent / "runner37" / "start.py"
_CONFIG_VARIABLE = "JUMAR_CHECK_CONFIG"
_JOB_VARIABLES = (
    "RANK_ID",
    "RANK_SIZE",
    "RANK_TABLE_FILE",
    "DEVICE_ID",
    "ASCEND_DEVICE_ID",
    "CM_WORKER_SIZE",
    "TF_CONFIG",
)
"""Variables that would make a single process believe that it is one of several."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """The program to run in the tree: a script with its arguments and environment variables.

    `module` is true if `script` is the name of a module, as after `python -m`.
    """

    script: str
    arguments: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()
    module: bool = False

    def typed(self) -> tuple[str, ...]:
        """Return the command as typed after `--`."""
        variables = (f"{name}={value}" for name, value in self.variables)
        return (*variables, *(["-m"] if self.module else []), self.script, *self.arguments)


@dataclass(frozen=True, kw_only=True)
class SideRequest:
    """The parameters of a run."""

    tree: Path
    command: Command
    with_standin: bool
    interpreter: Interpreter
    steps: int
    seed: int
    timeout_s: float


@dataclass(frozen=True, kw_only=True)
class Side:
    """The outcome of a run.

    `changed` are files of the original tree that the script changed through a link, `converted` the
    files of a Python 2 original that were converted.
    """

    record: Record
    changed: tuple[Path, ...]
    converted: tuple[str, ...] = ()


def run_side(request: SideRequest, folder: Path) -> Side:
    """Copy the tree, run the script there until it has made enough steps, and remove the copy.

    Raises:
        UserError: The tree or script does not exist.
    """
    folder.mkdir()
    workspace = make_workspace(
        tree=request.tree,
        script=request.command.script,
        module=request.command.module,
        folder=folder,
    )
    # A port is Python 3 already; the original is compared after the same conversion.
    converted = () if request.with_standin else tuple(_convert(workspace.tree))
    events, standin = folder / "events.jsonl", folder / "standin.jsonl"
    config = folder / "config.json"
    environment = _environment(request, home=workspace.home)
    environment[_CONFIG_VARIABLE] = str(config)
    config.write_text(
        json.dumps(
            {
                "script": workspace.script_name,
                "module": request.command.script if request.command.module else "",
                "arguments": in_workspace(request.command.arguments, workspace),
                "steps": request.steps,
                "seed": request.seed,
                "events": str(events),
                "begin": time.time(),
            }
        )
    )
    if request.with_standin:
        environment[RECORD_VARIABLE] = str(standin)
    try:
        ended = supervise(
            [str(request.interpreter.path), str(_RUNNER), str(config)],
            folder=workspace.script_folder,
            environment=environment,
            timeout_s=request.timeout_s,
            children=Children(events=events, mark=str(config)),
        )
        return Side(
            record=_in_tree(read_record(ended, events, standin), workspace),
            changed=workspace.changed(),
            converted=converted,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _convert(tree: Path) -> Iterator[str]:
    """Convert the copied Python 2 scripts, and yield their paths."""
    for path in sorted(tree.rglob("*.py")):
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_SCRIPT_BYTES:
            continue
        try:
            source = decode(path.read_bytes())
            converted = _in_python3(source.text)
        except (OSError, Unreadable, ValueError, RecursionError, MemoryError):
            continue
        if converted is not None and converted.text != source.text:
            path.write_bytes(source.encoded(converted.text))
            yield path.relative_to(tree).as_posix()


def _in_python3(text: str) -> Converted | None:
    try:
        tree = parsed(text)
    except SyntaxError:
        return to_python3(text)
    return with_python3_names(text, tree, lambda _: False)


def _in_tree(record: Record, workspace: Workspace) -> Record:
    """Replace paths of the copy, which mean nothing to a reader, with paths of the tree."""
    copy, source = str(workspace.tree), str(workspace.source)
    tail = tuple(line.replace(copy, source) for line in record.ended.tail)
    error = record.error
    if error is not None:
        frames = tuple(
            (os.path.relpath(path, workspace.tree) if copy in path else path, line)
            for path, line in (
                (str(workspace.script_folder / path), line) for path, line in error.frames
            )
        )
        error = replace(error, frames=frames)
    return replace(record, ended=replace(record.ended, tail=tail), error=error)


def _environment(request: SideRequest, *, home: Path) -> dict[str, str]:
    """Return the user's environment without variables of another Python or of a job."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "XDG_", "JUMAR_")) and name not in _JOB_VARIABLES
    }
    for name in ("tmp", "cache"):
        (home / name).mkdir()
    environment |= {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "MPLBACKEND": "Agg",
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": str(request.seed % 2**32),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONWARNINGS": "ignore",
    }
    environment.setdefault("JOB_ID", "port-check")
    programs = _with_interpreter(home / "bin", request.interpreter.path)
    environment["PATH"] = os.pathsep.join([str(programs), environment.get("PATH", os.defpath)])
    environment |= dict(request.command.variables)
    paths = [environment.get("PYTHONPATH", "")]
    if request.with_standin:
        paths.insert(0, str(standin_folder()))
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return environment


def _with_interpreter(folder: Path, interpreter: Path) -> Path:
    """Create a folder in which `python` and its variants start the interpreter."""
    folder.mkdir()
    for name in ("python", "python3", "python3.7"):
        program = folder / name
        # Started through a link, the interpreter would not find its environment.
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(str(interpreter))} "$@"\n')
        program.chmod(0o755)
    return folder


def read_command(words: Sequence[str]) -> Command | None:
    """Parse `NAME=value ... SCRIPT ARGUMENTS` or `... -m MODULE ARGUMENTS`; None if incomplete."""
    variables: list[tuple[str, str]] = []
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if equals and name.isidentifier() and not word.endswith(".py"):
            variables.append((name, value))
            continue
        rest = tuple(words[index + 1 :])
        module = word == "-m"
        if module and not rest:
            return None
        return Command(
            script=rest[0] if module else word,
            arguments=rest[1:] if module else rest,
            variables=tuple(variables),
            module=module,
        )
    return None
