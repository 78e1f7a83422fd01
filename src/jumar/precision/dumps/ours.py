"""Our own form of a dump on disk: a folder a step and rank, with one JSON file and its tensors.

`FOLDER/step-00000003/rank-0/` holds `dump.json` with a line a call, and at level `tensors` the
shards `tensors-00001-of-00002.safetensors`. A folder is written beside its place and renamed when
it is complete, so what is there is whole.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, get_args

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from jumar import __version__
from jumar.ground.errors import UserError
from jumar.ground.files import folder_beside
from jumar.ground.paths import exists, is_file, is_folder, missing, read_text, unreadable
from jumar.ground.text import counted
from jumar.precision.dumps.dump import Call, Dump, Kind, Phase, Role, Statistics, Value

FILE: Final = "dump.json"
TOOL: Final = f"jumar {__version__}"
SAMPLE: Final = "sample"
"""The fact that says how many elements were kept of a larger tensor."""
_FORMAT: Final = 1
_SHARD_BYTES: Final = 1 << 30
_STEP: Final = re.compile(r"step-(\d{8,})")
_RANK: Final = re.compile(r"rank-(\d+)")
_NUMBERS: Final = (
    *("count", "min", "max", "mean", "l2", "nan", "inf", "zeros"),
    *("above_fp16", "below_normal", "below_subnormal"),
)
_AGAIN: Final = "Dump that step again; what else lies in the folder is not affected."


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the dump of a step and rank lies."""

    step: int
    rank: int
    folder: Path


def place_of(folder: Path, step: int, rank: int) -> Path:
    """Where the dump of a step and rank goes."""
    return folder / f"step-{step:08d}" / f"rank-{rank}"


def find_dumps(folder: Path) -> list[Place]:
    """The dumps in a folder, by step and rank.

    Raises:
        UserError: There is no such folder, or it cannot be read.
    """
    if not is_folder(folder):
        raise missing(folder, "folder")
    try:
        return sorted(
            (
                Place(step=int(step[1]), rank=int(rank[1]), folder=inner)
                for outer in folder.iterdir()
                if (step := _STEP.fullmatch(outer.name)) and is_folder(outer)
                for inner in outer.iterdir()
                if (rank := _RANK.fullmatch(inner.name)) and is_file(inner / FILE)
            ),
            key=lambda place: (place.step, place.rank),
        )
    except OSError as error:
        raise unreadable(folder, error) from error


def write_dump(
    folder: Path,
    dump: Dump,
    tensors: Mapping[str, torch.Tensor] | None = None,
    *,
    shard_bytes: int = _SHARD_BYTES,
) -> Path:
    """Write the dump of a step and rank, whole or not at all.

    Args:
        folder: The folder of all steps and ranks.
        dump: What is written; without a step or rank it goes where those of number 0 do.
        tensors: The tensors that its values name.
        shard_bytes: How large a file of tensors becomes, unless one tensor is larger.

    Returns:
        The folder of this step and rank.

    Raises:
        UserError: There is a dump of that step and rank already, or the system refuses.
    """
    place = place_of(folder, dump.step or 0, dump.rank or 0)
    if exists(place):
        raise UserError(
            f"there is a dump of step {dump.step or 0} already",
            where=str(place),
            todo="Choose another folder, or delete that one.",
        )
    with folder_beside(place, what="the dump cannot be written") as beside:
        shards = _write_shards(beside, tensors or {}, shard_bytes)
        header = {
            "format": _FORMAT,
            "tool": dump.tool,
            "framework": dump.framework,
            "step": dump.step,
            "rank": dump.rank,
            "facts": dict(dump.facts),
            "notices": list(dump.notices),
            "statistics": _NUMBERS,
            "shards": shards,
            "number_of_calls": len(dump.calls),
        }
        lines = ",\n".join(json.dumps(_call_to_json(call)) for call in dump.calls)
        text = f'{json.dumps(header)[:-1]},\n"calls": [\n{lines}\n]}}\n'
        (beside / FILE).write_text(text, "utf-8")
    return place


