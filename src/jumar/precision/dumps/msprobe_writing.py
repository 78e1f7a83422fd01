"""Write a dump in msprobe's format, for its comparison and viewers.

What the format cannot hold is omitted; `msprobe_losses.py` counts it.
"""

import ast
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jumar.ground.errors import UserError
from jumar.ground.files import folder_beside
from jumar.ground.paths import exists
from jumar.precision.dumps.dump import Call, Dump, Role, Statistics, Value
from jumar.precision.dumps.msprobe import TENSORS
from jumar.precision.dumps.msprobe_tensors import write_tensors

_Key = tuple[str, str, int]
_POSITION: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_NUMBERS: Final = ("Max", "Min", "Mean", "Norm")
_MAX_GAP: Final = 1000
"""Largest position that may follow a gap: a list of that length is written for it."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """A dump that has been written.

    Attributes:
        folder: The folder of its step and rank.
        files: The files of its tensors, by the names of the tensors in the original dump.
    """

    folder: Path
    files: Mapping[str, str] = field(default_factory=dict)


def write_msprobe(folder: Path, dump: Dump, *, with_tensors: bool = True) -> Written:
    """Write `dump.json`, `construct.json`, `stack.json`, and tensors into `dump_tensor_data`.

    Args:
        folder: The folder of all steps and ranks.
        dump: The dump; without a step or rank it is written as number 0.
        with_tensors: Whether to write tensors besides their statistics, if it contains them.

    Raises:
        UserError: A dump of that step and rank already exists, or the files cannot be written.
    """
    calls = [call for call in dump.calls if is_written(call)]
    names = _names(calls)
    rank_folder = folder / f"step{dump.step or 0}" / f"rank{dump.rank or 0}"
    if exists(rank_folder):
        raise UserError(
            f"a dump of step {dump.step or 0} already exists",
            where=str(rank_folder),
            todo="Choose another folder, or delete that one.",
        )
    has_modules = any(call.kind == "module" for call in calls)
    has_ops = any(call.kind == "op" for call in calls)
    level = "mix" if has_modules and has_ops else "L0" if has_modules else "L1"
    # Others are unknown to msprobe. Its tensors of MindSpore have another format.
    framework = dump.framework if dump.framework in ("mindspore", "mindtorch") else "pytorch"
    files: dict[str, str] = {}
    with folder_beside(rank_folder, what="the dump cannot be written") as temporary:
        if with_tensors and dump.tensors is not None and framework == "pytorch":
            named = zip(names, map(written_values, calls), strict=True)
            files = write_tensors(temporary / TENSORS, dump.tensors, named)
        content = {
            "task": "tensor" if files else "statistics",
            "level": level,
            "framework": framework,
            "dump_data_dir": str(rank_folder.absolute() / TENSORS) if files else None,
            "data": _entries(calls, names, files),
        }
        parts = {
            "dump.json": content,
            "construct.json": _construct(calls, names) if has_modules else {},
            "stack.json": {"0": [list(dict.fromkeys(names)), ["no stack was recorded"]]},
        }
        for name, part in parts.items():
            (temporary / name).write_text(json.dumps(part, indent=1), "utf-8")
    return Written(folder=rank_folder, files=files)


def is_written(call: Call) -> bool:
    """Whether the format has a place for a call: it knows only forward and backward passes.

    Of parameters, whose calls belong to the update, it holds the gradients.
    """
    return call.kind == "parameter" or call.phase != "update"


def written_values(call: Call) -> list[Value]:
    """Return the values of a written call that are written."""
    if call.kind == "parameter":
        return call.of("gradient")
    return [value for value in call.values if value.role in ("input", "output", "parameter")]


def names_node(call: Call) -> bool:
    """Whether an op is a node of a graph, as in dumps of CANN and TensorFlow, rather than a call.

    Such ops have a type without a module, or none, and their layer is the node's name.
    """
    return call.kind == "op" and "." not in call.op


def _names(calls: Sequence[Call]) -> list[str]:
    """Return the name of every call; the gradients of a layer's parameters share one name."""
    classes = {call.layer: call.op for call in calls if call.kind == "module"}
    counts: Counter[tuple[str, str]] = Counter()
    forward: dict[_Key, int] = {}
    # A backward call has its forward call's number, or a new one if there is no forward call.
    for call in calls:
        counts[_api(call), "backward"] += call.kind == "op" and call.phase == "forward"
    names: list[str] = []
    for call in calls:
        layer = f"{call.layer}." if call.layer else ""
        if call.kind == "module":
            names.append(f"Module.{layer}{call.op}.{call.phase}.{call.number}")
            continue
        if call.kind == "parameter":
            owner = classes.get(call.layer, "Layer")
            names.append(f"Module.{layer}{owner}.parameters_grad.{call.number}")
            continue
        op = _api(call)
        key = (call.op, call.layer, call.number)
        number = forward.get(key) if call.phase == "backward" else None
        if number is None:
            number = counts[op, call.phase]
            counts[op, call.phase] += 1
        if call.phase == "forward":
            forward[key] = number
        names.append(f"{op}.{number}.{call.phase}")
    return names


