"""Floating-point operations of fused attention, whose layout follows from name or outputs only."""

import math

from jumar.profiling.views.shapes import Shape

NAMES = (
    *("flashattention", "flash_attention", "efficient_attention", "cudnn_attention"),
    *("scaled_dot_product", "fused_attention", "fusedinferattention"),
)
"""Parts of the types of fused attention, in small letters."""

_CACHED = ("infer", "incre", "prompt", "paged", "decode")
"""Ops that read a cache: how much of it is filled, shapes do not tell."""

_FORWARD = 4.0
"""Operations for each element of the queries and each key: scores, and their sum of values."""

_BACKWARD = 10.0
"""The same backward: the scores again, and the gradients of both products to both sides."""

_COMPRESSED = (2048, 2048)
"""The mask of Ascend's causal modes, whatever the length of the sequence."""


def attention(kind: str, inputs: list[Shape], outputs: list[Shape]) -> float | None:
    """Operations of an attention op, without masked ones; None if the shapes are insufficient.

    Args:
        kind: The op's type, without its `aten::`.
        inputs: Shapes of all inputs in order, empty ones included.
        outputs: Shapes of the outputs, where the capture knows them.
    """
    plain = kind.lower().lstrip("_")
    if any(word in plain for word in _CACHED):
        return None
    backward = "backward" in plain or plain.endswith("grad")
    if "_" in plain:
        # In torch the gradient of the result comes first, on Ascend after the values.
        inputs = inputs[1:] if backward else inputs
        keys = _keys_of_torch(plain, inputs)
        share = 1.0
    else:
        keys = _keys_of_ascend(inputs, [*outputs, *inputs[3:]])
        # Causal, if its mask is kept in this form.
        share = 0.5 if _COMPRESSED in inputs and (keys or 0) > _COMPRESSED[0] else 1.0
    if keys is None:
        return None
    return share * (_BACKWARD if backward else _FORWARD) * math.prod(inputs[0]) * keys


def _keys_of_torch(plain: str, inputs: list[Shape]) -> int | None:
    """The number of keys: functions take (batch, head, length, size), kernels (…, length, head)."""
    if len(inputs) < 2 or len(inputs[0]) != 4 or len(inputs[1]) != 4:
        return None
    return inputs[1][2] if plain.startswith("scaled_dot_product") else inputs[1][1]


def _keys_of_ascend(inputs: list[Shape], others: list[Shape]) -> int | None:
    """The number of keys, on the axis that holds the queries' length in the softmax sums.

    `FlashAttentionScore` takes any layout (BSH, SBH, BNSD, BSND) without a word of it, but gives
    sums (batch, head, length, 8). Where these do not decide, the longer of the two axes is taken:
    too much work is less head-room, and no false finding.
    """
    if len(inputs) < 2 or len(inputs[0]) not in (3, 4) or len(inputs[1]) != len(inputs[0]):
        return None
    queries, keys = inputs[0], inputs[1]
    axes = (0, 1) if len(queries) == 3 else (1, 2)
    sums = next((shape for shape in others if len(shape) == 4 and shape[3] == 8), None)
    if sums is not None:
        axes = tuple(axis for axis in axes if queries[axis] == sums[2]) or axes
    return max(keys[axis] for axis in axes)
