"""Additions in one fixed tree: the same bits however the parts are shared out."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumar.training.parallel.tree_sum import Span, TreeSum, partial_sums, subtrees


def parts(total: int, size: int = 5) -> list[torch.Tensor]:
    """Numbers of very different sizes, whose sum depends on the order of additions."""
    random = torch.Generator().manual_seed(total)
    values = torch.randn(total, size, generator=random)
    return list(values * torch.logspace(0, 7, total)[:, None])


def by_hand(values: list[torch.Tensor]) -> torch.Tensor:
    """The sum of the first 2**k and of the others, 2**k being the largest power of two below."""
    if len(values) == 1:
        return values[0]
    half = 1
    while 2 * half < len(values):
        half *= 2
    return by_hand(values[:half]) + by_hand(values[half:])


def added(values: list[torch.Tensor], first: int, total: int) -> TreeSum:
    tree = TreeSum(total)
    for number, value in enumerate(values, start=first):
        tree.add(Span(number, 1), value.clone())
    return tree


@given(total=st.integers(1, 70), data=st.data())
def test_any_distribution_of_the_parts_sums_to_the_same_bits(
    total: int, data: st.DataObject
) -> None:
    cuts = data.draw(st.sets(st.integers(1, total - 1)) if total > 1 else st.just(set()))
    values = parts(total)
    ends = [*sorted(cuts), total]
    whole = TreeSum(total)
    for start, end in zip([0, *ends], ends, strict=False):
        own = added(values[start:end], start, total)
        assert own.spans == partial_sums(Span(start, end - start), total)
        for span, value in zip(own.spans, own.values, strict=True):
            whole.add(span, value)
    assert torch.equal(whole.whole(), by_hand(values))


def test_another_order_would_give_other_bits() -> None:
    values = parts(12)
    assert not torch.equal(by_hand(values), torch.stack(values).sum(dim=0))


@given(total=st.integers(1, 300))
def test_every_part_is_added_once(total: int) -> None:
    pairs = list(subtrees(total))
    assert len(pairs) == total - 1
    assert all(left.first + left.size == right.first for left, right in pairs)


@pytest.mark.parametrize(
    ("total", "ranks", "most"), [(16, 1, 1), (16, 2, 1), (16, 8, 1), (24, 3, 1), (24, 2, 2)]
)
def test_rank_sends_few_partial_sums(total: int, ranks: int, most: int) -> None:
    share = total // ranks
    sums = [partial_sums(Span(rank * share, share), total) for rank in range(ranks)]
    assert max(map(len, sums)) == most


def test_sums_are_no_part_of_a_graph() -> None:
    values = [value.requires_grad_() for value in parts(4)]
    tree = TreeSum(4)
    for number, value in enumerate(values):
        tree.add(Span(number, 1), value)
    assert tree.whole().grad_fn is None


def test_sum_with_a_part_missing_is_an_error() -> None:
    with pytest.raises(ValueError, match="of 4 parts were added"):
        added(parts(4)[:3], 0, 4).whole()
