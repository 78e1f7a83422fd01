import math

from hypothesis import given
from hypothesis import strategies as st

from jumar.porting.check.losses import compare
from jumar.porting.check.record import StepLosses

values = st.lists(st.lists(st.floats(width=32), max_size=2), max_size=6)


def steps(rows: list[list[float]]) -> list[StepLosses]:
    return [
        StepLosses(step=number, losses=tuple((f"loss_{i}:0", x) for i, x in enumerate(row)))
        for number, row in enumerate(rows, 1)
    ]


@given(values)
def test_run_matches_itself(rows: list[list[float]]):
    found = compare(steps(rows), steps(rows), tolerance=0.0)
    numbers = not any(math.isnan(value) for row in rows for value in row)
    assert (found.first_different is None) == numbers
    assert not found.mismatch.en
    assert (found.largest_difference == 0.0) == numbers
    assert found.equal == (any(rows) and numbers)


@given(values, values)
def test_difference_is_symmetric(one: list[list[float]], other: list[list[float]]):
    there = compare(steps(one), steps(other), tolerance=1e-5)
    back = compare(steps(other), steps(one), tolerance=1e-5)
    assert there.largest_difference == back.largest_difference
    assert there.equal == back.equal


def test_first_differing_step_is_named():
    found = compare(steps([[1.0], [2.0], [3.0]]), steps([[1.0], [2.00001], [9.0]]), tolerance=1e-4)
    assert found.first_different is not None
    assert found.first_different.step == 3
    found = compare(steps([[1.0], [2.0], [3.0]]), steps([[1.0], [2.00001], [9.0]]), tolerance=1e-6)
    assert found.first_different is not None
    assert found.first_different.step == 2


def test_nan_loss_on_one_side_differs():
    found = compare(steps([[1.0]]), steps([[math.nan]]), tolerance=0.5)
    assert not found.equal
    both = compare(steps([[1.0], [math.nan]]), steps([[1.0], [math.nan]]), tolerance=0.5)
    assert not both.equal
    assert both.first_different is not None
    assert both.first_different.not_a_number


def test_shorter_or_different_losses_do_not_match():
    assert (
        "2 steps and the port 1"
        in compare(steps([[1.0], [1.0]]), steps([[1.0]]), tolerance=0.0).mismatch.en
    )
    assert (
        "2 losses in the original and 1 loss in the port"
        in compare(steps([[1.0, 2.0]]), steps([[1.0]]), tolerance=0.0).mismatch.en
    )


def test_no_losses_are_not_equal_losses():
    assert not compare(steps([[], []]), steps([[], []]), tolerance=0.0).equal