def _api(call: Call) -> str:
    """Return the name of an API, which msprobe recognises by its first part."""
    if names_node(call):
        return ".".join(filter(None, ("NPU" if call.op else "TensorFlow", call.op, call.layer)))
    return f"Aten.{call.op[5:]}" if call.op.startswith("aten.") else call.op


def _entries(
    calls: Sequence[Call], names: Sequence[str], files: Mapping[str, str]
) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for call, name in zip(calls, names, strict=True):
        if call.kind == "parameter":
            gradients = [_element(value, files) for value in call.of("gradient")]
            if gradients:
                entries.setdefault(name, {})[call.op.rpartition(".")[2]] = gradients
        else:
            entries[name] = _entry(call, files)
    return entries


def _entry(call: Call, files: Mapping[str, str]) -> dict[str, Any]:
    contents = _elements(call, "input", files)
    contents |= {name: _scalar(text) for name, text in call.arguments.items()}
    positional, keywords = _divided(_nested(contents))
    entry: dict[str, Any] = {"input_args" if call.phase == "forward" else "input": positional}
    if keywords or call.phase == "forward":
        entry["input_kwargs"] = keywords
    outputs = _nested(_elements(call, "output", files))
    positional, keywords = _divided(outputs)
    entry["output"] = outputs if keywords else positional
    parameters = _elements(call, "parameter", files)
    if parameters or (call.kind == "module" and call.phase == "forward"):
        entry["parameters"] = parameters
    return entry


def _nested(contents: Mapping[str, Any]) -> dict[str, Any]:
    """Return elements by the name of their argument, with the elements of a list as a list."""
    arguments: dict[str, Any] = {}
    for name, content in contents.items():
        argument, _, index = name.partition(".")
        if index:
            arguments.setdefault(argument, {})[index] = content
        else:
            arguments[argument] = content
    return {
        name: _as_list(argument) if isinstance(argument, dict) else argument
        for name, argument in arguments.items()
    }


def _as_list(content: dict[str, Any]) -> Any:
    positional, others = _divided(content)
    return content if others else positional


def _divided(nested: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return what has a position, with None in gaps, and the rest by name."""
    # A dump of others may name a position at which a list would not fit into memory.
    limit = max(_MAX_GAP, 2 * len(nested))
    positions: dict[int, Any] = {}
    others: dict[str, Any] = {}
    for name, content in nested.items():
        if _POSITION.fullmatch(name) and int(name) < limit:
            positions[int(name)] = content
        else:
            others[name] = content
    length = max(positions, default=-1) + 1
    return [positions.get(position) for position in range(length)], others


def _elements(call: Call, role: Role, files: Mapping[str, str]) -> dict[str, Any]:
    return {value.name: _element(value, files) for value in call.of(role)}


def _element(value: Value, files: Mapping[str, str]) -> dict[str, Any]:
    element: dict[str, Any] = {
        "type": "torch.Tensor",
        "dtype": f"torch.{value.dtype}",
        "shape": list(value.shape),
        **_numbers(value.statistics),
        "requires_grad": value.role == "parameter",
    }
    if value.digest and value.digest.startswith("crc32:"):
        element["md5"] = value.digest.removeprefix("crc32:")
    if value.tensor is not None and value.tensor in files:
        element["data_name"] = files[value.tensor]
    return element


def _numbers(statistics: Statistics | None) -> dict[str, float | None]:
    """Return a tensor's statistics over all of its elements, as msprobe computes them.

    If some are infinite and only the finite ones have been measured, their signs are unknown. They
    are written as both, since msprobe looks for overflows in the extremes.
    """
    if statistics is None:
        return dict.fromkeys(_NUMBERS)
    if statistics.nan:
        return dict.fromkeys(_NUMBERS, math.nan)
    if statistics.inf:
        return {"Max": math.inf, "Min": -math.inf, "Mean": math.nan, "Norm": math.inf}
    numbers = (statistics.max, statistics.min, statistics.mean, statistics.l2)
    return dict(zip(_NUMBERS, numbers, strict=True))


def _scalar(text: str) -> Any:
    try:
        content = ast.literal_eval(text)
        json.dumps(content)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        content = text
    return _typed(content)


def _typed(content: Any) -> Any:
    if content is None:
        return None
    if isinstance(content, list | tuple):
        return [_typed(item) for item in content]  # pyright: ignore[reportUnknownVariableType]
    return {"type": type(content).__name__, "value": content}


def _construct(calls: Sequence[Call], names: Sequence[str]) -> dict[str, str | None]:
    """Return the enclosing layer call of each call: the next one of its layer, or of a parent."""
    classes = {call.layer: call.op for call in calls if call.kind == "module"}
    parents: dict[str, str | None] = {}
    module_names: dict[tuple[str, str], str] = {}
    for call, name in zip(reversed(calls), reversed(names), strict=True):
        path = call.layer
        if call.kind == "op" and path:
            # A layer whose call is not in the dump still gets a name.
            unrecorded = f"Module.{path}.{classes.get(path, 'Layer')}.{call.phase}.0"
            parents[name] = module_names.get((path, call.phase), unrecorded)
        elif call.kind != "parameter":
            parent = None
            while parent is None and path:
                path = path.rpartition(".")[0]
                parent = module_names.get((path, call.phase))
            parents[name] = parent
        if call.kind == "module":
            module_names[call.layer, call.phase] = name
    return dict(reversed(parents.items()))
