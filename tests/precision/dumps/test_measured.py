"""Statistics of all elements come from the tensors, where a dump has no others."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jumar.precision.dumps.dump import Call, Dump, Statistics, Value
from jumar.precision.dumps.measured import with_statistics


class Stored:
    """Tensors by name."""

    def __init__(self, **tensors: torch.Tensor) -> None:
        self.tensors = tensors

    def read(self, name: str) -> torch.Tensor:
        return self.tensors[name]


def measured(
    tensor: torch.Tensor, known: Statistics | None = None, shape: tuple[int, ...] | None = None
) -> Statistics | None:
    shape = tuple(tensor.shape) if shape is None else shape
    value = Value(
        role="input", name="0", dtype="float32", shape=shape, statistics=known, tensor="t"
    )
    plain = replace(value, tensor=None)
    call = Call(kind="op", op="x", layer="", number=0, phase="forward", values=(plain, value))
    dump = Dump(where=Path("x"), tool="x", calls=[call], tensors=Stored(t=tensor))
    (done,) = with_statistics(dump).calls
    assert done.values[0] == plain
    return done.values[1].statistics


def test_tensor_without_statistics_is_measured() -> None:
    row = measured(torch.tensor([[3.0, -4.0], [0.0, 0.0]]))
    assert row == Statistics(count=4, min=-4.0, max=3.0, mean=-0.25, l2=5.0)
    assert measured(torch.zeros(2)) == Statistics(count=2, min=0, max=0, mean=0, l2=0)
    assert measured(torch.zeros(0)) == Statistics(count=0)


@pytest.mark.parametrize(
    ("tensor", "low", "high"),
    [
        (torch.tensor([True, False]), 0, 1),
        (torch.tensor([-7, 2], dtype=torch.int64), -7, 2),
        (torch.tensor([1.5, -2.0], dtype=torch.bfloat16), -2, 1.5),
        (torch.tensor([1.0, 2.0]).to(torch.float8_e5m2), 1, 2),
        (torch.tensor([3 + 4j, 1j]), 1, 5),
    ],
)
def test_every_dtype_is_measured(tensor: torch.Tensor, low: float, high: float) -> None:
    row = measured(tensor)
    assert row is not None
    assert (row.min, row.max) == (low, high)


@pytest.mark.parametrize("sign", [1, -1])
def test_norm_of_large_elements_is_finite(sign: int) -> None:
    row = measured(sign * torch.tensor([3e200, 4e200], dtype=torch.float64))
    assert row is not None
    assert row.l2 == pytest.approx(5e200)


def test_infinities_and_nan_replace_the_statistics_of_the_finite_elements() -> None:
    known = Statistics(count=3, min=1.0, max=2.0, mean=1.5, l2=2.2, nan=0, inf=1, zeros=0)
    row = measured(torch.tensor([1.0, 2.0, -math.inf]), known)
    assert row == Statistics(count=3, min=-math.inf, max=2.0, mean=-math.inf, l2=math.inf, zeros=0)
    row = measured(torch.tensor([1.0, math.nan, math.inf]), replace(known, nan=1))
    assert row is not None
    assert all(map(math.isnan, (row.min or 0, row.max or 0, row.mean or 0, row.l2 or 0)))
    assert (row.nan, row.inf) == (None, None)


def test_statistics_of_all_elements_and_of_samples_are_kept() -> None:
    known = Statistics(count=2, min=9.0, max=9.0, nan=0, inf=0)
    assert measured(torch.ones(2), known) is known
    sampled = replace(known, count=100, inf=1)
    assert measured(torch.ones(2), sampled, (10, 10)) is sampled
    dump = Dump(where=Path("x"), tool="x")
    assert with_statistics(dump) is dump
