"""Which differences between a file and a network are accepted."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from jumar.ground.errors import UserError
from jumar.runs.exporting.checking import Array, Comparison, batches_to_check, compare
from jumar.runs.exporting.network import Axis, Exportable, Lengths, Port

VALUES = torch.tensor([[1.0, -8.0, 3.0], [0.5, 0.25, 2.0]])


def exportable(dtype: torch.dtype = torch.float32, **axes: Axis) -> Exportable:
    def made_up(lengths: Lengths, _: torch.Generator) -> tuple[Tensor, ...]:
        return (torch.zeros(lengths.get("batch", 2), lengths.get("length", 3)),)

    return Exportable(
        network=nn.Identity(),
        inputs=[Port(name="x", shape=("batch", "length"), meaning="")],
        outputs=[Port(name="y", dtype=dtype, shape=("batch", "length"), meaning="")],
        axes=axes,
        made_up=made_up,
        facts={},
    )


def check(values: Array, mine: Tensor = VALUES) -> Comparison:
    def run(batches: Sequence[tuple[Array, ...]]) -> list[list[Array]]:
        return [[values] for _ in batches]

    (comparison,) = compare(exportable(mine.dtype), [(mine,)], run)
    return comparison


@given(st.floats(-1, 1))
def test_difference_is_accepted_up_to_a_share_of_the_largest_value(share: float) -> None:
    """The largest value is 8, and the tolerance 1e-4 of it."""
    values = VALUES.numpy().astype(np.float64)
    values[1, 1] += 2 * 8e-4 * share
    if abs(share) < 0.499:
        assert check(values).difference == pytest.approx(2 * 8e-4 * abs(share), abs=1e-9)
    elif abs(share) > 0.501:
        with pytest.raises(UserError):
            check(values)


class _Losing(nn.Module):
    """Loses more than the tolerance in float32, and nothing in float64."""

    def forward(self, values: Tensor) -> Tensor:
        return (values + 1e5) - 1e5


@pytest.mark.parametrize("times", [0.0, 3.0, -3.0, 5.0, float("nan")])
def test_float32_rounding_is_judged_against_float64(times: float) -> None:
    inputs = torch.tensor([[1.003, -7.9981, 3.0], [0.5012, 0.2531, 2.0]])
    own = float((_Losing()(inputs).double() - inputs.double()).abs().max())
    assert own > 1e-4 * 8
    values = inputs.double().numpy() + times * own

    def run(batches: Sequence[tuple[Array, ...]]) -> list[list[Array]]:
        return [[values] for _ in batches]

    losing = dataclasses.replace(exportable(), network=_Losing())
    if abs(times) <= 3:
        (comparison,) = compare(losing, [(inputs,)], run)
        assert "float64" in str(comparison) or not times
    else:
        with pytest.raises(UserError, match=r"from float64; 0\.00"):
            compare(losing, [(inputs,)], run)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_non_finite_values_are_never_close(wrong: float) -> None:
    values = VALUES.numpy().copy()
    values[0, 0] = wrong
    with pytest.raises(UserError, match="does not compute the same as the network"):
        check(values)


def test_only_zeros_are_accepted_for_padding_the_network_omits() -> None:
    values = np.pad(VALUES.numpy(), ((0, 0), (0, 2)))
    assert check(values).difference == 0
    values[0, 4] = 1e-3
    with pytest.raises(UserError, match=r"instead of \[2, 3\]"):
        check(values)
    with pytest.raises(UserError, match=r"instead of \[2, 3\]"):
        check(VALUES.numpy()[:, :2])


def test_one_in_a_thousand_codes_may_be_an_equally_near_one() -> None:
    codes = torch.arange(2000)
    values = codes.numpy().copy()
    values[:2] += 1
    assert check(values, codes).difference == 1e-3
    values[2] += 1
    with pytest.raises(UserError):
        check(values, codes)


def test_every_file_is_tried_with_two_batch_sizes_and_another_length() -> None:
    batch, length = Axis(usual=2, other=3), Axis(usual=6, other=4)
    real = (torch.ones(3, 5),)
    shapes = [tuple(each.shape) for (each,) in batches_to_check(exportable(batch=batch), real)]
    assert shapes == [(3, 5), (1, 5)]
    both = exportable(batch=batch, length=length)
    assert [tuple(each.shape) for (each,) in batches_to_check(both, ())] == [(3, 6), (1, 6), (2, 4)]
    assert len(batches_to_check(exportable(), ())) == 2
