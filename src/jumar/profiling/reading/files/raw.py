"""Folders of raw data that was never exported, and how to export it, by hand or with msprof."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jumar.ground.errors import UserError
from jumar.profiling.reading.files.finding import FRAMEWORK_FOLDER, MSPROF_FOLDER

_CURRENT_PREFIXES: Final = ("aging.", "unaging.")
"""Prefixes of raw data files since CANN 6.2.RC2 and 6.3.RC2."""
_EXPORT_FOLDERS: Final = ("mindstudio_profiler_output", "summary", "timeline")
_ANALYSIS_FOLDERS: Final = ("ASCEND_PROFILER_OUTPUT", "ASCEND_MINDSPORE_PROFILER_OUTPUT")
_MSPROF_SCRIPT: Final = "tools/profiler/profiler_tool/analysis/msprof/msprof.py"
_HOME_VARIABLES: Final = ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH")
_DEFAULT_HOMES: Final = ("/usr/local/Ascend/cann", "/usr/local/Ascend/ascend-toolkit/latest")
_MAX_FOLDERS: Final = 10_000
"""Maximum number of folders to search."""


def raw_folders(path: Path) -> list[Path]:
    """Folders of raw data without exported tables, at a path or below it.

    `*_ascend_pt` and `*_ascend_ms` belong to torch_npu and MindSpore, whose analysis reads the
    `PROF_*` in them, and so do folders with that analysis's output. Other `PROF_*` are msprof's.
    """
    raw: list[Path] = []
    for count, (parent, folders, _) in enumerate(os.walk(path)):
        folder = Path(parent).resolve()
        folders.sort()
        if count >= _MAX_FOLDERS:
            break
        is_analysed = any(_is_folder(folder / name) for name in _ANALYSIS_FOLDERS)
        if FRAMEWORK_FOLDER.search(folder.name) or is_analysed:
            if not is_analysed and _has_raw_data(folder, depth=1):
                raw.append(folder)
            folders.clear()
        elif MSPROF_FOLDER.match(folder.name):
            if _has_raw_data(folder) and not _is_exported(folder):
                raw.append(folder)
            folders.clear()
    return raw


def _is_folder(path: Path) -> bool:
    """Whether this user can see that a path is a folder."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _has_raw_data(folder: Path, depth: int = 0) -> bool:
    """Whether the folder, or with `depth` an msprof folder in it, has raw data."""
    if depth:
        return any(_has_raw_data(inner) for inner in sorted(folder.glob("PROF_*")))
    return any(map(_is_folder, (folder / "host/data", *folder.glob("device_*/data"))))


def _is_exported(folder: Path) -> bool:
    parents = (folder, *folder.glob("device_*"), folder / "host")
    tables = any(_is_folder(parent / name) for parent in parents for name in _EXPORT_FOLDERS)
    return tables or any(folder.glob("msprof_*.db"))


def export_command(folder: Path) -> str:
    """The command that exports a folder of raw data, by its producer and release."""
    quoted = shlex.quote(str(folder))
    if folder.name.endswith("_ascend_pt"):
        code = f"from torch_npu.profiler.profiler import analyse; analyse({str(folder.parent)!r})"
        return f"python3 -c {shlex.quote(code)}, where torch_npu and CANN are installed"
    if folder.name.endswith("_ascend_ms"):
        code = f"from mindspore.profiler.profiler import analyse; analyse({str(folder.parent)!r})"
        return f"python3 -c {shlex.quote(code)}, where MindSpore and CANN are installed"
    if _has_current_names(folder):
        return f"msprof --export=on --output={quoted}, with CANN 6.2.RC2, 6.3.RC2 or later"
    script = f"python3 CANN/toolkit/{_MSPROF_SCRIPT}"
    return (
        f"msprof --export=on --output={quoted}, with the CANN 6.0 or 6.1 that wrote it; with "
        f"CANN 5.0: {script} import -dir {quoted}, then {script} export timeline -dir {quoted} and "
        f"{script} export summary -dir {quoted}. Later releases do not read raw data from before "
        "CANN 6.2.RC2"
    )


def _has_current_names(folder: Path) -> bool:
    """Whether the files have the names that CANN has used since 6.2.RC2."""
    data = folder / "host" / "data"
    return data.is_dir() and any(file.name.startswith(_CURRENT_PREFIXES) for file in data.iterdir())


def unexported_hint(path: Path) -> str:
    """Advice for a path with nothing but raw data; empty if it has no raw data."""
    folders = raw_folders(path) if path.is_dir() else []
    if not folders:
        return ""
    others = f" ({len(folders)} folders)" if len(folders) > 1 else ""
    return (
        f"This is raw data that was never exported{others}. Run: {export_command(folders[0])}. "
        "Where CANN is installed, `jumar profile show --export` does this for msprof's folders."
    )


def export(paths: Sequence[Path]) -> list[Path]:
    """Run CANN's msprof on msprof's raw data folders below some paths; it writes into them.

    Returns:
        The exported folders.

    Raises:
        UserError: There is raw data but no msprof, or msprof failed.
    """
    folders = [folder for path in paths if path.is_dir() for folder in raw_folders(path)]
    folders = [folder for folder in folders if MSPROF_FOLDER.match(folder.name)]
    if not folders:
        return []
    program = _msprof_path()
    if program is None:
        raise UserError(
            "msprof was not found in PATH, below ASCEND_TOOLKIT_HOME or in /usr/local/Ascend",
            where=str(folders[0]),
            todo=f"Where CANN is installed, run: {export_command(folders[0])}.",
        )
    for folder in folders:
        print(f"exporting: {folder}", file=sys.stderr)
        command = [program, "--export=on", f"--output={folder}"]
        result = subprocess.run(command, stdout=sys.stderr, check=False)
        if result.returncode or not _is_exported(folder):
            reason = (
                f"exit status {result.returncode}" if result.returncode else "it wrote no tables"
            )
            raise UserError(
                f"msprof could not export it: {reason}",
                where=str(folder),
                todo=f"Its output is above. Try: {export_command(folder)}.",
            )
    return folders


def _msprof_path() -> str | None:
    """The path of msprof: from PATH, else from CANN's folder."""
    homes = [os.environ[name] for name in _HOME_VARIABLES if os.environ.get(name)]
    program_folders = [str(Path(home) / "tools/profiler/bin") for home in (*homes, *_DEFAULT_HOMES)]
    return shutil.which("msprof") or shutil.which("msprof", path=os.pathsep.join(program_folders))
