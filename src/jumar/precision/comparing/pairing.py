"""Pair the calls of two dumps."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from jumar.precision.dumps.dump import Call, Dump, Value

_CANONICAL: Final = {
    "addmm": "linear",
    "mm": "linear",
    "matmul": "bmm",
    "convolution": "conv",
    "conv1d": "conv",
    "conv2d": "conv",
    "conv3d": "conv",
    **dict.fromkeys((f"conv_transpose{axes}d" for axes in (1, 2, 3)), "conv_transpose"),
    **dict.fromkeys((f"convtranspose{axes}d" for axes in (1, 2, 3)), "conv_transpose"),
    "softmaxv2": "softmax",
    "matmulv2": "linear",
    "layernorm": "layer_norm",
    "batchnorm1d": "batch_norm",
    "batchnorm2d": "batch_norm",
    "batchnorm3d": "batch_norm",
    "groupnorm": "group_norm",
    "logsoftmax": "log_softmax",
    "native_layer_norm": "layer_norm",
    "native_group_norm": "group_norm",
    "native_batch_norm": "batch_norm",
    "cudnn_batch_norm": "batch_norm",
    "batch_norm_with_update": "batch_norm",
    "native_dropout": "dropout",
    "max_pool2d_with_indices": "max_pool2d",
    "rmsnorm": "rms_norm",
    "npu_rms_norm": "rms_norm",
    "fusedrmsnorm": "rms_norm",
    "logical_or": "or",
    "npu_fusion_attention": "flash_attention",
    "flash_attention_score": "flash_attention",
    "truediv": "div",
}
"""Canonical names of computations that different tools name differently."""
_POSITIONS: Final = {
    "addmm": {"0": "2", "1": "0", "2": "1"},
    "embedding": {"0": "1", "1": "0"},
    "native_batch_norm": {"1": "3", "2": "4", "3": "1", "4": "2"},
}
"""Positions of an aten op's operands in the equivalent function."""


class Pair(NamedTuple):
    """A call and its partner."""

    before: Call
    after: Call


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """The pairing of two dumps.

    Attributes:
        pairs: The pairs in the order of execution of the second dump.
        only_before: Calls of the first dump without a partner.
        only_after: Calls of the second dump without a partner.
    """

    pairs: Sequence[Pair]
    only_before: Sequence[Call]
    only_after: Sequence[Call]


def pair_calls(before: Dump, after: Dump) -> Pairing:
    """Pair the calls of two dumps of one step, first by their full identity.

    The rest are paired by canonical names of their computations and by paths without the level that
    DDP adds; then, if a dump has no layers (msprobe's level L1) or no ops (the TensorFlow adapter's
    files), by the op or the layer alone.
    """
    positions = {id(call): position for position, call in enumerate(after.calls)}
    left, right = list(before.calls), list(after.calls)
    pairs: list[Pair] = []
    keys: list[Callable[[Call], Hashable]] = [
        lambda call: (call.kind, call.op, call.layer, call.phase),
        lambda call: (call.kind, _computed(call), _path(call.layer), _phase(call)),
    ]
    if not (_has_layers(before) and _has_layers(after)):
        keys.append(lambda call: (call.kind, _computed(call), call.phase))
    if not (_has_ops(before) and _has_ops(after)):
        keys.append(lambda call: (_path(call.layer), call.phase))
    for key in keys:
        matched = _matched(left, right, key)
        pairs += matched
        matched_ids = {id(call) for pair in matched for call in pair}
        left = [call for call in left if id(call) not in matched_ids]
        right = [call for call in right if id(call) not in matched_ids]
    pairs.sort(key=lambda pair: positions[id(pair.after)])
    return Pairing(pairs=pairs, only_before=left, only_after=right)


def pair_values(pair: Pair) -> list[tuple[Value, Value]]:
    """Pair the values of both calls: arguments, outputs and gradients.

    They are paired by role and name, or, if the names differ, by role and number of elements.
    """
    before = pair.before
    candidates = {(value.role, _position(before, value)): value for value in before.values}
    pairs: list[tuple[Value, Value]] = []
    unmatched: list[Value] = []
    for value in pair.after.values:
        key = value.role, _position(pair.after, value)
        partner = candidates.get(key)
        if partner is not None and math.prod(partner.shape) == math.prod(value.shape):
            pairs.append((candidates.pop(key), value))
        else:
            unmatched.append(value)
    for value in unmatched:
        alike = [key for key, candidate in candidates.items() if _is_alike(candidate, value)]
        if len(alike) == 1:
            pairs.append((candidates.pop(alike[0]), value))
    return pairs


def canonical(op: str) -> str:
    """Return the canonical name of a computation, regardless of the tool or namespace.

    `aten._softmax.default`, `Functional.softmax` and `SoftmaxV2` are `softmax`; `__add__`, `add_`
    and `aten.add.Tensor` are `add`.
    """
    parts = op.split(".")
    name = parts[1] if len(parts) > 1 else parts[0]
    if parts[0] == "Primitive":
        name = parts[-1]
    name = name.strip("_").lower()
    return _CANONICAL.get(name, name)


def _matched(
    left: Sequence[Call], right: Sequence[Call], key: Callable[[Call], Hashable]
) -> list[Pair]:
    groups: defaultdict[Hashable, tuple[list[Call], list[Call]]] = defaultdict(lambda: ([], []))
    for side, calls in enumerate((left, right)):
        for call in calls:
            groups[key(call)][side].append(call)
    pairs: list[Pair] = []
    for first, second in groups.values():
        if len(first) == len(second):
            by_number = [sorted(group, key=lambda call: call.number) for group in (first, second)]
            is_exact = {call.key for call in first} == {call.key for call in second}
            pairs += map(Pair, *(by_number if is_exact else (first, second)))
        elif first and second:
            pairs += _aligned(first, second)
    return pairs


def _aligned(first: Sequence[Call], second: Sequence[Call]) -> list[Pair]:
    """Pair unequal numbers of calls of the same op in order, if their shapes are equal."""
    matcher = SequenceMatcher(None, [*map(_shapes, first)], [*map(_shapes, second)], autojunk=False)
    return [
        Pair(first[block.a + offset], second[block.b + offset])
        for block in matcher.get_matching_blocks()
        for offset in range(block.size)
    ]


def _shapes(call: Call) -> Hashable:
    return tuple((value.role, value.name, value.shape) for value in call.values)


def _computed(call: Call) -> str:
    return call.op.rpartition(".")[2] if call.kind == "parameter" else canonical(call.op)


def _position(call: Call, value: Value) -> str:
    """Return the name of a value; for an aten op, its position in the equivalent function."""
    family, _, overload = call.op.removeprefix("aten.").partition(".")
    if not call.op.startswith("aten.") or value.role != "input" or not overload:
        return value.name
    return _POSITIONS.get(family, {}).get(value.name, value.name)


def _phase(call: Call) -> str:
    """Return the phase; empty for parameters, whose gradients msprobe assigns to backward."""
    return "" if call.kind == "parameter" else call.phase


def _path(layer: str) -> str:
    return ".".join(part for part in layer.split(".") if part != "module")


def _has_layers(dump: Dump) -> bool:
    return any(call.layer for call in dump.calls if call.kind == "op")


def _has_ops(dump: Dump) -> bool:
    return any(call.op for call in dump.calls)


def _is_alike(first: Value, second: Value) -> bool:
    return (
        first.role == second.role
        and math.prod(first.shape) == math.prod(second.shape)
        and _is_float(first) == _is_float(second)
    )


def _is_float(value: Value) -> bool:
    return re.search(r"float|hif", value.dtype) is not None
