"""The CANN op that corresponds to an aten op."""

from functools import cache
from typing import Final

from jumar.precision.optypes import op_groups, types_of

_KNOWN: Final = {
    "_to_copy": "Cast",
    "add.Scalar": "Adds",
    "add.Tensor": "Add",
    "avg_pool2d": "AvgPool",
    "avg_pool3d": "AvgPool3D",
    "clone": "TensorMove",
    "copy": "TensorMove",
    "linalg_vector_norm": "LpNormV2",
    "pow.Tensor_Scalar": "Pow",
    "sum": "ReduceSum",
    "threshold_backward": "ReluGrad",
}
"""Ops for which the first CANN type in the table of op lists is another one, or missing."""


@cache
def cann_type(op: str) -> str:
    """Return the CANN op type that corresponds to an aten overload; empty if unknown.

    Args:
        op: As in op lists: `addmm`, `softmax.int`, `relu_`, `_softmax_backward_data`.
    """
    packet, dot, overload = op.partition(".")
    if packet.endswith("_"):
        return cann_type(f"{packet.rstrip('_')}{dot}{overload}")
    for name in (op, packet):
        if name in _KNOWN:
            return _KNOWN[name]
        types = types_of(name)
        if types:
            return types[0]
    stem, backward, _ = packet.partition("_backward")
    if not backward:
        return ""
    stems = {stem, stem.lstrip("_"), f"{stem}_forward", stem.removesuffix("_dense")}
    for group in op_groups():
        if group.backward and stems & {op_name.partition(".")[0] for op_name in group.ops}:
            return group.backward[0]
    return ""
