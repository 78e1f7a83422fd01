"""Bounds from statistics and errors of tensors, worked out by hand."""

import math
from dataclasses import fields, replace

import pytest
import torch

from jumar.precision.comparing.observed import (
    ROUNDOFF,
    Difference,
    compare_statistics,
    compare_tensors,
    magnitude,
    roundoff,
)
from jumar.precision.dumps.dump import Statistics, Value

PLAIN = Statistics(count=4, min=-4.0, max=4.0, mean=0.0, l2=4.0)


def value(
    numbers: Statistics | None, *, dtype: str = "float32", digest: str | None = None
) -> Value:
    return Value(
        role="output", name="0", dtype=dtype, shape=(4,), statistics=numbers, digest=digest
    )


def seen(first: Statistics | None, second: Statistics | None) -> Difference | None:
    return compare_statistics(value(first), value(second))


def as_numbers(difference: Difference | None) -> dict[str, object]:
    assert difference is not None
    return {each.name: getattr(difference, each.name) for each in fields(difference)}


def the_same(difference: Difference | None, **expected: object) -> None:
    """Compare all fields; those that are not given have their defaults."""
    others = {"is_exact": False, "cosine": None, "largest": None, "relative": None, "remark": ""}
    numbers = as_numbers(difference)
    wanted = others | expected
    assert numbers.keys() == wanted.keys()
    for name, each in wanted.items():
        assert numbers[name] == pytest.approx(each, nan_ok=True), name


def test_unit_roundoffs_are_half_of_the_step_after_1() -> None:
    others = ROUNDOFF.keys() - {"hif8", "bfloat16"}
    assert {name: ROUNDOFF[name] for name in others} == {
        name: torch.finfo(getattr(torch, name)).eps / 2 for name in others
    }
    assert ROUNDOFF["hif8"] == 2**-4
    # A quarter: the limits of what is blamed were measured with it.
    assert roundoff("bfloat16") == torch.finfo(torch.bfloat16).eps / 4
    assert roundoff("int64") == 0.0


def test_magnitude_of_a_value_is_its_rms_and_largest_absolute_extreme() -> None:
    numbers = Statistics(count=9, min=-5.0, max=3.0, l2=6.0)
    assert magnitude(value(numbers)) == (2.0, 5.0)
    assert magnitude(value(replace(numbers, l2=None))) == (5.0, 5.0)
    assert magnitude(value(replace(numbers, min=None))) == (2.0, 3.0)
    assert magnitude(value(replace(numbers, count=0))) == (6.0, 5.0)
    unknown = magnitude(value(None)), magnitude(value(Statistics(count=9, l2=6.0)))
    assert [math.isnan(each) for pair in unknown for each in pair] == [True, True, False, True]


def test_largest_statistic_difference_is_a_lower_bound_of_the_error() -> None:
    second = Statistics(count=4, min=-4.4, max=4.2, mean=0.1, l2=4.8)
    numbers = {"rms": 2.0, "peak": 4.0}
    # Ends relative to the peak: 0.1 and 0.05; mean and norm to the rms: 0.05 and 0.2.
    upper = math.sqrt((0.2**2 + 0.1**2 + 0.1**2 + 0.4**2) / 4)
    the_same(seen(PLAIN, second), lower=0.2, upper=upper, largest=0.4, **numbers)
    ends = replace(PLAIN, min=-6.0)
    the_same(seen(PLAIN, ends), lower=0.5, upper=0.5, largest=2.0, **numbers)


def test_random_errors_are_scaled_by_the_root_of_at_most_256_elements() -> None:
    for count, root in ((1, 1), (100, 10), (256, 16), (100_000, 16)):
        first = replace(PLAIN, count=count, l2=2 * math.sqrt(count))
        second = replace(first, mean=0.1)
        expected = max(0.05, 0.05 * root / 2)
        result = as_numbers(seen(first, second))
        assert (result["lower"], result["largest"]) == (pytest.approx(0.05), 0.0)
        assert result["upper"] == pytest.approx(expected)


def test_error_of_a_single_number_is_known_from_its_statistics() -> None:
    first, second = (Statistics(count=1, min=n, max=n, mean=n, l2=n) for n in (2.0, 3.0))
    the_same(seen(first, second), lower=0.5, upper=0.5, rms=2.0, peak=2.0, largest=1.0)


def test_values_on_only_one_side_are_not_compared() -> None:
    first, second = Statistics(count=4, mean=0.5, l2=4.0), Statistics(count=4, mean=0.7)
    result = as_numbers(seen(first, second))
    assert (result["lower"], result["upper"]) == (pytest.approx(0.1), pytest.approx(0.2))
    assert (result["rms"], result["largest"]) == (2.0, None)
    assert seen(Statistics(count=4, min=1.0), Statistics(count=4, max=1.0)) is None
    assert seen(None, PLAIN) is None
    assert seen(PLAIN, None) is None


def test_any_error_against_an_all_zero_reference_is_infinite() -> None:
    zeros = Statistics(count=4, min=0.0, max=0.0, mean=0.0, l2=0.0)
    result = seen(zeros, PLAIN)
    the_same(result, lower=math.inf, upper=math.inf, rms=0.0, peak=0.0, largest=4.0)


