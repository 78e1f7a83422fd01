"""What each op of a recording gave and computed, which torch's profiler does not write.

Outputs come from running each combination of op and arguments once more on the meta device, after
the recording: no numbers are computed and the recorded steps cost nothing more. An observer in the
profiler would tell them as well, and makes a step a third to a half longer.
"""

import ast
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl
import torch
from torch import Tensor

from jumar.profiling.reading.exact import nanoseconds_of
from jumar.profiling.reading.traces.kineto_types import TYPES
from jumar.profiling.views.op_costs import cost, family
from jumar.training.profiling.layers import Event, start_of

_MOST_COMBINATIONS: Final = 20_000
_SPELT: Final = {"FLOAT": "float32", "DOUBLE": "float64", "BF16": "bfloat16"}
"""Words of msprof that are not torch's in capitals."""
_DTYPES: Final = {
    name: getattr(torch, _SPELT.get(word, word.lower()))
    for name, word in TYPES.items()
    if not word.startswith(("COMPLEX", "FLOAT8"))
}
_WORDS: Final = {dtype: TYPES[name] for name, dtype in _DTYPES.items()}
_NUMBERS: Final = {
    0: "UINT8",
    1: "INT8",
    2: "INT16",
    3: "INT32",
    4: "INT64",
    5: "FLOAT16",
    6: "FLOAT",
    7: "DOUBLE",
    11: "BOOL",
    15: "BF16",
}
"""How c10 numbers dtypes among the arguments of an op."""
_NUMBERED: Final = {
    number: dtype for number, word in _NUMBERS.items() for dtype in _WORDS if _WORDS[dtype] == word
}
_ENUMERATIONS: Final = ("Device", "Layout", "MemoryFormat", "Generator")

_SCHEMA: Final = {
    "correlation": pl.Int64,
    "output_shapes": pl.String,
    "output_types": pl.String,
    "flops": pl.Int64,
}


def work_of(events: Sequence[Event]) -> pl.DataFrame:
    """A row an op of the CPU: shapes and dtypes of its outputs, floating-point operations.

    Operations are those of convolutions and matrix products. Where an op leaves them to another
    within it, as `conv2d` does to `convolution`, the inner one has them, and the outer has 0 and no
    outputs: else the same work would be counted at each.
    """
    known: dict[str, _Work | None] = {}
    found: list[tuple[Event, _Work]] = []
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        for event in events:
            arguments = event.get("args", {})
            if event.get("cat") != "cpu_op" or not arguments.get("Input Dims"):
                continue
            key = json.dumps([event.get("name"), *_signature(arguments)])
            if key not in known:
                if len(known) >= _MOST_COMBINATIONS:
                    continue
                known[key] = _work(str(event.get("name", "")), *_signature(arguments))
            work = known[key]
            if work is not None:
                found.append((event, work))
    outer = _outer([event for event, work in found if work.flops])
    rows = [
        (event["args"].get("External id"), None, None, 0)
        if id(event) in outer
        else (event["args"].get("External id"), work.shapes, work.types, work.flops)
        for event, work in found
    ]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row", strict=False).unique(
        "correlation", keep="none"
    )


class _Work:
    """Outputs and operations of one combination of op and arguments."""

    def __init__(self, outputs: Sequence[Tensor], flops: int | None) -> None:
        self.shapes = ";".join(",".join(str(size) for size in one.shape) for one in outputs)
        self.types = ";".join(_WORDS.get(one.dtype, "") for one in outputs)
        self.flops = flops


