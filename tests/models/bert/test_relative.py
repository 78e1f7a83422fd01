"""NEZHA's relative positions against their formula in plain loops."""

import math

import numpy as np
import pytest
import torch

from jumar.models.bert import relative
from jumar.models.bert.attention import SelfAttention
from jumar.models.bert.packing import packing_of
from jumar.models.bert.relative import RelativePositions, relative_positions, relative_table

LENGTH, SIZE = 68, 6


def row_of(distance: int) -> np.ndarray:
    """R of a distance: sines at even columns, cosines at odd ones."""
    clipped = max(-64, min(64, distance)) + 64
    angles = [clipped / 10000 ** (2 * (column // 2) / SIZE) for column in range(SIZE)]
    return np.array([(math.sin, math.cos)[n % 2](angle) for n, angle in enumerate(angles)])


ROWS = np.array([[row_of(key - query) for key in range(LENGTH)] for query in range(LENGTH)])


def test_table_has_a_row_per_clipped_distance() -> None:
    table = relative_table(SIZE, torch.device("cpu"))
    assert (tuple(table.shape), table.dtype) == ((129, SIZE), torch.float32)
    expected = [row_of(distance) for distance in range(-64, 65)]
    np.testing.assert_allclose(table.numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("dense_up_to", [LENGTH, LENGTH - 1])
def test_both_implementations_match_the_formula(
    dense_up_to: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relative, "DENSE_UP_TO", dense_up_to)
    terms = RelativePositions(LENGTH, SIZE, torch.device("cpu"))
    random = torch.Generator().manual_seed(1)
    query = torch.randn(2, 3, LENGTH, SIZE, generator=random)
    shares = torch.rand(2, 3, LENGTH, LENGTH, generator=random)
    scores = np.einsum("shid,ijd->shij", query.double().numpy(), ROWS)
    np.testing.assert_allclose(terms.scores(query).numpy(), scores, atol=1e-4)
    outputs = np.einsum("shij,ijd->shid", shares.double().numpy(), ROWS)
    np.testing.assert_allclose(terms.outputs(shares).numpy(), outputs, atol=1e-4)


def test_terms_of_a_length_are_computed_once() -> None:
    device = torch.device("cpu")
    assert relative_positions(5, 4, device) is relative_positions(5, 4, device)
    assert relative_positions(5, 4, device) is not relative_positions(6, 4, device)


@pytest.mark.parametrize("is_relative", [True, False])
@pytest.mark.parametrize("lengths", [(5, 5), (5, 3)])
def test_attention_matches_the_papers_formula(is_relative: bool, lengths: tuple[int, int]) -> None:
    torch.manual_seed(2)
    heads, length = 2, 5
    layer = SelfAttention(heads * SIZE, heads, dropout=0.0, relative=is_relative).double()
    mask = torch.arange(length)[None, :] < torch.tensor(lengths)[:, None]
    packing = packing_of(mask)
    x = torch.randn(2, length, heads * SIZE, dtype=torch.float64)
    with torch.no_grad():
        result = packing.unpack(layer(packing.pack(x), packing)).numpy()
        query, key, value = (
            part(x).view(2, length, heads, SIZE).numpy()
            for part in (layer.query, layer.key, layer.value)
        )
    for sample, count in enumerate(lengths):
        for head in range(heads):
            for place in range(count):
                q = query[sample, place, head]
                scores = np.array(
                    [
                        q @ key[sample, other, head]
                        + (q @ ROWS[place, other] if is_relative else 0)
                        for other in range(count)
                    ]
                )
                shares = np.exp(scores / math.sqrt(SIZE))
                shares /= shares.sum()
                expected = sum(
                    share
                    * (value[sample, other, head] + (ROWS[place, other] if is_relative else 0))
                    for other, share in enumerate(shares)
                )
                own = result[sample, place, head * SIZE : (head + 1) * SIZE]
                np.testing.assert_allclose(own, expected, atol=1e-5)


def test_head_count_that_does_not_divide_the_width_is_refused() -> None:
    with pytest.raises(ValueError, match="10 numbers per token are not a multiple of 3 heads"):
        SelfAttention(10, 3, dropout=0.0, relative=False)