def test_equal_hashes_of_one_dtype_are_exact_and_equal_numbers_of_other_hashes_are_not() -> None:
    def compared(one: Value, two: Value) -> dict[str, object]:
        return as_numbers(compare_statistics(one, two))

    exact = {"lower": 0, "upper": 0, "rms": 2.0, "peak": 4.0, "is_exact": True}
    hashed = value(PLAIN, digest="a:1")
    the_same(compare_statistics(hashed, value(replace(PLAIN, max=9.0), digest="a:1")), **exact)
    the_same(compare_statistics(hashed, value(PLAIN, digest="a:2")), **exact | {"is_exact": False})
    low = value(PLAIN, digest="a:1", dtype="float16")
    assert not compared(hashed, low)["is_exact"]
    for one, two in ((value(PLAIN), hashed), (hashed, value(PLAIN)), (value(PLAIN), value(PLAIN))):
        assert compared(one, two)["is_exact"]
    assert compared(value(PLAIN), value(replace(PLAIN, max=9.0)))["lower"] == 1.25


@pytest.mark.parametrize(
    "bad", [{"nan": 1}, {"inf": 2}, {"min": -math.inf}, {"mean": math.nan}, {"l2": math.inf}]
)
def test_non_finite_values_on_only_one_side_are_reported(bad: dict[str, float]) -> None:
    broken = replace(PLAIN, **bad)  # type: ignore[arg-type]
    for one, two, side in ((broken, PLAIN, "first"), (PLAIN, broken, "second")):
        result = as_numbers(seen(one, two))
        assert result["remark"] == f"NaN or infinity only in the {side}"
        assert (result["lower"], result["upper"]) == (math.inf, math.inf)
        assert not result["is_exact"]
    both = as_numbers(seen(replace(PLAIN, nan=1), replace(broken, nan=1, max=8.0)))
    assert (both["remark"], both["lower"]) == ("", 1.0)


def test_tensor_error_is_relative_to_its_rms() -> None:
    result = compare_tensors(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 5.0]))
    cosine = 29 / (5 * math.sqrt(34))
    numbers = {"lower": 0.2, "upper": 0.2, "rms": 5 / math.sqrt(2), "peak": 4.0}
    the_same(result, cosine=cosine, largest=1.0, relative=0.25, **numbers)
    # A thousandth of the rms is tiny: an error of a thousand times itself says nothing.
    tiny = compare_tensors(torch.tensor([[3.0], [-4.0], [2e-3]]), torch.tensor([3.0, -5.0, 2.0]))
    assert tiny.relative == pytest.approx(0.25)
    assert (tiny.peak, tiny.largest) == (4.0, pytest.approx(1.998))
    small = compare_tensors(torch.tensor([3.0, 4.0, 4e-3]), torch.tensor([3.0, 4.0, 2e-3]))
    assert small.relative == pytest.approx(0.5)


def test_equal_tensors_are_exact() -> None:
    tensor = torch.tensor([3.0, 4.0])
    numbers = {"lower": 0, "upper": 0, "rms": 5 / math.sqrt(2), "peak": 4.0, "largest": 0.0}
    exact = numbers | {"is_exact": True, "cosine": 1.0}
    the_same(compare_tensors(tensor, tensor.clone()), **exact)
    the_same(compare_tensors(tensor, tensor.bfloat16()), relative=0.0, **exact)
    nothing = dict.fromkeys(("lower", "upper", "rms", "peak", "largest"), 0.0)
    empty = torch.empty(0)
    the_same(compare_tensors(empty, empty), is_exact=True, cosine=1.0, **nothing)
    the_same(compare_tensors(empty, empty.half()), is_exact=True, **nothing)


def test_equal_infinities_are_ignored_and_others_named() -> None:
    first = torch.tensor([math.inf, 3.0, 4.0])
    result = compare_tensors(first, torch.tensor([math.inf, 3.0, 5.0]))
    assert (result.lower, result.largest, result.peak) == (pytest.approx(0.2), 1.0, 4.0)
    other = compare_tensors(first, torch.tensor([1.0, 3.0, 4.0]))
    remark = "NaN or infinity at different positions"
    numbers = {"lower": math.inf, "upper": math.inf, "rms": 5 / math.sqrt(2), "peak": 4.0}
    the_same(other, remark=remark, **numbers)
    remark = "NaN in place of infinity, or infinity of another sign"
    for wrong in (-math.inf, math.nan):
        other = compare_tensors(first, torch.tensor([wrong, 3.0, 4.0]))
        the_same(other, remark=remark, **numbers)
    nans = torch.tensor([math.nan, 3.0, 4.0])
    assert compare_tensors(nans, nans.double()).lower == 0


def test_any_error_against_an_all_zero_tensor_is_infinite() -> None:
    zeros = torch.zeros(2)
    numbers = {"rms": 0.0, "peak": 0.0, "largest": 1.0}
    the_same(compare_tensors(zeros, torch.ones(2)), lower=math.inf, upper=math.inf, **numbers)
    same = compare_tensors(zeros, zeros.half())
    assert (same.lower, same.is_exact, same.cosine) == (0.0, True, None)


def test_integer_sums_are_equal_up_to_rounding() -> None:
    def whole(l2: float, mean: float = 5637051.304199219) -> Value:
        ends = {"min": -2146865694.0, "max": 2147252194.0}
        numbers = Statistics(count=16384, mean=mean, l2=l2, **ends)
        return value(numbers, dtype="int32")

    first = whole(158639463287.00748)
    for other in (whole(158639463287.00745), whole(158639463287.00748, 5637051.304199220)):
        same = compare_statistics(first, other)
        assert same is not None
        assert (same.upper, same.is_exact) == (0, True)
    moved = compare_statistics(first, whole(158639463287.1))
    assert moved is not None
    assert moved.lower > 0
    floats = compare_statistics(
        value(Statistics(count=4, l2=1.0), dtype="float64"),
        value(Statistics(count=4, l2=1.0 + 2**-50), dtype="float64"),
    )
    assert floats is not None
    assert floats.lower > 0
