"""Read msprobe's `dump.json`, `construct.json` and tensor files, from release 1.0.4 to 26.2.

The path in `dump_data_dir` is stale as soon as a dump is moved, so tensors are read from
`dump_tensor_data` beside `dump.json`, as in msprobe's comparison.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from jumar.ground.errors import UserError
from jumar.ground.json_text import parse_json
from jumar.ground.paths import is_file, is_folder, read_text
from jumar.ground.text import counted
from jumar.precision.dumps.dump import Call, Dump, Kind, Phase, Role, Statistics, Value
from jumar.precision.dumps.tensor_files import TensorFiles

FILE: Final = "dump.json"
TENSORS: Final = "dump_tensor_data"
HEADER: Final = frozenset({"task", "level", "framework", "dump_data_dir", "data", "type"})
_MODULE: Final = re.compile(r"(?:Module|Cell)\.(?:(.*)\.)?([^.]+)\.(forward|backward)\.(\d+)")
_GRADIENTS: Final = re.compile(r"(?:Module|Cell)\.(?:(.*)\.)?([^.]+)\.parameters_grad(?:\.(\d+))?")
_API: Final = re.compile(r"(\w+\..+)\.(\d+)\.(forward|backward)")
_SECTIONS: Final[Mapping[str, Role]] = {
    "input_args": "input",
    "input_kwargs": "input",
    "input": "input",
    "output": "output",
    "parameters": "parameter",
}
_AGAIN: Final = "Copy the file again, or dump that step again."


class _Name(NamedTuple):
    """The parts of an entry's name."""

    kind: Kind
    op: str
    layer: str
    call_index: int
    phase: Phase


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A tensor, a scalar or None among the arguments, with its name."""

    name: str
    content: Any


def read_msprobe(path: Path) -> Dump:
    """Read the dump of a step and rank.

    Args:
        path: The `dump.json`.

    Raises:
        UserError: The file cannot be read, is truncated, or is not msprobe's.
    """
    content = read_json(path)
    if not isinstance(content, dict) or not HEADER & set(content) or "calls" in content:
        raise UserError(
            "is not a dump of msprobe",
            where=str(path),
            todo="Expected: an object with 'task' and 'data', as in msprobe's dump.json.",
        )
    entries = content.get("data")
    notices: list[str] = []
    if not isinstance(entries, dict) or not entries:
        notices.append("It contains only a header and no calls.")
        entries = {}
    try:
        calls, unknown = _calls(entries, _parents(path.with_name("construct.json"), notices))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UserError(
            f"is damaged: {type(error).__name__} {error}", where=str(path), todo=_AGAIN
        ) from error
    if unknown:
        notices.append(f"{counted(len(unknown), 'entry')} ignored, such as {unknown[0]}.")
    # Accept only names of files in the folder: a dump from elsewhere could contain any path.
    tensor_names = [value.tensor for call in calls for value in call.values if value.tensor]
    names = [name for name in tensor_names if Path(name).name == name]
    folder = path.parent / TENSORS if is_folder(path.parent / TENSORS) else path.parent
    if names and not any(is_file(folder / name) for name in names):
        notices.append(f"None of its {counted(len(names), 'tensor file')} exists in {folder}.")
        names = []
    return Dump(
        where=path.parent,
        tool="msprobe",
        framework=content.get("framework") or _framework(content, entries),
        step=_numbered(path, "step"),
        rank=_numbered(path, "rank"),
        facts={key: str(content[key]) for key in ("task", "level") if content.get(key)},
        calls=calls,
        tensors=TensorFiles({name: folder / name for name in names}) if names else None,
        notices=notices,
    )


def read_json(path: Path) -> Any:
    """Read a JSON file, which may contain the bare `NaN` and `Infinity` that these tools write.

    Raises:
        UserError: The file cannot be read, or is truncated.
    """
    try:
        return parse_json(read_text(path))
    except ValueError as error:
        raise UserError(
            f"is truncated or not JSON: {error}", where=str(path), todo=_AGAIN
        ) from error


def _parents(path: Path, notices: list[str]) -> Mapping[str, str]:
    """Return the layer of every call in `construct.json`; empty at level L1."""
    if not is_file(path):
        return {}
    content = read_json(path)
    if not isinstance(content, dict):
        notices.append(f"{path.name} is not a JSON object and was ignored.")
        return {}
    layers: dict[str, str] = {}
    for name, parent in content.items():
        match = _MODULE.fullmatch(parent) if isinstance(parent, str) else None
        layers[name] = (match[1] or "") if match else ""
    return layers


def _numbered(path: Path, prefix: str) -> int | None:
    """Return the number in the name of a parent folder, such as `step3` or `rank0`."""
    for folder in path.absolute().parents[:2]:
        if match := re.fullmatch(rf"{prefix}(\d+)", folder.name):
            return int(match[1])
    return None


def _framework(content: Mapping[str, Any], entries: Mapping[str, Any]) -> str:
    """Determine the framework from the types of tensors, because the header lacks it."""
    text = str(content.get("type", "")) or json.dumps(entries)
    if "mindspore." in text:
        return "mindspore"
    return "pytorch" if "torch." in text else ""


def _calls(
    entries: Mapping[str, Any], parents: Mapping[str, str]
) -> tuple[tuple[Call, ...], list[str]]:
    """Return the calls in the order of execution, and the names of entries that are not calls."""
    named_entries: list[tuple[_Name, Mapping[str, Any]]] = []
    unknown: list[str] = []
    for text, entry in entries.items():
        name = _parsed(text, parents)
        if name is None or not isinstance(entry, dict):
            unknown.append(text)
        else:
            named_entries.append((name, entry))
    numbers = _numbers([name for name, _ in named_entries])
    calls: list[Call] = []
    early: list[Call] = []
    is_forward = True
    for name, entry in named_entries:
        # Releases before 26 create the entry of the gradients during the forward pass.
        is_forward = is_forward and (name.kind == "parameter" or name.phase == "forward")
        part = early if is_forward and name.kind == "parameter" else calls
        part += _calls_of(name, entry, numbers)
    return (*calls, *early), unknown


def _parsed(text: str, parents: Mapping[str, str]) -> _Name | None:
    if match := _MODULE.fullmatch(text):
        phase: Phase = "forward" if match[3] == "forward" else "backward"
        return _Name("module", match[2], match[1] or "", int(match[4]), phase)
    if match := _GRADIENTS.fullmatch(text):
        return _Name("parameter", match[2], match[1] or "", int(match[3] or 0), "backward")
    if match := _API.fullmatch(text):
        phase = "forward" if match[3] == "forward" else "backward"
        # msprobe sometimes assigns backward calls to another layer: in-place ops confuse it.
        twin = f"{match[1]}.{match[2]}.forward"
        layer = parents.get(twin) or parents.get(text, "")
        op = f"aten.{match[1][5:]}" if match[1].startswith("Aten.") else match[1]
        return _Name("op", op, layer, int(match[2]), phase)
    return None


def _numbers(names: Sequence[_Name]) -> Mapping[_Name, int]:
    """Return the number of each call within its layer.

    msprobe counts calls over the whole step, and a backward call has its forward call's index, so
    both phases are numbered together.
    """
    groups: defaultdict[tuple[Kind, str, str], set[int]] = defaultdict(set)
    for name in names:
        groups[name.kind, name.op, name.layer].add(name.call_index)
    positions = {
        key: {index: position for position, index in enumerate(sorted(indices))}
        for key, indices in groups.items()
    }
    return {name: positions[name.kind, name.op, name.layer][name.call_index] for name in names}


def _calls_of(
    name: _Name, entry: Mapping[str, Any], numbers: Mapping[_Name, int]
) -> Iterator[Call]:
    """Yield the calls of an entry; an entry of gradients has one per parameter."""
    if name.kind == "parameter":
        for parameter, elements in entry.items():
            values = _values("gradient", elements, {})
            if values:
                yield Call(
                    kind="parameter",
                    op=f"{name.layer}.{parameter}" if name.layer else parameter,
                    layer=name.layer,
                    number=numbers[name],
                    phase="backward",
                    values=values,
                )
        return
    arguments: dict[str, str] = {}
    values = ()
    for section, role in _SECTIONS.items():
        if section in entry:
            values += _values(role, entry[section], arguments)
    yield Call(
        kind=name.kind,
        op=name.op,
        layer=name.layer,
        number=numbers[name],
        phase=name.phase,
        values=values,
        arguments=arguments,
    )


def _values(role: Role, content: Any, arguments: dict[str, str]) -> tuple[Value, ...]:
    """Return the tensors of a section, adding its scalars to the arguments."""
    values: list[Value] = []
    listed = content if isinstance(content, list) else [content]
    for key, element in content.items() if isinstance(content, dict) else enumerate(listed):
        leaves = list(_leaves(str(key), element))
        tensors = [leaf for leaf in leaves if _is_tensor(leaf.content)]
        values += [_value(role, leaf) for leaf in tensors]
        if role == "input" and not tensors:
            arguments[str(key)] = _text(element)
        elif role == "input":
            other_leaves = [leaf for leaf in leaves if not _is_tensor(leaf.content)]
            arguments |= {leaf.name: _text(leaf.content) for leaf in other_leaves}
    return tuple(values)


def _is_tensor(content: Any) -> bool:
    return isinstance(content, dict) and "dtype" in content and "shape" in content


def _leaves(name: str, content: Any) -> Iterator[_Leaf]:
    if isinstance(content, list):
        for index, element in enumerate(content):
            yield from _leaves(f"{name}.{index}", element)
    elif isinstance(content, dict) and "type" not in content:
        for key, element in content.items():
            yield from _leaves(f"{name}.{key}", element)
    else:
        yield _Leaf(name, content)


def _text(content: Any) -> str:
    """Return an argument as Python source."""
    return repr(_plain(content))


def _plain(content: Any) -> Any:
    if isinstance(content, list):
        return [_plain(item) for item in content]
    if isinstance(content, dict):
        if "type" in content:
            return content.get("value")
        return {key: _plain(item) for key, item in content.items()}
    return content


def _value(role: Role, leaf: _Leaf) -> Value:
    element = leaf.content
    shape = tuple(int(size) for size in element["shape"])
    digest = element.get("md5")
    return Value(
        role=role,
        name=leaf.name,
        dtype=str(element["dtype"]).removeprefix("torch.").removeprefix("mindspore.").lower(),
        shape=shape,
        statistics=Statistics(
            count=math.prod(shape),
            min=_number(element.get("Min")),
            max=_number(element.get("Max")),
            mean=_number(element.get("Mean")),
            l2=_number(element.get("Norm")),
        ),
        digest=f"crc32:{digest}" if digest else None,
        tensor=element.get("data_name") or None,
    )


def _number(content: Any) -> float | None:
    return None if content is None else float(content)
