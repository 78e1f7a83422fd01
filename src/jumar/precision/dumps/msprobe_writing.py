"""Write a dump in msprobe's format, for its comparison and viewers.

The format does not support optimizer state, updates and counts of elements, which are omitted.
"""

import ast
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jumar.ground.files import folder_beside
from jumar.precision.dumps.dump import Call, Dump, Role, Value

_Key = tuple[str, str, int]


def write_msprobe(folder: Path, dump: Dump) -> Path:
    """Write `dump.json`, `construct.json` and `stack.json`.

    Args:
        folder: The folder of all steps and ranks.
        dump: The dump; without a step or rank it is written as number 0.

    Returns:
        The folder of this step and rank.

    Raises:
        UserError: The files cannot be written.
    """
    names = _names(dump.calls)
    rank_folder = folder / f"step{dump.step or 0}" / f"rank{dump.rank or 0}"
    has_modules = any(call.kind == "module" for call in dump.calls)
    has_ops = any(call.kind == "op" for call in dump.calls)
    level = "mix" if has_modules and has_ops else "L0" if has_modules else "L1"
    content = {
        "task": "statistics",
        "level": level,
        "framework": dump.framework or "pytorch",
        "dump_data_dir": None,
        "data": _entries(dump.calls, names),
    }
    parts = {
        "dump.json": content,
        "construct.json": _construct(dump.calls, names) if has_modules else {},
        "stack.json": {"0": [list(dict.fromkeys(names)), ["no stack was recorded"]]},
    }
    with folder_beside(rank_folder, what="the dump cannot be written") as temporary:
        for name, part in parts.items():
            (temporary / name).write_text(json.dumps(part, indent=1), "utf-8")
    return rank_folder


def _names(calls: Sequence[Call]) -> list[str]:
    """Return the name of every call; the gradients of a layer's parameters share one name."""
    classes = {call.layer: call.op for call in calls if call.kind == "module"}
    counts: Counter[tuple[str, str]] = Counter()
    forward: dict[_Key, int] = {}
    # A backward call has its forward call's number, or a new one if there is no forward call.
    for call in calls:
        counts[_api(call.op), "backward"] += call.kind == "op" and call.phase == "forward"
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
        op = _api(call.op)
        key = (call.op, call.layer, call.number)
        number = forward.get(key) if call.phase == "backward" else None
        if number is None:
            number = counts[op, call.phase]
            counts[op, call.phase] += 1
        if call.phase == "forward":
            forward[key] = number
        names.append(f"{op}.{number}.{call.phase}")
    return names


def _api(op: str) -> str:
    return f"Aten.{op[5:]}" if op.startswith("aten.") else op


def _entries(calls: Sequence[Call], names: Sequence[str]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for call, name in zip(calls, names, strict=True):
        if call.kind == "parameter":
            gradients = list(map(_element, call.of("gradient")))
            if gradients:
                entries.setdefault(name, {})[call.op.rpartition(".")[2]] = gradients
        else:
            entries[name] = _entry(call)
    return entries


def _entry(call: Call) -> dict[str, Any]:
    contents = _elements(call, "input")
    contents |= {name: _scalar(text) for name, text in call.arguments.items()}
    nested = _nested(contents)
    outputs = _nested(_elements(call, "output"))
    entry: dict[str, Any] = {
        "input_args" if call.phase == "forward" else "input": _positional(nested)
    }
    keywords = {name: content for name, content in nested.items() if not name.isdigit()}
    if keywords or call.phase == "forward":
        entry["input_kwargs"] = keywords
    entry["output"] = _positional(outputs)
    parameters = _elements(call, "parameter")
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
        name: _positional(argument) if _is_list(argument) else argument
        for name, argument in arguments.items()
    }


def _is_list(content: Any) -> bool:
    return isinstance(content, dict) and bool(content) and all(key.isdigit() for key in content)


def _positional(nested: Mapping[str, Any]) -> list[Any]:
    positions = [int(name) for name in nested if name.isdigit()]
    return [nested.get(str(position)) for position in range(max(positions, default=-1) + 1)]


def _elements(call: Call, role: Role) -> dict[str, Any]:
    return {value.name: _element(value) for value in call.of(role)}


def _element(value: Value) -> dict[str, Any]:
    statistics = value.statistics
    element: dict[str, Any] = {
        "type": "torch.Tensor",
        "dtype": f"torch.{value.dtype}",
        "shape": list(value.shape),
        "Max": statistics.max if statistics else None,
        "Min": statistics.min if statistics else None,
        "Mean": statistics.mean if statistics else None,
        "Norm": statistics.l2 if statistics else None,
        "requires_grad": value.role == "parameter",
    }
    if value.digest and value.digest.startswith("crc32:"):
        element["md5"] = value.digest.removeprefix("crc32:")
    return element


def _scalar(text: str) -> Any:
    try:
        content = ast.literal_eval(text)
    except (ValueError, SyntaxError):
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
