"""The outputs and floating-point work of each recorded op, which torch's profiler does not record.

Outputs come from running each combination of op and arguments once more on the meta device after
the recording: nothing is computed, and the recorded steps cost nothing extra. An observer in the
profiler would provide them as well, but makes a step a third to a half longer.
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
from jumar.profiling.reading.traces.kineto_types import DTYPES
from jumar.profiling.views.op_costs import cost, family
from jumar.training.profiling.layers import Event, start_of

_MOST_COMBINATIONS: Final = 20_000
_SPELT: Final = {"FLOAT": "float32", "DOUBLE": "float64", "BF16": "bfloat16"}
"""Names in msprof that are not torch's in capitals."""
_DTYPES: Final = {
    name: getattr(torch, _SPELT.get(word, word.lower()))
    for name, word in DTYPES.items()
    if not word.startswith(("COMPLEX", "FLOAT8"))
}
_WORDS: Final = {dtype: DTYPES[name] for name, dtype in _DTYPES.items()}
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
    """One row per CPU op: shapes and dtypes of its outputs, floating-point operations.

    Only convolutions and matrix products have operations. Where an op delegates to another one
    inside it, as `conv2d` does to `convolution`, the inner one has them, and the outer one has 0
    and no outputs; otherwise the same work would be counted at each level.
    """
    works: dict[str, _Work | None] = {}
    with_work: list[tuple[Event, _Work]] = []
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        for event in events:
            arguments = event.get("args", {})
            if event.get("cat") != "cpu_op" or not arguments.get("Input Dims"):
                continue
            key = json.dumps([event.get("name"), *_signature(arguments)])
            if key not in works:
                if len(works) >= _MOST_COMBINATIONS:
                    continue
                works[key] = _work(str(event.get("name", "")), *_signature(arguments))
            work = works[key]
            if work is not None:
                with_work.append((event, work))
    outer_ids = _outer([event for event, work in with_work if work.flops])
    rows = [
        (event["args"].get("External id"), None, None, 0)
        if id(event) in outer_ids
        else (event["args"].get("External id"), work.shapes, work.types, work.flops)
        for event, work in with_work
    ]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row", strict=False).unique(
        "correlation", keep="none"
    )


class _Work:
    """Outputs and operations of one combination of op and arguments."""

    def __init__(self, outputs: Sequence[Tensor], flops: int | None) -> None:
        self.shapes = ";".join(",".join(str(size) for size in output.shape) for output in outputs)
        self.types = ";".join(_WORDS.get(output.dtype, "") for output in outputs)
        self.flops = flops


