"""The run directory: everything that a run writes and later commands read."""

import contextlib
import errno
import fcntl
import json
import math
import os
import shlex
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

from jumar.ground.errors import UserError
from jumar.ground.files import is_at, write_text
from jumar.ground.json_text import mapped, parse_json
from jumar.ground.paths import exists, is_file, missing, read_text, resolved, unwritable
from jumar.stores.mirror import url_of_local

_HELD = (errno.EAGAIN, errno.EACCES)
_held_here: set[Path] = set()
"""Locks held by this process; the system would grant a lock twice and then release both at once."""


@dataclass(frozen=True, kw_only=True)
class RecordedRecipe:
    """The content of `recipe.json` with checked types; the recipe itself may not exist."""

    recipe: str
    imports: Sequence[str]
    settings: Mapping[str, Any]
    global_batch: int = 0
    """Samples of a step over all ranks; 0 in a run of an earlier version."""


class RunDirectory:
    """Paths and files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recipe = path / "recipe.json"
        self.first_stage = path / "first_stage.json"
        self.resolved = path / "resolved.json"
        self.environment = path / "environment.json"
        self.metrics = path / "metrics.jsonl"
        self.results = path / "results.json"
        self.log = path / "log.txt"
        self.checkpoints = path / "checkpoints"
        self.tensorboard = path / "tensorboard"
        self.tracked = path / "tracked.json"
        self.pictures = path / "pictures"

    def __str__(self) -> str:
        return str(self.path)

    @property
    def exists(self) -> bool:
        """Whether a run has been started in this directory."""
        try:
            return self.recipe.is_file()
        except OSError:
            return False  # in a folder without search permission, which `locked` will report

    def resume_command(self, device: str, launcher: Sequence[str] = ("jumar",)) -> str:
        """The command that resumes the run on the requested device.

        Args:
            device: The value of --device.
            launcher: The part of the command before `train`, such as `torchrun ... -m jumar`.

        Raises:
            UserError: The run's `recipe.json` is damaged.
        """
        options = [] if device == "auto" else ["--device", device]
        if self.exists:
            for module in recorded_recipe(self.read_recipe(), where=str(self.recipe)).imports:
                options += ["--import", module]
        location = url_of_local(self.path) or str(self.path)
        return shlex.join([*launcher, "train", "--resume", "--run-dir", location, *options])

    def read_recipe(self) -> dict[str, Any]:
        """The content of `recipe.json`.

        Raises:
            UserError: The directory has no run, or the file is damaged.
        """
        if not exists(self.path):
            raise missing(self.path, "run directory")
        if not self.recipe.is_file():
            raise UserError(
                f"'{self.path}' is not a run directory: it has no recipe.json",
                todo="Name the directory that was passed to `jumar train` with --run-dir.",
            )
        return read_json(self.recipe)

    def read_results(self) -> dict[str, Any] | None:
        """The content of `results.json`, or None if the run has never ended.

        Raises:
            UserError: The file is damaged.
        """
        if not exists(self.results):
            return None
        results = read_json(self.results, todo="Delete it: `jumar train` writes it again.")
        if not isinstance(results.get("metrics", {}), dict):
            raise UserError("'metrics' is not an object", where=str(self.results))
        return results

    def headline(self) -> tuple[str, bool] | None:
        """Name of the headline metric and whether higher is better, once the run has ended.

        Raises:
            UserError: `results.json` is damaged.
        """
        headline = (self.read_results() or {}).get("headline")
        if headline is None:
            return None
        try:
            return str(headline["name"]), bool(headline["higher_is_better"])
        except (KeyError, TypeError, IndexError):
            raise UserError(
                "'headline' names no metric", where=str(self.results), todo="Delete this file."
            ) from None

    def read_metrics(self) -> list[dict[str, Any]]:
        """The records of `metrics.jsonl`; lines left incomplete by a crash are skipped."""
        if not is_file(self.metrics):
            return []
        records = map(_parse, self.metrics.read_bytes().split(b"\n"))
        return [record for record in records if record is not None]

    def cut_metrics(self, step: int) -> None:
        """Drop the records after a step, which a resumed run will write again.

        Reads the file backwards and only as far as there are such records, so that the cost does
        not grow with the length of the run.
        """
        if not is_file(self.metrics):
            return
        with self.metrics.open("r+b") as file:
            end = file.seek(0, os.SEEK_END)
            keep = end
            for start, line in _lines_from_the_end(file, end):
                record = _parse(line)
                if record is not None and record.get("step", 0) <= step:
                    break
                keep = start
            file.truncate(keep)

    @contextmanager
    def locked(self, *, patience_s: float = 0.0) -> Generator[None]:
        """Lock the run directory, so that two processes never write into the same run.

        If no run has been started by the end, everything created for the lock is removed again, so
        that a mistake in the settings or the data leaves nothing behind.

        Args:
            patience_s: How long to wait for another process that holds the lock.

        Raises:
            UserError: Another process holds the lock, or the directory cannot be written or
                contains a link to a place outside it.
        """
        self._check_links()
        lock = self.path / ".lock"
        new_folders: list[Path] = []
        if resolved(lock) in _held_here:
            raise self._held_by_another(None)
        try:
            new_folders = [path for path in (self.path, *self.path.parents) if not exists(path)]
            self.path.mkdir(parents=True, exist_ok=True)
            file = lock.open("w")
        except OSError as error:
            _remove_folders(new_folders)
            raise unwritable(
                self.path,
                error,
                what="not writable",
                more="Choose another --run-dir.",
            ) from error
        with file:
            try:
                # Not flock: forked loader workers, which outlive a killed run by seconds, would
                # keep the lock, and the run could not be restarted at once.
                _lock(file, patience_s)
            except OSError as error:
                raise self._held_by_another(error) from None
            # A command that ends before its run has started removes its lock file. If this process
            # opened the file just before, its lock would be on a file that no other process finds.
            if not is_at(file, lock):
                raise self._held_by_another(None)
            _held_here.add(resolved(lock))
            try:
                yield
            finally:
                _held_here.discard(resolved(lock))
                if not self.exists:
                    with contextlib.suppress(OSError):
                        lock.unlink(missing_ok=True)
                    _remove_folders(new_folders)

    def _check_links(self) -> None:
        """Reject links out of the run, with which an untrusted run could write anywhere."""
        try:
            links = [path for path in self.path.iterdir() if path.is_symlink()]
        except OSError:
            return  # the directory does not exist, or `locked` will report why it is unreadable
        inside = resolved(self.path)
        for link in links:
            if not resolved(link).is_relative_to(inside):
                raise UserError(
                    "is a link to a place outside the run, so nothing is written here",
                    where=str(link),
                    todo="Replace it with its target. To use another disk, move the whole run.",
                )

    def _held_by_another(self, error: OSError | None) -> UserError:
        if error is not None and error.errno not in _HELD:
            return UserError(
                f"the file system does not support locks: {error.strerror}",
                where=str(self.path),
                todo="Choose a --run-dir on another disk.",
            )
        return UserError(
            f"another process is using '{self.path}'",
            todo="Wait until it ends, stop it, or choose another --run-dir.",
        )


def recorded_recipe(data: Mapping[str, Any], *, where: str) -> RecordedRecipe:
    """Check the content of a `recipe.json`.

    Raises:
        UserError: A field is missing or of the wrong type, or one of the imports, which would
            otherwise become part of a suggested shell command, is not a module name.
    """
    for name in ("recipe", "settings"):
        if name not in data:
            raise UserError(f"lacks the field '{name}'", where=where)
    recipe, settings, imports = data["recipe"], data["settings"], data.get("imports", [])
    if not isinstance(recipe, str):
        raise UserError(f"'recipe' must be a name, not {recipe!r}", where=where)
    if not isinstance(settings, dict):
        raise UserError("'settings' must be an object", where=where)
    if not isinstance(imports, list):
        raise UserError("'imports' must be a list", where=where)
    modules = cast("list[Any]", imports)
    for module in modules:
        if not (isinstance(module, str) and all(part.isidentifier() for part in module.split("."))):
            raise UserError(
                f"'imports' contains {module!r}, which is not a module name", where=where
            )
    batch = data.get("global_batch", 0)
    if type(batch) is not int or batch < 0:
        raise UserError("'global_batch' must be a number of samples", where=where)
    return RecordedRecipe(
        recipe=recipe,
        imports=modules,
        settings=cast("dict[str, Any]", settings),
        global_batch=batch,
    )


def read_json(path: Path, *, todo: str = "") -> dict[str, Any]:
    """Read a JSON object from a file.

    Args:
        path: The file.
        todo: The advice if the file cannot be read.

    Raises:
        UserError: The file cannot be read or is not a JSON object.
    """
    try:
        data = parse_json(read_text(path))
    except UserError as error:
        raise UserError(error.what, where=error.where, todo=todo or error.todo) from error
    except ValueError as error:
        raise UserError(f"cannot be read as JSON: {error}", where=str(path), todo=todo) from None
    if not isinstance(data, dict):
        raise UserError("is not a JSON object", where=str(path), todo=todo)
    return cast("dict[str, Any]", data)


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a JSON object atomically."""
    write_text(path, json.dumps(finite(data), indent=2) + "\n")


