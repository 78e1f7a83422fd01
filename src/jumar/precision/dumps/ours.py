"""Jumar's dump format: a folder for each step and rank, with a JSON file and tensors.

`FOLDER/step-00000003/rank-0/` contains `dump.json` with one line per call and, at level `tensors`,
the shards `tensors-00001-of-00002.safetensors`. A folder is written under a temporary name and
renamed when complete, so existing dumps are complete.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Final, get_args

import torch

from jumar import __version__
from jumar.ground.errors import UserError
from jumar.ground.files import folder_beside
from jumar.ground.json_text import finite_or_text, parse_json
from jumar.ground.paths import exists, is_file, is_folder, missing, read_text, unreadable
from jumar.ground.text import counted
from jumar.precision.dumps.dump import Call, Dump, Kind, Phase, Role, Statistics, Value
from jumar.precision.dumps.shards import AGAIN, SHARD_BYTES, Shards, View, write_shards

FILE: Final = "dump.json"
TOOL: Final = f"jumar {__version__}"
SAMPLE: Final = "sample"
"""Name of the fact with the maximum number of elements stored per tensor."""
_FORMAT: Final = 1
_STEP: Final = re.compile(r"step-(\d{8,})")
_RANK: Final = re.compile(r"rank-(\d+)")
_STATISTICS: Final = (
    *("count", "min", "max", "mean", "l2", "nan", "inf", "zeros"),
    *("above_fp16", "below_normal", "below_subnormal"),
)
_ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode
_SEPARATOR: Final = "\0"
"""A text that no item contains."""
_VALUE: Final = ("role", "name", "dtype", "shape", "row", "tensor", "digest")


@dataclass(frozen=True, kw_only=True)
class DumpFolder:
    """Folder of the dump of a step and rank."""

    step: int
    rank: int
    folder: Path


def dump_folder(folder: Path, step: int, rank: int) -> Path:
    """Return the folder for the dump of a step and rank."""
    return folder / f"step-{step:08d}" / f"rank-{rank}"


def find_dumps(folder: Path) -> list[DumpFolder]:
    """Find the dumps in a folder, sorted by step and rank.

    Raises:
        UserError: There is no such folder, or it cannot be read.
    """
    if not is_folder(folder):
        raise missing(folder, "folder")
    try:
        return sorted(
            (
                DumpFolder(step=int(step[1]), rank=int(rank[1]), folder=rank_folder)
                for step_folder in folder.iterdir()
                if (step := _STEP.fullmatch(step_folder.name)) and is_folder(step_folder)
                for rank_folder in step_folder.iterdir()
                if (rank := _RANK.fullmatch(rank_folder.name)) and is_file(rank_folder / FILE)
            ),
            key=lambda found: (found.step, found.rank),
        )
    except OSError as error:
        raise unreadable(folder, error) from error


def write_dump(
    folder: Path,
    dump: Dump,
    tensors: Mapping[str, torch.Tensor] | None = None,
    views: Mapping[str, View] | None = None,
    *,
    shard_bytes: int = SHARD_BYTES,
) -> Path:
    """Write the dump of a step and rank atomically.

    Args:
        folder: The folder of all steps and ranks.
        dump: The dump; without a step or rank it is written as number 0.
        tensors: The tensors named by its values.
        views: The tensors that are stored as views of others.
        shard_bytes: Maximum size of a file of tensors, unless a single tensor is larger.

    Returns:
        The folder of this step and rank.

    Raises:
        UserError: A dump of that step and rank already exists, or the files cannot be written.
    """
    rank_folder = dump_folder(folder, dump.step or 0, dump.rank or 0)
    if exists(rank_folder):
        raise UserError(
            f"a dump of step {dump.step or 0} already exists",
            where=str(rank_folder),
            todo="Choose another folder, or delete that one.",
        )
    with folder_beside(rank_folder, what="the dump cannot be written") as temporary:
        shards = write_shards(temporary, tensors or {}, shard_bytes)
        (temporary / FILE).write_text(_text(dump, shards, views or {}), "utf-8")
    return rank_folder


def read_dump(folder: Path) -> Dump:
    """Read the dump of a step and rank; its tensors are read on demand.

    Args:
        folder: The folder of a step and rank, or a parent folder with a single dump.

    Raises:
        UserError: There is no dump or more than one, or it is truncated or of another tool.
    """
    folder = _only_dump(folder)
    path = folder / FILE
    try:
        content = parse_json(read_text(path))
    except ValueError as error:
        raise UserError(f"is truncated or damaged: {error}", where=str(path), todo=AGAIN) from error
    version = content.get("format") if isinstance(content, dict) else None
    if version is None or "number_of_calls" not in content:
        raise UserError("is not a dump of jumar", where=str(path))
    if version != _FORMAT:
        raise UserError(
            f"has the format {version}, but this version of jumar reads {_FORMAT}",
            where=str(path),
            todo="Read it with the version of jumar that wrote it, or a later one.",
        )
    try:
        rows = [_row_from_json(item, content["row"]) for item in content["rows"]]
        calls = tuple(_call_from_json(item, content["value"], rows) for item in content["calls"])
        shards = {str(name): int(size) for name, size in content["shards"].items()}
        views = {
            name: View(base, tuple(shape), tuple(stride))
            for name, (base, shape, stride) in content["views"].items()
        }
        dump = Dump(
            where=folder,
            tool=content["tool"],
            framework=content["framework"],
            step=_place(content["step"]),
            rank=_place(content["rank"]),
            facts=content["facts"],
            calls=calls,
            tensors=Shards(folder, shards, views, calls) if shards else None,
            notices=tuple(content["notices"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise UserError(
            f"is damaged: {type(error).__name__} {error}", where=str(path), todo=AGAIN
        ) from error
    if len(calls) != content["number_of_calls"]:
        raise UserError(
            f"contains {counted(len(calls), 'call')} instead of {content['number_of_calls']}",
            where=str(path),
            todo=AGAIN,
        )
    return dump


def _place(content: Any) -> int | None:
    """Return the number of a step or rank, which becomes the name of a folder.

    Raises:
        ValueError: It is not one.
    """
    if content is None or (type(content) is int and 0 <= content < 1 << 63):
        return content
    raise ValueError(f"{content!r:.40} is not the number of a step or rank")


def _text(dump: Dump, shards: Mapping[str, int], views: Mapping[str, View]) -> str:
    """Return the JSON file's content: a header, then a line per row of statistics and per call."""
    rows: dict[int, int] = {}
    table: list[Statistics] = []
    for call in dump.calls:
        for value in call.values:
            if value.statistics is not None and id(value.statistics) not in rows:
                rows[id(value.statistics)] = len(table)
                table.append(value.statistics)
    header = {
        "format": _FORMAT,
        "tool": dump.tool,
        "framework": dump.framework,
        "step": dump.step,
        "rank": dump.rank,
        "facts": dict(dump.facts),
        "notices": list(dump.notices),
        "shards": shards,
        "views": {name: [view.base, view.shape, view.stride] for name, view in views.items()},
        "number_of_calls": len(dump.calls),
        "value": _VALUE,
        "row": _STATISTICS,
    }
    statistics = _lines(map(_row_to_json, table))
    lines = _lines(_call_to_json(call, rows) for call in dump.calls)
    return f'{_ENCODE(header)[:-1]},\n"rows":[\n{statistics}],\n"calls":[\n{lines}\n]}}\n'