def read_dump(folder: Path) -> Dump:
    """Read the dump of a step and rank; its tensors are read when they are asked for.

    Args:
        folder: The folder of a step and rank, or one above it that holds a single dump.

    Raises:
        UserError: There is no dump, there are several, or it is cut or of another tool.
    """
    folder = _only_dump(folder)
    path = folder / FILE
    try:
        content = json.loads(read_text(path))
    except ValueError as error:
        raise UserError(f"is cut or damaged: {error}", where=str(path), todo=_AGAIN) from error
    form = content.get("format") if isinstance(content, dict) else None
    if form is None or "number_of_calls" not in content:
        raise UserError("is not a dump that jumar wrote", where=str(path))
    if form != _FORMAT:
        raise UserError(
            f"has the format {form}; this version reads {_FORMAT}",
            where=str(path),
            todo="Read it with the version of jumar that wrote it, or a later one.",
        )
    try:
        calls = tuple(_call_from_json(each, content["statistics"]) for each in content["calls"])
        shards = {str(name): int(size) for name, size in content["shards"].items()}
        dump = Dump(
            where=folder,
            tool=content["tool"],
            framework=content["framework"],
            step=content["step"],
            rank=content["rank"],
            facts=content["facts"],
            calls=calls,
            tensors=_Shards(folder, shards, calls) if shards else None,
            notices=tuple(content["notices"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise UserError(
            f"is damaged: {type(error).__name__} {error}", where=str(path), todo=_AGAIN
        ) from error
    if len(calls) != content["number_of_calls"]:
        raise UserError(
            f"holds {counted(len(calls), 'call')} of {content['number_of_calls']}",
            where=str(path),
            todo=_AGAIN,
        )
    return dump


class _Shards:
    """The tensors of a dump; a file is opened when one of its tensors is read.

    Args:
        folder: The folder of the step and rank.
        sizes: The files and their bytes.
        calls: What the tensors belong to.
    """

    def __init__(self, folder: Path, sizes: Mapping[str, int], calls: Sequence[Call]) -> None:
        self._folder = folder
        self._sizes = sizes
        self._values = {
            value.tensor: value for call in calls for value in call.values if value.tensor
        }

    def read(self, name: str) -> torch.Tensor:
        """See `Tensors.read`."""
        path = self._files.get(name)
        if path is None:
            raise UserError(f"the tensor '{name}' is missing", where=str(self._folder), todo=_AGAIN)
        try:
            with safe_open(path, framework="pt") as file:
                tensor = file.get_tensor(name)
        except (OSError, SafetensorError) as error:
            raise unreadable(path, error, more=_AGAIN) from error
        value = self._values.get(name)
        dtype = str(tensor.dtype).removeprefix("torch.")
        if value is not None and dtype != value.dtype:
            raise UserError(
                f"the tensor '{name}' is {dtype}, not {value.dtype}", where=str(path), todo=_AGAIN
            )
        return tensor

    @cached_property
    def _files(self) -> dict[str, Path]:
        """The file of every tensor."""
        files: dict[str, Path] = {}
        for name, size in self._sizes.items():
            path = self._folder / name
            if not is_file(path):
                raise missing(path, "file of tensors", more=_AGAIN)
            if path.stat().st_size != size:
                raise UserError(
                    f"has {path.stat().st_size:,} bytes instead of {size:,}",
                    where=str(path),
                    todo=_AGAIN,
                )
            try:
                with safe_open(path, framework="pt") as file:
                    files |= dict.fromkeys(file.keys(), path)
            except (OSError, SafetensorError) as error:
                raise unreadable(path, error, more=_AGAIN) from error
        return files


def _only_dump(folder: Path) -> Path:
    """The folder of the one step and rank that a folder holds.

    Raises:
        UserError: It holds none, or several.
    """
    if is_file(folder / FILE):
        return folder
    places = find_dumps(folder)
    if not places and _STEP.fullmatch(folder.absolute().name):
        above = find_dumps(folder.absolute().parent)
        places = [place for place in above if place.folder.parent == folder.absolute()]
    if len(places) == 1:
        return places[0].folder
    if not places:
        raise UserError(
            f"there is no {FILE} in it, nor in a step-*/rank-* below",
            where=str(folder),
            todo="Write one: jumar precision dump RECIPE --to FOLDER",
        )
    raise UserError(
        f"it holds {counted(len(places), 'dump')}",
        where=str(folder),
        todo=f"Name one of them, such as {places[0].folder}.",
    )


def _write_shards(
    folder: Path, tensors: Mapping[str, torch.Tensor], shard_bytes: int
) -> dict[str, int]:
    """Write the tensors; returns the files with their bytes."""
    parts: list[dict[str, torch.Tensor]] = []
    room = 0
    for name, tensor in tensors.items():
        if not parts or tensor.nbytes > room:
            parts.append({})
            room = shard_bytes
        parts[-1][name] = tensor
        room -= tensor.nbytes
    sizes: dict[str, int] = {}
    for number, part in enumerate(parts, 1):
        path = folder / f"tensors-{number:05d}-of-{len(parts):05d}.safetensors"
        try:
            save_file({name: tensor.contiguous() for name, tensor in part.items()}, path)
        except SafetensorError as error:
            raise _system_error(error) from error
        # safetensors creates its files with owner-only permissions, whatever the umask is.
        path.chmod(folder.stat().st_mode & 0o666)
        sizes[path.name] = path.stat().st_size
    return sizes


def _system_error(error: SafetensorError) -> Exception:
    """The system's error that safetensors put into a text; itself if there is none in it."""
    number = re.search(r"(.*): (.*) \(os error (\d+)\)", str(error))
    return error if number is None else OSError(int(number[3]), number[2])


def _call_to_json(call: Call) -> dict[str, Any]:
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
    result["values"] = [_value_to_json(value) for value in call.values]
    return result


def _value_to_json(value: Value) -> dict[str, Any]:
    result: dict[str, Any] = {
        "role": value.role,
        "name": value.name,
        "dtype": value.dtype,
        "shape": value.shape,
    }
    if value.statistics is not None:
        numbers = [_number_to_json(getattr(value.statistics, name)) for name in _NUMBERS]
        while numbers[-1] is None:
            numbers.pop()
        result["statistics"] = numbers
    if value.digest is not None:
        result["digest"] = value.digest
    if value.tensor is not None:
        result["tensor"] = value.tensor
    return result


def _number_to_json(number: float | None) -> float | str | None:
    """JSON has no NaN and no infinity."""
    return number if number is None or number - number == 0 else str(number)


def _call_from_json(content: Mapping[str, Any], names: Sequence[str]) -> Call:
    return Call(
        kind=_one_of(Kind, content["kind"]),
        op=content["op"],
        layer=content["layer"],
        number=content["number"],
        phase=_one_of(Phase, content["phase"]),
        values=tuple(_value_from_json(each, names) for each in content["values"]),
        arguments=content.get("arguments", {}),
        cann=content.get("cann", ""),
    )


def _value_from_json(content: Mapping[str, Any], names: Sequence[str]) -> Value:
    numbers = content.get("statistics")
    return Value(
        role=_one_of(Role, content["role"]),
        name=content["name"],
        dtype=content["dtype"],
        shape=tuple(content["shape"]),
        statistics=None if numbers is None else Statistics(**dict(_numbers(names, numbers))),
        digest=content.get("digest"),
        tensor=content.get("tensor"),
    )


def _numbers(names: Sequence[str], numbers: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    for name, number in zip(names, numbers, strict=False):
        yield name, float(number) if isinstance(number, str) else number


def _one_of(names: Any, name: str) -> Any:
    if name not in get_args(names):
        raise ValueError(f"'{name}' is not one of {', '.join(get_args(names))}")
    return name
