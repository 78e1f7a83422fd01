"""Statistics of tensors of every kind against the plain definitions in float64."""

import math

import pytest
import torch
from torch import Tensor

import jumar.precision.recording.statistics as recording
from jumar.precision.dumps.dump import Statistics
from jumar.precision.recording.statistics import Meter, _Pending, _read_together

GENERATOR = torch.Generator().manual_seed(1)


def plain(tensor: Tensor) -> Statistics:
    numbers = tensor.double().flatten()
    finite = numbers[numbers.isfinite()]
    sizes = finite.abs()
    few = finite.numel() == 0
    return Statistics(
        count=numbers.numel(),
        min=None if few else finite.min().item(),
        max=None if few else finite.max().item(),
        mean=None if few else finite.mean().item(),
        l2=None if few else finite.norm().item(),
        nan=int(numbers.isnan().sum()),
        inf=int(numbers.isinf().sum()),
        zeros=int((numbers == 0).sum()),
        above_fp16=int((sizes > 65504).sum()),
        below_normal=int(((sizes < 2**-14) & (sizes > 0)).sum()),
        below_subnormal=int(((sizes < 2**-24) & (sizes > 0)).sum()),
    )


def numbers_of(statistics: Statistics) -> list[float]:
    values = [getattr(statistics, name) for name in Statistics.__slots__]
    return [math.nan if value is None else value for value in values]


def assert_equal(measured: Statistics, tensor: Tensor) -> None:
    expected = numbers_of(plain(tensor))
    assert numbers_of(measured) == pytest.approx(expected, rel=1e-5, abs=1e-45, nan_ok=True)


def spread(*shape: int) -> Tensor:
    """Numbers of all magnitudes that float32 holds, and zeros."""
    exponents = torch.rand(*shape, generator=GENERATOR) * 200 - 100
    signs = torch.randn(*shape, generator=GENERATOR).sign()
    return torch.where(exponents < -95, 0.0, signs * torch.exp2(exponents))


def with_holes(tensor: Tensor) -> Tensor:
    tensor = tensor.clone()
    tensor.view(-1)[::7] = math.nan
    tensor.view(-1)[3::11] = math.inf
    tensor.view(-1)[5] = -math.inf
    return tensor


TENSORS = {
    "all magnitudes": spread(3, 500),
    "several blocks": spread(700_000),
    "float16": torch.randn(40, 50, generator=GENERATOR).half(),
    "bfloat16 over several blocks": spread(300_000).bfloat16(),
    "float64": torch.randn(40, 50, generator=GENERATOR).double() * 1e100,
    "squares that underflow": torch.randn(999, generator=GENERATOR) * 1e-30,
    "squares that overflow": torch.randn(999, generator=GENERATOR) * 1e30,
    "a sum that overflows": torch.full((999,), 3e38),
    "whole numbers": torch.arange(70_000),
    "truth values": torch.tensor([True, False, True]),
    "a transposed one": spread(20, 30).t(),
    "a slice": spread(20, 30)[3:9, ::2],
    "an expanded one": spread(20, 1).expand(20, 5),
    "at the edges of float16": torch.tensor(
        [
            edge * near
            for edge in (65504.0, 2.0**-14, 2.0**-24)
            for near in (1 - 2**-23, 1.0, 1 + 2**-22)
        ]
    ),
    "a scalar": torch.tensor(2.5),
    "zeros": torch.zeros(12),
    "holes": with_holes(spread(30, 40)),
    "nothing finite": torch.tensor([math.nan, math.inf]),
}


@pytest.mark.parametrize("name", TENSORS)
def test_statistics_match_their_definitions(name: str) -> None:
    meter = Meter(counts=True)
    assert meter.measure(TENSORS[name]) == 0
    (measured,) = meter.read()
    assert_equal(measured, TENSORS[name])


@pytest.mark.parametrize(
    "name", [name for name, each in TENSORS.items() if each.is_floating_point()]
)
def test_deferred_statistics_equal_immediate_ones(name: str) -> None:
    row = _Pending(TENSORS[name], counts=True)
    (numbers,) = _read_together([row])
    measured = row.statistics(*numbers)
    assert_equal(measured, TENSORS[name])


def test_without_counts_only_the_four_statistics_are_computed() -> None:
    meter = Meter(counts=False)
    meter.measure(with_holes(spread(30, 40)))
    (measured,) = meter.read()
    assert measured.l2 is not None
    assert (measured.zeros, measured.above_fp16, measured.below_normal) == (None, None, None)
    assert measured.nan


def test_empty_tensor_has_no_statistics() -> None:
    meter = Meter(counts=True)
    meter.measure(torch.empty(0, 3))
    assert meter.read() == [Statistics(count=0)]


@pytest.mark.parametrize("has_row_products", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("count", [100, 16_385, 131_072, 300_000])
def test_norm_of_many_equal_elements_is_exact_to_float32(
    count: int, threads: int, has_row_products: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_row_products:  # as in NumPy before 2.0
        monkeypatch.setattr(recording, "_DOT_ROWS", None)
    kept = (torch.arange(count) % 3 > 0).float() / 0.65
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        meter = Meter(counts=False)
        meter.measure(kept)
    finally:
        torch.set_num_threads(before)
    (statistics,) = meter.read()
    exact = torch.linalg.vector_norm(kept.double()).item()
    assert statistics.l2 == pytest.approx(exact, rel=2e-7)