def finite(value: Any) -> Any:
    """The same data with None for NaN and infinity, which JSON cannot represent."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return mapped(value, finite)


def next_run_path(root: Path, recipe: str) -> Path:
    """The path `root/recipe-N` with the smallest unused N."""
    number = 1
    while exists(root / f"{recipe}-{number}"):
        number += 1
    return root / f"{recipe}-{number}"


def _lock(file: TextIO, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _HELD or time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        else:
            return


def _remove_folders(folders: Sequence[Path]) -> None:
    with contextlib.suppress(OSError):
        for path in folders:
            path.rmdir()


def _lines_from_the_end(file: Any, end: int) -> Iterator[tuple[int, bytes]]:
    """The lines with their offsets, from the last to the first, read in blocks from the end."""
    block, tail = 1 << 16, b""
    position = end
    while position > 0:
        size = min(block, position)
        position -= size
        file.seek(position)
        tail = file.read(size) + tail
        while (cut := tail.removesuffix(b"\n").rfind(b"\n")) >= 0:
            yield position + cut + 1, tail[cut + 1 :]
            tail = tail[: cut + 1]
    if tail:
        yield 0, tail


def _parse(line: bytes) -> dict[str, Any] | None:
    """Parse a record; None if the line is not one."""
    try:
        record = parse_json(line)
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    fields = cast("dict[str, Any]", record)
    return fields if isinstance(fields.get("step", 0), int) else None
