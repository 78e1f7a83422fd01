"""Floating-point operations and bytes of an op, from the shapes and dtypes of its tensors."""

import math
from typing import NamedTuple

from jumar.profiling.views.attention import NAMES, attention
from jumar.profiling.views.lookups import Touched, is_lookup, touched
from jumar.profiling.views.shapes import Shape, shapes_of, volume

_BYTES = {
    "DOUBLE": 8,
    "INT64": 8,
    "UINT64": 8,
    "COMPLEX64": 8,
    "COMPLEX128": 16,
    "FLOAT": 4,
    "FLOAT32": 4,
    "INT32": 4,
    "UINT32": 4,
    "FLOAT16": 2,
    "BF16": 2,
    "BFLOAT16": 2,
    "INT16": 2,
    "UINT16": 2,
    "INT8": 1,
    "UINT8": 1,
    "BOOL": 1,
}
_MATRIX = (
    "matmul",
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "linear",
    "batchmatmul",
    "gemm",
    "grouped_matmul",
    "addmv",
    "mv",
)
_ADDING = ("addmm", "baddbmm", "addmv")
"""Matrix products whose first input is added to the result."""
_CONVOLUTION = ("conv", "convolution", "depthwiseconv", "deconv")


class Cost(NamedTuple):
    """The minimum work of an op.

    `flops` is None if the shapes are insufficient, as for a convolution without outputs; `cube` is
    true if the matrix unit can do the work.
    """

    flops: float | None
    bytes: float | None
    cube: bool
    dtype: str


def dtypes_of(text: str | None) -> list[str]:
    """A list of dtypes such as `FLOAT;DT_BF16`, without `DT_`."""
    return [part.strip().upper().removeprefix("DT_") for part in (text or "").split(";")]


def _bytes(shapes: list[Shape], types: list[str]) -> float:
    """Total bytes of tensors; a missing dtype is taken from the preceding tensor."""
    total, size = 0.0, 4
    for index, shape in enumerate(shapes):
        if index < len(types):
            size = _BYTES.get(types[index], size)
        total += volume(shape) * size
    return total


def family(kind: str) -> str:
    """`matrix`, `convolution`, `attention`, or an empty string, by the type of the op."""
    bare_type = kind.lower().removeprefix("aten::").lstrip("_")
    if "::" in bare_type:
        return ""
    if any(word in bare_type for word in NAMES):
        return "attention"
    if any(bare_type.startswith(word) for word in _CONVOLUTION) or "convolution" in bare_type:
        return "convolution"
    if bare_type in _MATRIX or "matmul" in bare_type or "gemm" in bare_type:
        return "matrix"
    return ""


def cost(
    kind: str | None,
    input_shapes: str | None,
    input_types: str | None,
    input_formats: str | None,
    output_shapes: str | None,
    output_types: str | None,
) -> Cost:
    """Operations and bytes of one op."""
    inputs, outputs = shapes_of(input_shapes), shapes_of(output_shapes)
    types = dtypes_of(input_types)
    tensors = [shape for shape in inputs if shape]
    # How an op of a custom library uses its inputs is unknown: it may read only a few rows of a
    # large table.
    is_custom = "::" in (kind or "").removeprefix("aten::")
    if is_custom or (not tensors and not any(outputs)):
        return Cost(None, None, False, types[0])
    bare_type = (kind or "").lower().removeprefix("aten::")
    if is_lookup(bare_type):
        return _lookup(touched(bare_type, inputs, outputs), types, dtypes_of(output_types))
    group = family(kind or "")
    flops: float | None
    if group == "matrix":
        has_addend = bare_type in _ADDING and len(tensors) > 2
        flops = _matrix(tensors[1:] if has_addend else tensors, outputs, dtypes_of(input_formats))
    elif group == "convolution":
        flops = _convolution((kind or "").lower(), tensors, outputs)
    elif group == "attention":
        flops = attention((kind or "").removeprefix("aten::"), inputs, outputs)
    else:
        flops = float(max((volume(shape) for shape in [*tensors, *outputs]), default=0))
    moved = _bytes(inputs, types)
    # Kineto records no outputs; most ops write as many bytes as their largest input has.
    moved += (
        _bytes(outputs, dtypes_of(output_types))
        if any(outputs)
        else max((_bytes([shape], types[:1]) for shape in tensors), default=0.0)
    )
    return Cost(flops, moved, bool(group), types[0])


def _lookup(part: Touched | None, types: list[str], output_types: list[str]) -> Cost:
    """The cost of a gather or scatter: moving the touched parts, and one operation per element."""
    if part is None:
        return Cost(None, None, False, types[0])
    written = output_types if output_types != [""] else types[:1]
    moved = _bytes(part.inputs, types) + _bytes([part.output], written)
    return Cost(float(volume(part.output)), moved, False, types[0])


def _matrix(inputs: list[Shape], outputs: list[Shape], formats: list[str]) -> float | None:
    """2 m n k, from the volumes of all three matrices: m k * k n * m n = (m n k)^2."""
    if len(inputs) < 2:
        return None
    first, second = inputs[0], inputs[1]
    blocks = 4 if "FRACTAL_NZ" in formats else 2
    batch = math.prod(second[:-blocks]) if len(second) > blocks else 1
    if outputs and outputs[0]:
        product = float(volume(first)) * volume(second) * volume(outputs[0])
        return 2 * math.sqrt(product / batch) if batch else None
    inner = first[-1]
    return 2.0 * volume(first) * volume(second) / max(inner * batch, 1) if inner else None


def _convolution(kind: str, inputs: list[Shape], outputs: list[Shape]) -> float | None:
    """Twice the elements of the larger feature map, times the weights of an output channel."""
    shapes = [shape for shape in inputs if len(shape) >= 3]
    if not outputs or not outputs[0]:
        return None
    if "backpropfilter" in kind or "filterbackprop" in kind or "backward_filter" in kind:
        return 2.0 * volume(shapes[-1]) * _per_channel(outputs[0]) if shapes else None
    if len(shapes) < 2:
        return None
    if "backpropinput" in kind or "inputbackprop" in kind:
        return 2.0 * volume(shapes[-1]) * _per_channel(shapes[0])
    if "backward" in kind:
        return 4.0 * volume(shapes[0]) * _per_channel(shapes[2]) if len(shapes) > 2 else None
    return 2.0 * volume(outputs[0]) * _per_channel(shapes[1])


def _per_channel(weight: Shape) -> float:
    """Weights per output channel in OIHW, or in FRACTAL_Z, whose middle axes are channels."""
    blocked = len(weight) == 4 and weight[2] == 16 and weight[3] in (8, 16, 32)
    channels = weight[1] * weight[2] if blocked else weight[0]
    return volume(weight) / max(channels, 1)