def _signature(arguments: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return (
        arguments.get("Input Dims"),
        arguments.get("Input type"),
        arguments.get("Concrete Inputs"),
    )


def _work(name: str, dims: Any, types: Any, values: Any) -> _Work | None:
    """What an op gives and computes; None where its arguments do not tell it."""
    packet = getattr(torch.ops.aten, name.removeprefix("aten::"), None)
    if not name.startswith("aten::") or packet is None:
        return None
    told = [len(part) if isinstance(part, list) else -1 for part in (dims, types, values)]
    if len(set(told)) > 1:
        # Where torch was told not to record the values of arguments.
        return None
    for overload in packet.overloads():
        schema = getattr(packet, overload)._schema
        if len(schema.arguments) != len(dims):
            continue
        given = _given(schema, dims, types, values)
        if given is None:
            continue
        outputs = _outputs(getattr(packet, overload), given)
        if outputs is not None:
            return _Work(outputs, _flops(name, given, outputs))
    return None


def _given(schema: Any, dims: Any, types: Any, values: Any) -> dict[str, Any] | None:
    """The arguments by name; None where the overload takes others."""
    found: dict[str, Any] = {}
    for argument, shape, kind, value in zip(schema.arguments, dims, types, values, strict=True):
        wanted = str(argument.type)
        is_tensor = wanted in ("Tensor", "Optional[Tensor]")
        if kind in _DTYPES:
            if not is_tensor or not isinstance(shape, list):
                return None
            found[argument.name] = torch.empty(shape, dtype=_DTYPES[kind], device="meta")
        elif value == "":
            if wanted == "Tensor" or kind == "TensorList":
                return None
            found[argument.name] = None
        elif is_tensor:
            return None
        elif any(word in wanted for word in _ENUMERATIONS):
            found[argument.name] = None
        elif argument.name == "dtype":
            found[argument.name] = _NUMBERED.get(_value(value))
        else:
            found[argument.name] = _value(value)
    return found


def _value(text: str) -> Any:
    """A number, truth or list out of the profiler's text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def _outputs(overload: Any, given: Mapping[str, Any]) -> list[Tensor] | None:
    """What the op gives for such arguments, without computing it."""
    if overload.name() == "aten::mkldnn_convolution":
        # It has no kernel for shapes alone.
        overload = torch.ops.aten.convolution.default
        given = {
            **{name: value for name, value in given.items() if name != "self"},
            "input": given["self"],
            "transposed": False,
            "output_padding": [0],
        }
    try:
        result = overload(**given)
    except Exception:
        # By errors of any kind an op says that it cannot be asked like this.
        return None
    several = result if isinstance(result, (tuple, list)) else (result,)
    return [one for one in several if isinstance(one, Tensor)]


def _flops(name: str, given: Mapping[str, Any], outputs: Sequence[Tensor]) -> int | None:
    """Operations of a convolution or a matrix product; None for all other ops."""
    group = family(name)
    weight = given.get("weight")
    if group == "convolution" and isinstance(weight, Tensor) and weight.dim() >= 3:
        return _of_convolution(given, weight, outputs)
    if group != "matrix" or not outputs:
        return None
    tensors = [one for one in given.values() if isinstance(one, Tensor)]
    shapes = ";".join(",".join(str(size) for size in one.shape) for one in tensors)
    # `addmm` has a bias before the two factors.
    if name.startswith(("aten::addm", "aten::badd")):
        shapes = shapes.partition(";")[2]
    result = ",".join(str(size) for size in outputs[0].shape)
    found = cost(name, shapes, "FLOAT", None, result, "FLOAT").flops
    return round(found) if found is not None and math.isfinite(found) else None


def _of_convolution(
    given: Mapping[str, Any], weight: Tensor, outputs: Sequence[Tensor]
) -> int | None:
    """Twice each element of the map with more of them, times the weights that it meets."""
    side = given.get("self", given.get("input"))
    result = given.get("grad_output", outputs[0] if outputs else None)
    wide = side if given.get("transposed") else result
    if not isinstance(wide, Tensor):
        return None
    once = 2 * wide.numel() * weight.numel() // max(weight.shape[0], 1)
    asked = given.get("output_mask")
    # Backward, the gradients of the input and of the weight take as much each.
    return once * sum(map(bool, asked[:2])) if isinstance(asked, list) else once


def _outer(events: Sequence[Event]) -> set[int]:
    """Those of the events within which another of them lies on the same thread."""
    found: set[int] = set()
    open_: dict[object, list[tuple[int, Event]]] = {}
    spans = [(start_of(event), nanoseconds_of(event.get("dur")) or 0, event) for event in events]
    for start, duration, event in sorted(spans, key=lambda span: (span[0], -span[1])):
        above = open_.setdefault((event.get("pid"), event.get("tid")), [])
        while above and above[-1][0] <= start:
            above.pop()
        found.update(id(one) for _, one in above)
        above.append((start + duration, event))
    return found
