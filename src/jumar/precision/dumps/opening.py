"""Open dumps of any tool, recognised by their files."""

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from jumar.ground.errors import UserError
from jumar.ground.paths import is_file, is_folder, missing, unreadable
from jumar.ground.text import counted
from jumar.precision.dumps import msprobe, ours
from jumar.precision.dumps.cann import DECODED, GOLDEN, RAW, read_decoded, read_raw
from jumar.precision.dumps.dump import Dump
from jumar.precision.dumps.ptdbg import read_ptdbg

_EXPECTED: Final = (
    "Expected: a dump of jumar or msprobe (dump.json), of ptdbg (.pkl), or CANN's files, raw or"
    " decoded to .npy; a step's folder, or one above it."
)


def open_dumps(path: Path) -> list[Dump]:
    """Open the dumps in a folder or file, sorted by path.

    Args:
        path: A step's folder, a folder of steps and ranks, a `dump.json` or a `.pkl`.

    Raises:
        UserError: The path is empty or contains no dump, or a dump is truncated or damaged.
    """
    if is_file(path):
        return [_of_file(path)]
    if not is_folder(path):
        raise missing(path, "dump", more=_EXPECTED)
    dumps: list[Dump] = []
    num_ignored = 0
    for folder, names in _folders(path):
        found_dumps, ignored = _of_folder(folder, names)
        dumps += found_dumps
        num_ignored += ignored
    if not dumps:
        reason = (
            f"none of its {counted(num_ignored, 'file')} is one" if num_ignored else "it is empty"
        )
        raise UserError(f"contains no dump: {reason}", where=str(path), todo=_EXPECTED)
    if num_ignored:
        notice = f"Ignored in {path}: {counted(num_ignored, 'file')} outside any dump."
        dumps[0] = replace(dumps[0], notices=[*dumps[0].notices, notice])
    dumps.sort(key=lambda dump: (str(dump.where.parent), dump.step or 0, dump.rank or 0))
    return dumps


def open_dump(path: Path, *, step: int | None = None, rank: int | None = None) -> Dump:
    """Open the only dump in a folder or file.

    Args:
        path: See `open_dumps`.
        step: The step; required if there are several.
        rank: The rank; required if there are several.

    Raises:
        UserError: There is no dump, or more than one.
    """
    dumps = open_dumps(path)
    chosen = [
        dump
        for dump in dumps
        if (step is None or dump.step == step) and (rank is None or dump.rank == rank)
    ]
    if len(chosen) == 1:
        return chosen[0]
    names = "; ".join(_described(dump) for dump in dumps[:4])
    if not chosen:
        raise UserError(f"contains no such step or rank, only {names}", where=str(path))
    raise UserError(
        f"contains {counted(len(chosen), 'dump')}: {names}",
        where=str(path),
        todo="Choose one by its folder, or by --step and --rank.",
    )


def _described(dump: Dump) -> str:
    numbers = (("step", dump.step), ("rank", dump.rank))
    parts = [f"{word} {number}" for word, number in numbers if number is not None]
    return f"{dump.where} ({', '.join(parts)})" if parts else str(dump.where)


def _folders(path: Path) -> list[tuple[Path, Sequence[str]]]:
    def refuse(error: OSError) -> None:
        raise unreadable(error.filename or path, error) from error

    folders: list[tuple[Path, Sequence[str]]] = []
    for folder, subfolders, names in os.walk(path, onerror=refuse):
        subfolders[:] = sorted(name for name in subfolders if name != msprobe.TENSORS)
        folders.append((Path(folder), sorted(names)))
    return folders


def _of_folder(folder: Path, names: Sequence[str]) -> tuple[list[Dump], int]:
    """Open the dumps in one folder, and count the files that belong to none."""
    dumps: list[Dump] = []
    read_files = {"construct.json", "stack.json", "mapping.csv"}
    read_files |= {name for name in names if name.endswith(".safetensors")}
    if msprobe.FILE in names:
        dumps.append(_of_file(folder / msprobe.FILE))
        read_files.add(msprobe.FILE)
    for name in names:
        if name.endswith(".json") and name not in read_files and _is_renamed(folder / name):
            dumps.append(msprobe.read_msprobe(folder / name))
            read_files.add(name)
        if name.endswith(".pkl"):
            dumps.append(read_ptdbg(folder / name))
            read_files.add(name)
    groups: defaultdict[Callable[[Path, Sequence[Path]], Dump], list[str]] = defaultdict(list)
    for name in names:
        if DECODED.fullmatch(name) or GOLDEN.fullmatch(name):
            groups[read_decoded].append(name)
        elif RAW.fullmatch(name) and not name.startswith("Opdebug."):
            groups[read_raw].append(name)
    for read, files in groups.items():
        dumps.append(read(folder, [folder / name for name in files]))
        read_files.update(files)
    return dumps, sum(name not in read_files for name in names)


def _is_renamed(path: Path) -> bool:
    """Whether a file with another name is a `dump.json` of msprobe."""
    try:
        content = msprobe.read_json(path)
    except UserError:
        return False
    return isinstance(content, dict) and {"task", "data"} <= set(content)


def _of_file(path: Path) -> Dump:
    if path.suffix == ".pkl":
        return read_ptdbg(path)
    if path.suffix != ".json":
        raise UserError("is not a dump", where=str(path), todo=_EXPECTED)
    content = msprobe.read_json(path)
    is_ours = isinstance(content, dict) and "calls" in content
    return ours.read_dump(path.parent) if is_ours else msprobe.read_msprobe(path)