def _signature(arguments: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return (
        arguments.get("Input Dims"),
        arguments.get("Input type"),
        arguments.get("Concrete Inputs"),
    )


def _work(name: str, dims: Any, types: Any, values: Any) -> _Work | None:
    """An op's outputs and operations; None if its arguments do not determine them."""
    packet = getattr(torch.ops.aten, name.removeprefix("aten::"), None)
    if not name.startswith("aten::") or packet is None:
        return None
    lengths = [len(part) if isinstance(part, list) else -1 for part in (dims, types, values)]
    if len(set(lengths)) > 1:
        # torch was told not to record the values of arguments.
        return None
    for overload in packet.overloads():
        schema = getattr(packet, overload)._schema
        if len(schema.arguments) != len(dims):
            continue
        arguments = _named_arguments(schema, dims, types, values)
        if arguments is None:
            continue
        outputs = _outputs(getattr(packet, overload), arguments)
        if outputs is not None:
            return _Work(outputs, _flops(name, arguments, outputs))
    return None


def _named_arguments(schema: Any, dims: Any, types: Any, values: Any) -> dict[str, Any] | None:
    """The arguments by name; None if the overload takes different ones."""
    arguments: dict[str, Any] = {}
    for argument, shape, kind, value in zip(schema.arguments, dims, types, values, strict=True):
        type_name = str(argument.type)
        is_tensor = type_name in ("Tensor", "Optional[Tensor]")
        if kind in _DTYPES:
            if not is_tensor or not isinstance(shape, list):
                return None
            arguments[argument.name] = torch.empty(shape, dtype=_DTYPES[kind], device="meta")
        elif value == "":
            if type_name == "Tensor" or kind == "TensorList":
                return None
            arguments[argument.name] = None
        elif is_tensor:
            return None
        elif any(word in type_name for word in _ENUMERATIONS):
            arguments[argument.name] = None
        elif argument.name == "dtype":
            arguments[argument.name] = _NUMBERED.get(_value(value))
        else:
            arguments[argument.name] = _value(value)
    return arguments


def _value(text: str) -> Any:
    """A number, boolean or list parsed from the profiler's text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def _outputs(overload: Any, arguments: Mapping[str, Any]) -> list[Tensor] | None:
    """The op's outputs for these arguments, as shapes and dtypes only."""
    if overload.name() == "aten::mkldnn_convolution":
        # It has no meta kernel.
        overload = torch.ops.aten.convolution.default
        arguments = {
            **{name: value for name, value in arguments.items() if name != "self"},
            "input": arguments["self"],
            "transposed": False,
            "output_padding": [0],
        }
    try:
        result = overload(**arguments)
    except Exception:
        # An op that cannot be called like this may raise anything.
        return None
    items = result if isinstance(result, (tuple, list)) else (result,)
    return [item for item in items if isinstance(item, Tensor)]


def _flops(name: str, arguments: Mapping[str, Any], outputs: Sequence[Tensor]) -> int | None:
    """Operations of a convolution or a matrix product; None for all other ops."""
    group = family(name)
    weight = arguments.get("weight")
    if group == "convolution" and isinstance(weight, Tensor) and weight.dim() >= 3:
        return _of_convolution(arguments, weight, outputs)
    if group != "matrix" or not outputs:
        return None
    tensors = [argument for argument in arguments.values() if isinstance(argument, Tensor)]
    shapes = ";".join(",".join(str(size) for size in argument.shape) for argument in tensors)
    # `addmm` has a bias before the two factors.
    if name.startswith(("aten::addm", "aten::badd")):
        shapes = shapes.partition(";")[2]
    result = ",".join(str(size) for size in outputs[0].shape)
    flops = cost(name, shapes, "FLOAT", None, result, "FLOAT").flops
    return round(flops) if flops is not None and math.isfinite(flops) else None


def _of_convolution(
    arguments: Mapping[str, Any], weight: Tensor, outputs: Sequence[Tensor]
) -> int | None:
    """Twice the elements of the larger feature map, times the weights applied to each."""
    side = arguments.get("self", arguments.get("input"))
    result = arguments.get("grad_output", outputs[0] if outputs else None)
    wide = side if arguments.get("transposed") else result
    if not isinstance(wide, Tensor):
        return None
    once = 2 * wide.numel() * weight.numel() // max(weight.shape[0], 1)
    mask = arguments.get("output_mask")
    # In the backward pass, the gradients of the input and of the weight take as much each.
    return once * sum(map(bool, mask[:2])) if isinstance(mask, list) else once


def _outer(events: Sequence[Event]) -> set[int]:
    """The events that contain another one on the same thread."""
    outer_ids: set[int] = set()
    open_: dict[object, list[tuple[int, Event]]] = {}
    spans = [(start_of(event), nanoseconds_of(event.get("dur")) or 0, event) for event in events]
    for start, duration, event in sorted(spans, key=lambda span: (span[0], -span[1])):
        enclosing = open_.setdefault((event.get("pid"), event.get("tid")), [])
        while enclosing and enclosing[-1][0] <= start:
            enclosing.pop()
        outer_ids.update(id(enclosing_event) for _, enclosing_event in enclosing)
        enclosing.append((start + duration, event))
    return outer_ids
