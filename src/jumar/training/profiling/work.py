"""Outputs and floating-point operations of ops, which torch's profiler does not record.

To find the outputs, each combination of op and arguments is run once on the meta device after the
recording: nothing is computed, and the recorded steps take no longer. An observer in the profiler
would record outputs as well, but it would make a step a third to a half longer.
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

_MAX_COMBINATIONS: Final = 20_000
_TORCH_NAMES: Final = {"FLOAT": "float32", "DOUBLE": "float64", "BF16": "bfloat16"}
"""torch's names of dtypes that differ from msprof's in more than case."""
_DTYPES: Final = {
    name: getattr(torch, _TORCH_NAMES.get(msprof_name, msprof_name.lower()))
    for name, msprof_name in DTYPES.items()
    if not msprof_name.startswith(("COMPLEX", "FLOAT8"))
}
_MSPROF_NAMES: Final = {dtype: DTYPES[name] for name, dtype in _DTYPES.items()}
_C10_DTYPES: Final = {
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
"""c10's numbers of dtypes, as they occur in the arguments of ops."""
_DTYPE_BY_NUMBER: Final = {
    number: dtype
    for number, c10_name in _C10_DTYPES.items()
    for dtype, msprof_name in _MSPROF_NAMES.items()
    if msprof_name == c10_name
}
_ENUMERATIONS: Final = ("Device", "Layout", "MemoryFormat", "Generator")

_SCHEMA: Final = {
    "correlation": pl.Int64,
    "output_shapes": pl.String,
    "output_types": pl.String,
    "flops": pl.Int64,
}


def work_of(events: Sequence[Event]) -> pl.DataFrame:
    """A table with the outputs' shapes and dtypes and the floating-point operations of each CPU op.

    Operations are counted only for convolutions and matrix products. If an op delegates to another,
    as `conv2d` does to `convolution`, only the inner one has operations and outputs; otherwise the
    work would be counted at each level.
    """
    work_by_key: dict[str, _Work | None] = {}
    with_work: list[tuple[Event, _Work]] = []
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        for event in events:
            arguments = event.get("args", {})
            if event.get("cat") != "cpu_op" or not arguments.get("Input Dims"):
                continue
            key = json.dumps([event.get("name"), *_signature(arguments)])
            if key not in work_by_key:
                if len(work_by_key) >= _MAX_COMBINATIONS:
                    continue
                work_by_key[key] = _work(str(event.get("name", "")), *_signature(arguments))
            work = work_by_key[key]
            if work is not None:
                with_work.append((event, work))
    outer_ids = _enclosing([event for event, work in with_work if work.flops])
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
        self.shapes = _shapes_text(outputs)
        self.types = ";".join(_MSPROF_NAMES.get(output.dtype, "") for output in outputs)
        self.flops = flops


def _shapes_text(tensors: Sequence[Tensor]) -> str:
    """The shapes of tensors in the notation of an op table."""
    return ";".join(",".join(map(str, tensor.shape)) for tensor in tensors)


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
        # The arguments' values were not recorded.
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
            arguments[argument.name] = _DTYPE_BY_NUMBER.get(_value(value))
        else:
            arguments[argument.name] = _value(value)
    return arguments


def _value(text: str) -> Any:
    """The number, boolean or list in the profiler's text; other text is returned unchanged."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def _outputs(overload: Any, arguments: Mapping[str, Any]) -> list[Tensor] | None:
    """The op's outputs for these arguments on the meta device; None if the call fails."""
    if overload.name() == "aten::mkldnn_convolution":
        # This op has no meta kernel.
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
        # A call with unsuitable arguments may raise anything.
        return None
    items = result if isinstance(result, (tuple, list)) else (result,)
    return [item for item in items if isinstance(item, Tensor)]


def _flops(name: str, arguments: Mapping[str, Any], outputs: Sequence[Tensor]) -> int | None:
    """Operations of a convolution or matrix product; None for other ops."""
    group = family(name)
    weight = arguments.get("weight")
    if group == "convolution" and isinstance(weight, Tensor) and weight.dim() >= 3:
        return _of_convolution(arguments, weight, outputs)
    if group != "matrix" or not outputs:
        return None
    tensors = [argument for argument in arguments.values() if isinstance(argument, Tensor)]
    # `addmm` has a bias before the two factors.
    has_bias = name.startswith(("aten::addm", "aten::badd"))
    shapes = _shapes_text(tensors[1:] if has_bias else tensors)
    flops = cost(name, shapes, "FLOAT", None, _shapes_text(outputs[:1]), "FLOAT").flops
    return round(flops) if flops is not None and math.isfinite(flops) else None


def _of_convolution(
    arguments: Mapping[str, Any], weight: Tensor, outputs: Sequence[Tensor]
) -> int | None:
    """Twice the elements of the larger feature map, times the weights applied to each element."""
    input_map = arguments.get("self", arguments.get("input"))
    output_map = arguments.get("grad_output", outputs[0] if outputs else None)
    larger_map = input_map if arguments.get("transposed") else output_map
    if not isinstance(larger_map, Tensor):
        return None
    flops = 2 * larger_map.numel() * weight.numel() // max(weight.shape[0], 1)
    mask = arguments.get("output_mask")
    # In the backward pass, the gradients of input and weight take as many operations each.
    return flops * sum(map(bool, mask[:2])) if isinstance(mask, list) else flops


def _enclosing(events: Sequence[Event]) -> set[int]:
    """The events that contain another one on the same thread."""
    outer_ids: set[int] = set()
    open_by_thread: dict[object, list[tuple[int, Event]]] = {}
    spans = [(start_of(event), nanoseconds_of(event.get("dur")) or 0, event) for event in events]
    for start, duration, event in sorted(spans, key=lambda span: (span[0], -span[1])):
        stack = open_by_thread.setdefault((event.get("pid"), event.get("tid")), [])
        while stack and stack[-1][0] <= start:
            stack.pop()
        outer_ids.update(id(enclosing_event) for _, enclosing_event in stack)
        stack.append((start + duration, event))
    return outer_ids