def _lines(items: Iterable[Any]) -> str:
    """Encode items as JSON, one per line, by a single call of the encoder, which starts slowly."""
    separated = [part for item in items for part in (item, _SEPARATOR)]
    return _ENCODE(separated[:-1])[1:-1].replace(f",{_ENCODE(_SEPARATOR)},", ",\n")


def _only_dump(folder: Path) -> Path:
    """Return the folder of the only step and rank in a folder.

    Raises:
        UserError: The folder contains no dump, or more than one.
    """
    if is_file(folder / FILE):
        return folder
    dumps = find_dumps(folder)
    if not dumps and _STEP.fullmatch(folder.absolute().name):
        siblings = find_dumps(folder.absolute().parent)
        dumps = [dump for dump in siblings if dump.folder.parent == folder.absolute()]
    if len(dumps) == 1:
        return dumps[0].folder
    if not dumps:
        raise UserError(
            f"contains no {FILE}, nor does a step-*/rank-* folder in it",
            where=str(folder),
            todo="Write a dump: jumar precision dump RECIPE --to FOLDER",
        )
    raise UserError(
        f"contains {counted(len(dumps), 'dump')}",
        where=str(folder),
        todo=f"Choose one of them, such as {dumps[0].folder}.",
    )


def _call_to_json(call: Call, rows: Mapping[int, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "kind": call.kind,
        "op": call.op,
        "layer": call.layer,
        "number": call.number,
        "phase": call.phase,
    }
    if call.cann:
        result["cann"] = call.cann
    if call.arguments:
        result["arguments"] = dict(call.arguments)
    result["values"] = [_value_to_json(value, rows) for value in call.values]
    return result


def _value_to_json(value: Value, rows: Mapping[int, int]) -> list[Any]:
    row = None if value.statistics is None else rows[id(value.statistics)]
    return _trimmed(
        [value.role, value.name, value.dtype, value.shape, row, value.tensor, value.digest]
    )


def _row_to_json(row: Statistics) -> list[Any]:
    return _trimmed([finite_or_text(getattr(row, name)) for name in _STATISTICS])


def _trimmed(fields: list[Any]) -> list[Any]:
    """Return the fields without missing ones at the end."""
    while fields[-1] is None:
        fields.pop()
    return fields


def _call_from_json(
    content: Mapping[str, Any], names: Sequence[str], rows: Sequence[Statistics]
) -> Call:
    return Call(
        kind=_one_of(Kind, content["kind"]),
        op=_checked(content["op"], str),
        layer=_checked(content["layer"], str),
        number=_checked(content["number"], int),
        phase=_one_of(Phase, content["phase"]),
        values=tuple(_value_from_json(value, names, rows) for value in content["values"]),
        arguments={
            name: _checked(text, str)
            for name, text in _checked(content.get("arguments", {}), dict).items()
        },
        cann=_checked(content.get("cann", ""), str),
    )


def _value_from_json(
    content: Sequence[Any], names: Sequence[str], rows: Sequence[Statistics]
) -> Value:
    fields = dict(zip(names, content, strict=False))
    row = fields.get("row")
    return Value(
        role=_one_of(Role, fields["role"]),
        name=_checked(fields["name"], str),
        dtype=_checked(fields["dtype"], str),
        shape=tuple(_checked(size, int) for size in fields["shape"]),
        statistics=None if row is None else rows[row],
        digest=_checked(fields.get("digest"), (str, NoneType)),
        tensor=_checked(fields.get("tensor"), (str, NoneType)),
    )


def _row_from_json(content: Sequence[Any], names: Sequence[str]) -> Statistics:
    numbers = (
        float(number) if isinstance(number, str) else _checked(number, (int, float, NoneType))
        for number in content
    )
    fields: dict[str, Any] = dict(zip(names, numbers, strict=False))
    return Statistics(**fields)


def _checked(content: Any, kind: type | tuple[type, ...]) -> Any:
    """Return a part of a file if it has the right type; a damaged file may contain any other.

    Raises:
        TypeError: It has another one.
    """
    if isinstance(content, kind):
        return content
    raise TypeError(f"{content!r:.40} in place of a {getattr(kind, '__name__', 'number or text')}")


def _one_of(names: Any, name: str) -> Any:
    if name not in get_args(names):
        raise ValueError(f"'{name}' is not one of {', '.join(get_args(names))}")
    return name
