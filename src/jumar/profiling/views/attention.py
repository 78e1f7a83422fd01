"""Floating-point operations of fused attention, whose layout is known only from name or outputs."""

import math

from jumar.profiling.views.shapes import Shape

NAMES = (
    *("flashattention", "flash_attention", "efficient_attention", "cudnn_attention"),
    *("scaled_dot_product", "fused_attention", "fusedinferattention"),
)
"""Parts of the type names of fused attention, in lower case."""

_CACHED = ("infer", "incre", "prompt", "paged", "decode")
"""Ops that read a cache; shapes do not show how much of it is filled."""

_FORWARD = 4.0
"""Operations per element of the queries and per key: scores, and weighted sum of values."""

_BACKWARD = 10.0
"""The same in the backward pass: the scores again, and the gradients of all four factors."""

_COMPRESSED = (2048, 2048)
"""Shape of the mask in Ascend's causal modes, for any sequence length."""


def attention(kind: str, inputs: list[Shape], outputs: list[Shape]) -> float | None:
    """Operations of an attention op as if unmasked; None if the shapes are insufficient.

    Args:
        kind: The op type, without `aten::`.
        inputs: Shapes of all inputs in order, empty ones included.
        outputs: Shapes of the outputs, if known.
    """
    bare_type = kind.lower().lstrip("_")
    if any(word in bare_type for word in _CACHED):
        return None
    backward = "backward" in bare_type or bare_type.endswith("grad")
    if "_" in bare_type:
        # The gradient of the output is the first input in torch, and follows the values on Ascend.
        inputs = inputs[1:] if backward else inputs
        keys = _keys_of_torch(bare_type, inputs)
        share = 1.0
    else:
        keys = _keys_of_ascend(inputs, [*outputs, *inputs[3:]])
        # The compressed mask implies causal attention.
        share = 0.5 if _COMPRESSED in inputs and (keys or 0) > _COMPRESSED[0] else 1.0
    if keys is None:
        return None
    return share * (_BACKWARD if backward else _FORWARD) * math.prod(inputs[0]) * keys


def _keys_of_torch(bare_type: str, inputs: list[Shape]) -> int | None:
    """The number of keys: axis 2 in functions (batch, head, length, size), axis 1 in kernels."""
    if len(inputs) < 2 or len(inputs[0]) != 4 or len(inputs[1]) != 4:
        return None
    return inputs[1][2] if bare_type.startswith("scaled_dot_product") else inputs[1][1]


def _keys_of_ascend(inputs: list[Shape], others: list[Shape]) -> int | None:
    """The number of keys, on the axis with the queries' length in the softmax sums.

    `FlashAttentionScore` accepts any layout (BSH, SBH, BNSD, BSND) without recording it, but its
    softmax sums are (batch, head, length, 8). If several axes are possible, the longer one is used:
    overestimated work means less headroom, not a false finding.
    """
    if len(inputs) < 2 or len(inputs[0]) not in (3, 4) or len(inputs[1]) != len(inputs[0]):
        return None
    queries, keys = inputs[0], inputs[1]
    axes = (0, 1) if len(queries) == 3 else (1, 2)
    sums = next((shape for shape in others if len(shape) == 4 and shape[3] == 8), None)
    if sums is not None:
        axes = tuple(axis for axis in axes if queries[axis] == sums[2]) or axes
    return max(keys[axis] for axis in axes)
