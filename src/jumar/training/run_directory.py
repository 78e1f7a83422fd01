"""The run directory: all that a run leaves behind, and all that later commands read."""

import contextlib
import errno
import fcntl
import json
import math
import os
import shlex
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, cast

from jumar.errors import UserError
from jumar.paths import exists, is_file, missing, read_text, resolved, unwritable

_held_here: set[Path] = set()
"""Locks of this process, which the system would grant it once more and then drop both."""


class RunDirectory:
    """Paths and files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recipe = path / "recipe.json"
        self.first_stage = path / "first_stage.json"
        self.environment = path / "environment.json"
        self.metrics = path / "metrics.jsonl"
        self.results = path / "results.json"
        self.log = path / "log.txt"
        self.checkpoints = path / "checkpoints"
        self.tensorboard = path / "tensorboard"
        self.pictures = path / "pictures"

    def __str__(self) -> str:
        return str(self.path)

    @property
    def exists(self) -> bool:
        """Whether a run has been started here."""
        try:
            return self.recipe.is_file()
        except OSError:
            return False  # in a folder that may not be searched, which `locked` will report

    def resume_command(self, device: str, launcher: Sequence[str] = ("jumar",)) -> str:
        """What to type to go on with the run, on the device that was asked for.

        Args:
            device: As it was asked for.
            launcher: What comes before `train`, such as `torchrun ... -m jumar`.
        """
        where = [] if device == "auto" else ["--device", device]
        return shlex.join([*launcher, "train", "--resume", "--run-dir", str(self.path), *where])

    def read_recipe(self) -> dict[str, Any]:
        """The content of `recipe.json`.

        Raises:
            UserError: There is no run here, or the file is damaged.
        """
        if not exists(self.path):
            raise missing(self.path, "run directory")
        if not self.recipe.is_file():
            raise UserError(
                f"'{self.path}' is not a run directory: it has no recipe.json",
                todo="Name the directory that `jumar train` was given with --run-dir.",
            )
        return read_json(self.recipe)

    def read_results(self) -> dict[str, Any] | None:
        """The content of `results.json`, or None before the first end of the run."""
        return read_json(self.results) if is_file(self.results) else None

    def read_metrics(self) -> list[dict[str, Any]]:
        """The records of `metrics.jsonl`; half a last line, as a crash leaves it, is left out."""
        if not is_file(self.metrics):
            return []
        records: list[dict[str, Any]] = []
        for line in self.metrics.read_text(encoding="utf-8").splitlines():
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        return records

    def cut_metrics(self, step: int) -> None:
        """Drop the records after a step, which a resumed run writes again.

        Reads from the end only as far as there are such records, so that the cost does not grow
        with the length of the run.
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
    def locked(self) -> Generator[None]:
        """Hold the run directory, so that two processes never write into the same run.

        Where no run has begun by the end, what was made for the lock is removed again, so that a
        mistake in the settings or the data leaves nothing behind.
        """
        lock = self.path / ".lock"
        made: list[Path] = []
        if resolved(lock) in _held_here:
            raise self._held_by_another(None)
        try:
            made = [path for path in (self.path, *self.path.parents) if not exists(path)]
            self.path.mkdir(parents=True, exist_ok=True)
            file = lock.open("w")
        except OSError as error:
            _remove_folders(made)
            raise unwritable(
                self.path,
                error,
                what="nothing can be written there",
                more="Choose another --run-dir.",
            ) from error
        with file:
            try:
                # Not flock, which forked loader workers would hold on to for the seconds that
                # they outlive a killed run, so that it could not be started again at once.
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise self._held_by_another(error) from None
            # A run that ended without having begun removes its lock: whoever opened it just
            # before holds a file that no third process will find.
            if not _is_at(file, lock):
                raise self._held_by_another(None)
            _held_here.add(resolved(lock))
            try:
                yield
            finally:
                _held_here.discard(resolved(lock))
                if not self.exists:
                    with contextlib.suppress(OSError):
                        lock.unlink(missing_ok=True)
                    _remove_folders(made)

    def _held_by_another(self, error: OSError | None) -> UserError:
        if error is not None and error.errno not in (errno.EAGAIN, errno.EACCES):
            return UserError(
                f"the file system gives no locks: {error.strerror}",
                where=str(self.path),
                todo="Choose a --run-dir on another disk.",
            )
        return UserError(
            f"another process is working in '{self.path}'",
            todo="Wait for it, stop it, or choose another --run-dir.",
        )


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file.

    Raises:
        UserError: The file cannot be read or is not a JSON object.
    """
    try:
        data = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise UserError(f"cannot be read: {error}", where=str(path)) from None
    if not isinstance(data, dict):
        raise UserError("is not a JSON object", where=str(path))
    return cast("dict[str, Any]", data)


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a JSON object beside its place and rename it, so that no reader sees half of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps(finite(data), indent=2) + "\n", encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise unwritable(path, error) from error


def finite(value: Any) -> Any:
    """The same data with NaN and infinity as None, which JSON has no word for."""
    if isinstance(value, Mapping):
        return {k: finite(v) for k, v in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in cast("list[Any]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def next_run_path(root: Path, recipe: str) -> Path:
    """`root/recipe-N` with the first N that is free."""
    number = 1
    while exists(root / f"{recipe}-{number}"):
        number += 1
    return root / f"{recipe}-{number}"


def _is_at(file: TextIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _remove_folders(made: Sequence[Path]) -> None:
    with contextlib.suppress(OSError):
        for path in made:
            path.rmdir()


def _lines_from_the_end(file: Any, end: int) -> Iterator[tuple[int, bytes]]:
    """Lines with their offsets, the last first, read in blocks from the end."""
    block, tail = 1 << 16, b""
    position = end
    while position > 0:
        size = min(block, position)
        position -= size
        file.seek(position)
        tail = file.read(size) + tail
        while True:
            cut = tail.rfind(b"\n", 0, len(tail) - 1 if tail.endswith(b"\n") else len(tail))
            if cut < 0:
                break
            yield position + cut + 1, tail[cut + 1 :]
            tail = tail[: cut + 1]
    if tail:
        yield 0, tail


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        return json.loads(line)
    except ValueError:
        return None
