"""Finds the files of a path, and the capture that each belongs to."""

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jumar.ground.errors import UserError
from jumar.ground.paths import is_file, is_folder, missing, reason, unreadable
from jumar.profiling.reading.file_content import Source
from jumar.profiling.reading.files.recognition import recognised
from jumar.profiling.reading.unreadable import UNREADABLE

MAX_FILES: Final = 20_000
_MAX_DEVICES: Final = 64
ENDINGS: Final = (
    *(".csv", ".json", ".gz", ".db", ".txt"),
    *(f".json.{device}" for device in range(_MAX_DEVICES)),
)
"""File name endings of possible tables, including msprof's `info.json.<device>`."""
FRAMEWORK_FOLDER: Final = re.compile(r"_ascend_(pt|ms)$")
_OUTPUT_FOLDER: Final = "ASCEND_PROFILER_OUTPUT"
MSPROF_FOLDER: Final = re.compile(r"^PROF_\d")
_DEVICE_FOLDER: Final = re.compile(r"^device_\d+$")
_IN_DEVICE_FOLDER: Final = ("timeline", "summary")


def sources_of(path: Path, display_name: str) -> list[Source]:
    """The files to read: the path itself, or the files in the folder.

    Raises:
        UserError: The path does not exist, or cannot be read.
    """
    if is_file(path):
        try:
            return [_source(path, display_name)]
        except OSError as error:
            raise unreadable(path, error) from None
    if not is_folder(path):
        expected = (
            "Pass a profile: a folder of torch_npu or msprof, or a CSV, JSON, .db or zip file."
        )
        raise missing(path, more=expected)
    sources: list[Source] = []
    for file, error in _files(path):
        relative = file.relative_to(path).as_posix()
        source = _source_or_problem(file, f"{display_name.rstrip('/')}/{relative}", error)
        if source.kind or source.problem or file.suffix == ".csv":
            sources.append(source)
    return sources


def _files(folder: Path) -> Iterator[tuple[Path, OSError | None]]:
    """Files that may be tables, in order; raw data, logs and intermediate files are skipped.

    Yields:
        A file and None, or a file or folder and why it cannot be read.
    """
    count = 0
    errors: list[OSError] = []
    for parent, folders, names in os.walk(folder, onerror=errors.append):
        yield from _inner_errors(errors, folder)
        folders[:] = sorted(
            name for name in folders if name not in ("FRAMEWORK", "logs", "log", "sqlite")
        )
        if Path(parent).name == "data" and _DEVICE_FOLDER.match(Path(parent).parent.name):
            continue
        if (folders or names) and not os.access(parent, os.X_OK):
            # Its names can be listed, but nothing in it can be opened.
            errors.append(PermissionError(errno.EACCES, os.strerror(errno.EACCES), parent))
            folders.clear()
            continue
        for name in sorted(names):
            if name.lower().endswith(ENDINGS) and _may_be_file(Path(parent) / name):
                count += 1
                if count > MAX_FILES:
                    raise UserError(
                        f"contains more than {MAX_FILES} files",
                        where=str(folder),
                        todo="Pass the folder of one capture.",
                    )
                yield Path(parent) / name, None
    yield from _inner_errors(errors, folder)


def _may_be_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # A link to where this user may not go; opening it gives the reason.
        return True


def _inner_errors(errors: list[OSError], folder: Path) -> Iterator[tuple[Path, OSError]]:
    """Remove and yield the errors of folders below a folder; raise the error of the folder."""
    while errors:
        error = errors.pop(0)
        if Path(error.filename) == folder:
            raise unreadable(folder, error) from None
        yield Path(error.filename), error


def _source_or_problem(file: Path, display_name: str, error: OSError | None) -> Source:
    try:
        if error is not None:
            raise error
        return _source(file, display_name)
    except OSError as failed:
        problem = f"{UNREADABLE}{reason(failed)}"
        return Source(
            path=file, display_name=display_name, capture=str(file), kind="", problem=problem
        )


def _source(file: Path, display_name: str) -> Source:
    return Source(
        path=file, display_name=display_name, capture=_capture(file), kind=recognised(file)
    )


def _capture(file: Path) -> str:
    """The capture folder that a file belongs to.

    A folder of torch_npu contains one of msprof, which describes the same steps. In a folder of
    msprof alone, each device is a capture. Any other file belongs to the folder it is in.
    """
    parents = [file.parent, *file.parent.parents]
    framework_folders = [parent for parent in parents if FRAMEWORK_FOLDER.search(parent.name)]
    if framework_folders:
        return str(framework_folders[-1])
    # The parent of the output folder may have any name; it contains `profiler_info_<rank>.json`.
    folder = next((parent for parent in parents if parent.name == _OUTPUT_FOLDER), None)
    if folder is not None:
        return str(folder.parent)
    for index, parent in enumerate(parents):
        if MSPROF_FOLDER.match(parent.name):
            folder = parents[index - 1] if index else parent
            return str(folder if _DEVICE_FOLDER.match(folder.name) else parent)
    # A device's folder alone, or below a renamed folder.
    if file.parent.name in _IN_DEVICE_FOLDER and _DEVICE_FOLDER.match(file.parent.parent.name):
        return str(file.parent.parent)
    return str(file.parent)
