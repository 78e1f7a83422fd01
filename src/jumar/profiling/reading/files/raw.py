"""Folders of raw data that have not been exported: the export command, and running it."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jumar.ground.errors import UserError
from jumar.profiling.reading.files.finding import MSPROF, TOP

_UNIFIED: Final = ("aging.", "unaging.")
"""What files of raw data are called since CANN 6.3.RC2 and 6.2.RC2."""
_EXPORTED: Final = ("mindstudio_profiler_output", "summary", "timeline")
_OUTPUTS: Final = ("ASCEND_PROFILER_OUTPUT", "ASCEND_MINDSPORE_PROFILER_OUTPUT")
_SCRIPT: Final = "tools/profiler/profiler_tool/analysis/msprof/msprof.py"
_HOMES: Final = ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH")
_PLACES: Final = ("/usr/local/Ascend/cann", "/usr/local/Ascend/ascend-toolkit/latest")
_MOST: Final = 10_000
"""Folders looked at."""


def raw_folders(path: Path) -> list[Path]:
    """Folders of raw data below a path, or around it, without exported tables.

    `*_ascend_pt` and `*_ascend_ms` are those of torch_npu and MindSpore, whose own analysis reads
    the `PROF_*` in them, and whatever a folder with its output is called; other `PROF_*` are
    msprof's.
    """
    found: list[Path] = []
    for count, (parent, folders, _) in enumerate(os.walk(path)):
        here = Path(parent).resolve()
        folders.sort()
        if count >= _MOST:
            break
        analysed = any((here / name).is_dir() for name in _OUTPUTS)
        if TOP.search(here.name) or analysed:
            if not analysed and _has_raw(here, depth=1):
                found.append(here)
            folders.clear()
        elif MSPROF.match(here.name):
            if _has_raw(here) and not _is_exported(here):
                found.append(here)
            folders.clear()
    return found


def _has_raw(folder: Path, depth: int = 0) -> bool:
    """Whether `device_<n>/data` or `host/data` are in it, or in an msprof folder in it."""
    if depth:
        return any(_has_raw(inner) for inner in sorted(folder.glob("PROF_*")))
    return any(data.is_dir() for data in (folder / "host/data", *folder.glob("device_*/data")))


def _is_exported(folder: Path) -> bool:
    inner = (folder, *folder.glob("device_*"), folder / "host")
    tables = any((place / name).is_dir() for place in inner for name in _EXPORTED)
    return tables or any(folder.glob("msprof_*.db"))


def how_to_export(folder: Path) -> str:
    """The exact command for a folder of raw data, by its producer and date."""
    quoted = shlex.quote(str(folder))
    if folder.name.endswith("_ascend_pt"):
        code = f"from torch_npu.profiler.profiler import analyse; analyse({str(folder.parent)!r})"
        return f"python3 -c {shlex.quote(code)}, where torch_npu and CANN are installed"
    if folder.name.endswith("_ascend_ms"):
        code = f"from mindspore.profiler.profiler import analyse; analyse({str(folder.parent)!r})"
        return f"python3 -c {shlex.quote(code)}, where MindSpore and CANN are installed"
    if _is_unified(folder):
        return f"msprof --export=on --output={quoted}, with CANN 6.2.RC2, 6.3.RC2 or later"
    old = f"python3 CANN/toolkit/{_SCRIPT}"
    return (
        f"msprof --export=on --output={quoted}, with the CANN 6.0 or 6.1 that wrote it; with "
        f"CANN 5.0: {old} import -dir {quoted}, then {old} export timeline -dir {quoted} and "
        f"{old} export summary -dir {quoted}. Later releases do not read raw data from before "
        "CANN 6.2.RC2"
    )


def _is_unified(folder: Path) -> bool:
    """Whether its files are named as since CANN 6.2.RC2."""
    data = folder / "host" / "data"
    return data.is_dir() and any(file.name.startswith(_UNIFIED) for file in data.iterdir())


def unexported(path: Path) -> str:
    """The message for a path with nothing but raw data; empty if that is not the reason."""
    folders = raw_folders(path) if path.is_dir() else []
    if not folders:
        return ""
    more = f" ({len(folders)} folders like it)" if len(folders) > 1 else ""
    return (
        f"It is raw data that was never exported{more}. Run: {how_to_export(folders[0])}. "
        "`jumar profile show --export` does so for msprof's folders where CANN is installed."
    )


def export(paths: Sequence[Path]) -> list[Path]:
    """Have CANN's msprof export msprof's folders of raw data below some paths, into them.

    Raises:
        UserError: There are some, but no msprof; or it failed.
    """
    folders = [folder for path in paths if path.is_dir() for folder in raw_folders(path)]
    folders = [folder for folder in folders if MSPROF.match(folder.name)]
    if not folders:
        return []
    program = _msprof()
    if program is None:
        raise UserError(
            "msprof was not found in PATH, nor below ASCEND_TOOLKIT_HOME and /usr/local/Ascend",
            where=str(folders[0]),
            todo=f"Where CANN is installed, run: {how_to_export(folders[0])}.",
        )
    for folder in folders:
        print(f"exporting: {folder}", file=sys.stderr)
        asked = [program, "--export=on", f"--output={folder}"]
        done = subprocess.run(asked, stdout=sys.stderr, check=False)
        if done.returncode or not _is_exported(folder):
            said = f"exit status {done.returncode}" if done.returncode else "it wrote no tables"
            raise UserError(
                f"msprof could not export it: {said}",
                where=str(folder),
                todo=f"Its own words are above. Try: {how_to_export(folder)}.",
            )
    return folders


def _msprof() -> str | None:
    """Where msprof is: on the path, else in CANN's folder."""
    homes = [os.environ[name] for name in _HOMES if os.environ.get(name)]
    places = [str(Path(home) / "tools/profiler/bin") for home in (*homes, *_PLACES)]
    return shutil.which("msprof") or shutil.which("msprof", path=os.pathsep.join(places))
