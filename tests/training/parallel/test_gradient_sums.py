"""Gradients taken off their parameters part by part, and added in one tree."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from jumar.training.parallel.gradient_sums import GradientSums, _ranges
from jumar.training.parallel.ranks import Ranks, TreeExchange
from jumar.training.parallel.tree_sum import Span, TreeSum


@dataclass(frozen=True, kw_only=True)
class Sending(Ranks):
    """One rank that notes the size of each bucket as it is sent, and how many layers had passed."""

    passed: list[int]
    sent: list[tuple[int, int]]

    def tree_exchange(self) -> TreeExchange:
        return Noting(self)


class Noting(TreeExchange):
    def __init__(self, ranks: Sending) -> None:
        self._ranks = ranks

    def start(self, sums: TreeSum) -> None:
        self._ranks.sent.append((sums.values[0].numel(), len(self._ranks.passed)))
        super().start(sums)


def network() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 1))


def gradients_of(net: nn.Module, batch: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(net(batch).square().sum(), list(net.parameters())))


def add_parts(sums: GradientSums, net: nn.Module, parts: list[Tensor]) -> None:
    with sums.collecting():
        for number, part in enumerate(parts):
            with sums.part(number):
                net(part).square().sum().backward()
    sums.finish()


@pytest.mark.parametrize("bucket_bytes", [1, 100, 10_000])
def test_gradients_are_their_parts_summed_in_tree_order(
    bucket_bytes: int,
) -> None:
    net = network()
    sums = GradientSums(
        list(net.parameters()), Ranks(), first=0, total=3, bucket_bytes=bucket_bytes
    )
    for step in range(2):
        parts = list((torch.randn(3, 5, 4) + step).unbind())
        one, two, three = (gradients_of(net, part) for part in parts)
        expected = [(a + b) + c for a, b, c in zip(one, two, three, strict=True)]
        add_parts(sums, net, parts)
        result = [parameter.grad for parameter in net.parameters()]
        assert all(torch.equal(a, b) for a, b in zip(expected, result, strict=True))
        net.zero_grad(set_to_none=True)


def test_buckets_are_sent_during_the_last_backward_pass() -> None:
    net, sent, passed = network(), list[tuple[int, int]](), list[int]()
    for layer in net:
        layer.register_full_backward_hook(lambda *_: passed.append(1))
    parameters = list(net.parameters())
    sums = GradientSums(
        parameters, Sending(sent=sent, passed=passed), first=0, total=2, bucket_bytes=1
    )
    add_parts(sums, net, list(torch.randn(2, 5, 4).unbind()))
    assert [size for size, _ in sent] == [value.numel() for value in reversed(parameters)]
    # Five layers of the first part have passed, then not all of the second part.
    assert 5 <= sent[0][1] < sent[3][1] < 10


def test_unreached_parameter_has_a_zero_gradient_after_a_reached_one() -> None:
    net = network()
    sums = GradientSums(list(net.parameters()), Ranks(), first=0, total=1)
    add_parts(sums, net, [torch.randn(5, 4)])
    net.zero_grad(set_to_none=True)
    with sums.collecting(), sums.part(0):
        net[4](torch.randn(5, 6)).sum().backward()
    sums.finish()
    assert net[0].weight.grad is not None
    assert not net[0].weight.grad.any()
    assert net[4].weight.grad is not None
    assert net[4].weight.grad.any()


def test_gradients_have_the_memory_layout_of_their_parameters() -> None:
    weight = nn.Parameter(torch.randn(4, 3, 3, 3).to(memory_format=torch.channels_last))
    sums = GradientSums([weight], Ranks(), first=0, total=1)
    factors = torch.randn(4, 3, 3, 3)
    with sums.collecting(), sums.part(0):
        (weight * factors).sum().backward()
    sums.finish()
    assert weight.grad is not None
    assert weight.grad.stride() == weight.stride() != factors.stride()
    assert torch.equal(weight.grad, factors)


def test_two_backward_passes_accumulate_unless_the_first_was_sent() -> None:
    weight = nn.Parameter(torch.ones(3))
    sums = GradientSums([weight], Ranks(), first=0, total=2)
    with sums.collecting():
        with sums.part(0):
            (2 * weight).sum().backward()
            (3 * weight).sum().backward()
        with sums.part(1):
            (4 * weight).sum().backward()
            with pytest.raises(RuntimeError, match="accumulated again"):
                (5 * weight).sum().backward()
    sums.finish()
    assert weight.grad is not None
    assert weight.grad.tolist() == [9, 9, 9]


def test_outside_the_passes_gradients_are_untouched() -> None:
    net = network()
    sums = GradientSums(list(net.parameters()), Ranks(), first=0, total=1)
    add_parts(sums, net, [torch.randn(5, 4)])
    net.zero_grad(set_to_none=True)
    net(torch.randn(5, 4)).sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


def test_sum_of_one_rank_needs_all_parts() -> None:
    sums = TreeSum(2)
    sums.add(Span(0, 1), torch.ones(2))
    with pytest.raises(ValueError, match="of 2 parts were added"):
        TreeExchange().whole(sums)


@pytest.mark.parametrize(
    ("bucket_bytes", "expected"),
    [
        (1, [range(4, 5), range(3, 4), range(2, 3), range(1, 2), range(0, 1)]),
        (16, [range(4, 5), range(3, 4), range(2, 3), range(1, 2), range(0, 1)]),
        (17, [range(3, 5), range(1, 3), range(0, 1)]),
        (32, [range(3, 5), range(1, 3), range(0, 1)]),
        (33, [range(2, 5), range(0, 2)]),
        (1000, [range(0, 5)]),
    ],
)
def test_buckets_are_minimal_from_the_last_parameter_to_the_first(
    bucket_bytes: int, expected: list[range]
) -> None:
    parameters = [nn.Parameter(torch.zeros(4)) for _ in range(5)]
    assert _ranges(parameters, bucket_bytes) == expected
    assert _ranges([], bucket_bytes) == []
