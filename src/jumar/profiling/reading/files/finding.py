"""Which files a path stands for, and which of them belong to one capture."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from jumar.ground.errors import UserError
from jumar.ground.paths import is_file, is_folder, missing
from jumar.profiling.reading.files.recognition import recognised
from jumar.profiling.reading.part import Source

MOST_FILES: Final = 20_000
_MOST_DEVICES: Final = 64
ENDINGS: Final = (
    *(".csv", ".json", ".gz", ".db", ".txt"),
    *(f".json.{device}" for device in range(_MOST_DEVICES)),
)
"""Of files that may be tables; msprof's `info.json.<device>` included."""
TOP: Final = re.compile(r"_ascend_(pt|ms)$")
_OUTPUT: Final = "ASCEND_PROFILER_OUTPUT"
MSPROF: Final = re.compile(r"^PROF_\d")
_DEVICE: Final = re.compile(r"^device_\d+$")
_BELOW_DEVICE: Final = ("timeline", "summary")


def sources_of(path: Path, shown: str) -> list[Source]:
    """The readable files of a file or a folder.

    Raises:
        UserError: Nothing is there.
    """
    if is_file(path):
        return [_source(path, shown)]
    if not is_folder(path):
        more = "Name a profile: a folder of torch_npu or msprof, a CSV, JSON, .db or zip file."
        raise missing(path, more=more)
    sources: list[Source] = []
    for file in _files(path):
        relative = file.relative_to(path).as_posix()
        source = _source(file, f"{shown.rstrip('/')}/{relative}")
        if source.kind or file.suffix == ".csv":
            sources.append(source)
    return sources


def _files(folder: Path) -> Iterable[Path]:
    """Files that may be tables, in order; raw data below `data` and `logs` is ignored."""
    count = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if name not in ("FRAMEWORK", "logs", "log", "sqlite")
        )
        if Path(parent).name == "data" and _DEVICE.match(Path(parent).parent.name):
            continue
        for name in sorted(names):
            if name.lower().endswith(ENDINGS) and (Path(parent) / name).is_file():
                count += 1
                if count > MOST_FILES:
                    raise UserError(
                        f"more than {MOST_FILES} files are in it",
                        where=str(folder),
                        todo="Name the folder of one capture.",
                    )
                yield Path(parent) / name


def _source(file: Path, shown: str) -> Source:
    try:
        kind = recognised(file)
    except OSError as error:
        raise UserError(f"it cannot be read: {error.strerror}", where=shown) from None
    return Source(path=file, shown=shown, capture=_capture(file), kind=kind)


def _capture(file: Path) -> str:
    """The capture folder that a file belongs to.

    The outermost folder of torch_npu holds one of msprof, which describes the same steps; in
    one of msprof, each device is a capture. A trace of Kineto stands alone.
    """
    parents = [file.parent, *file.parent.parents]
    above = [parent for parent in parents if TOP.search(parent.name)]
    if above:
        return str(above[-1])
    # Whatever the folder is called, `profiler_info_<rank>.json` is next to this one.
    inner = next((parent for parent in parents if parent.name == _OUTPUT), None)
    if inner is not None:
        return str(inner.parent)
    for place, parent in enumerate(parents):
        if MSPROF.match(parent.name):
            inner = parents[place - 1] if place else parent
            return str(inner if _DEVICE.match(inner.name) else parent)
    # A device's folder alone, or below another name than msprof's.
    if file.parent.name in _BELOW_DEVICE and _DEVICE.match(file.parent.parent.name):
        return str(file.parent.parent)
    return str(file.parent)
