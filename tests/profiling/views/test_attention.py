"""The work of fused attention, by the lengths of its tensors."""

import pytest

from jumar.profiling.views.attention import attention
from jumar.profiling.views.shapes import Shape

# Two samples, three heads of 16 numbers, 10 queries and 7 keys; operations for each of these pairs
# of query and key and number: two products forward, and five backward, each of them twice.
_FORWARD = 4 * (2 * 3 * 10 * 16) * 7
_BACKWARD = 10 * (2 * 3 * 10 * 16) * 7
_HEADS: list[Shape] = [(2, 3, 10, 16), (2, 3, 7, 16), (2, 3, 7, 16)]
_LENGTH: list[Shape] = [(2, 10, 3, 16), (2, 7, 3, 16), (2, 7, 3, 16)]
_SUMS: Shape = (2, 3, 10, 8)


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "flops"),
    [
        ("_scaled_dot_product_fused_attention", _HEADS, [], _FORWARD),
        ("_flash_attention_forward", _LENGTH, [], _FORWARD),
        ("_flash_attention_backward", [_LENGTH[0], *_LENGTH], [], _BACKWARD),
        ("_scaled_dot_product_flash_attention_backward", [_HEADS[0], *_HEADS], [], _BACKWARD),
        ("_flash_attention_forward", _LENGTH[:1], [], None),
        ("_flash_attention_forward", [_LENGTH[0], (2, 7, 48)], [], None),
        ("_flash_attention_forward", [(2, 10, 48), _LENGTH[1]], [], None),
        ("FlashAttentionScore", _HEADS, [_SUMS], _FORWARD),
        ("FlashAttentionScore", _LENGTH, [_SUMS], _FORWARD),
        ("FlashAttentionScore", [(2, 10, 48), (2, 7, 48)], [_SUMS], _FORWARD),
        ("FlashAttentionScore", [(10, 2, 48), (7, 2, 48)], [_SUMS], _FORWARD),
        ("FlashAttentionScoreGrad", [*_LENGTH, _LENGTH[0], (), _SUMS], [], _BACKWARD),
        # Another tensor of four axes is no sum, nor is one among the first three.
        ("FlashAttentionScore", [(10, 2, 48), (7, 2, 48)], [(2, 3, 10, 9), _SUMS], _FORWARD),
        ("FlashAttentionScore", [(2, 10, 48), (2, 7, 48)], [(2, 3, 8), _SUMS], _FORWARD),
        # Without sums the longer of the axes counts: of (10, 2) and (7, 2) that of 7.
        ("FlashAttentionScore", [(10, 2, 48), (7, 2, 48)], [], _FORWARD),
        ("FlashAttentionScore", _HEADS, [], _FORWARD),
        ("FlashAttentionScore", _LENGTH, [], _FORWARD),
        ("FlashAttentionScore", [(10, 2, 48), (9, 12, 48)], [], 4 * 960 * 12),
        # Values of heads of 8 numbers are no sums.
        ("FlashAttentionScore", [(2, 10, 3, 8), *[(2, 7, 3, 8)] * 2], [], _FORWARD // 2),
        # Sums of a length that no axis of the queries has.
        ("FlashAttentionScore", [(10, 2, 48), (7, 2, 48)], [(2, 3, 99, 8)], _FORWARD),
        ("FlashAttentionScore", [(20, 48), (14, 48)], [_SUMS], None),
        ("FlashAttentionScore", [(2, 10, 48), (2, 3, 7, 16)], [_SUMS], None),
        ("FlashAttentionScore", [(2, 10, 48)], [_SUMS], None),
        ("FusedInferAttentionScore", _HEADS, [_SUMS], None),
        ("IncreFlashAttention", _HEADS, [_SUMS], None),
        ("PromptFlashAttention", _HEADS, [_SUMS], None),
        ("PagedAttentionFlashAttention", _HEADS, [_SUMS], None),
        ("decode_flash_attention", _HEADS, [_SUMS], None),
    ],
)
def test_each_query_is_multiplied_by_each_key(
    kind: str, inputs: list[Shape], outputs: list[Shape], flops: int | None
) -> None:
    assert attention(kind, inputs, outputs) == flops


def test_compressed_mask_is_causal_only_for_longer_sequences() -> None:
    def work(length: int, *more: Shape) -> float:
        inputs: list[Shape] = [(1, length, 4), (1, length, 4), (1, length, 4), *more]
        found = attention("FlashAttentionScore", inputs, [(1, 1, length, 8)])
        assert found is not None
        return found / (4 * length * 4 * length)

    assert work(2049, (2048, 2048)) == 0.5
    assert work(2048, (2048, 2048)) == 1.0
    assert work(2049) == 1.0
    assert work(2049, (2048, 2047)) == 1.0
