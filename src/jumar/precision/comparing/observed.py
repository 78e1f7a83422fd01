"""The difference between two values: exact if both tensors are available, otherwise bounds.

All errors are relative to the root mean square (rms) of the first value.
"""

import math
from dataclasses import dataclass
from typing import Final

import torch

from jumar.precision.dumps.dump import Statistics, Value

ROUNDOFF: Final = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8 / 2,
    "float8_e4m3fn": 2.0**-4,
    "float8_e5m2": 2.0**-3,
    "hif8": 2.0**-4,
}
"""Unit roundoff: the largest relative error of one rounding. For bfloat16, it would be 2**-8; half
of it is used, as for all faults and healthy pairs in docs/precision-lab.md."""
_SUMS: Final = ("mean", "l2")
_SUM_TOLERANCE: Final = 2.0**-44
"""Relative tolerance for sums of integers: beyond 2**53, float64 rounds them by an amount that
depends on the number of threads and the memory address."""
_SAMPLES: Final = 256
"""Random errors of n elements nearly cancel in a mean or a norm, by a factor of sqrt(n), but
systematic errors do not. So the assumed factor is limited to the root of this number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """The difference between two values.

    Attributes:
        lower: Lower bound of the error.
        upper: Approximate upper bound; equal to `lower` if tensors were compared.
        rms: Root mean square of the first value.
        peak: Largest absolute element of the first value.
        is_exact: Whether both are equal, as far as is known.
        cosine: Cosine of the angle between the tensors.
        largest: Largest absolute error: of the tensors, or of min and max.
        relative: Largest relative error of an element that is not tiny.
        remark: Why the values cannot be compared, such as different shapes; empty otherwise.
    """

    lower: float
    upper: float
    rms: float
    peak: float
    is_exact: bool = False
    cosine: float | None = None
    largest: float | None = None
    relative: float | None = None
    remark: str = ""


def roundoff(dtype: str) -> float:
    """Return the unit roundoff of a dtype; 0 for integers."""
    return ROUNDOFF.get(dtype, 0.0)


def magnitude(value: Value) -> tuple[float, float]:
    """Return the root mean square and the largest absolute element; NaN if unknown."""
    statistics = value.statistics
    if statistics is None:
        return math.nan, math.nan
    extremes = [abs(extreme) for extreme in (statistics.min, statistics.max) if extreme is not None]
    peak = max(extremes, default=math.nan)
    if statistics.l2 is None:
        return peak, peak
    return statistics.l2 / math.sqrt(max(statistics.count, 1)), peak


def compare_statistics(first: Value, second: Value) -> Difference | None:
    """Return bounds of the error from statistics; None if a value has none.

    The norm, mean, minimum and maximum differ by no more than the tensors, so the largest of their
    differences is a lower bound. Random errors hardly change norm and mean, so their differences
    are multiplied by the root of the number of elements to estimate the typical error.
    """
    one, two = first.statistics, second.statistics
    if one is None or two is None:
        return None
    rms, peak = magnitude(first)
    if first.digest is not None and first.digest == second.digest and first.dtype == second.dtype:
        return Difference(lower=0, upper=0, rms=rms, peak=peak, is_exact=True)
    if remark := _non_finite(one, two):
        return Difference(lower=math.inf, upper=math.inf, rms=rms, peak=peak, remark=remark)
    pairs = {
        name: (left, right)
        for name in ("min", "max", "mean", "l2")
        if (left := getattr(one, name)) is not None and (right := getattr(two, name)) is not None
    }
    finite = {name: pair for name, pair in pairs.items() if all(map(math.isfinite, pair))}
    if not finite:
        return None
    tolerance = 0.0 if roundoff(first.dtype) else _SUM_TOLERANCE
    distances = {
        name: 0.0
        if name in _SUMS and math.isclose(*pair, rel_tol=tolerance)
        else abs(pair[0] - pair[1])
        for name, pair in finite.items()
    }
    if not any(distances.values()):
        # The statistics are equal, but the digests may show an error of unknown size.
        is_exact = first.digest is None or second.digest is None
        return Difference(lower=0, upper=0, rms=rms, peak=peak, is_exact=is_exact)
    lower, upper = _bounds(distances, rms, peak, one.count)
    largest = max((distances[name] for name in ("min", "max") if name in distances), default=None)
    return Difference(lower=lower, upper=upper, rms=rms, peak=peak, largest=largest)


def _bounds(
    distances: dict[str, float], rms: float, peak: float, count: int
) -> tuple[float, float]:
    if not rms > 0:
        return math.inf, math.inf
    cancellation = math.sqrt(min(max(count, 1), _SAMPLES))
    extremes = [distances[name] for name in ("min", "max") if name in distances]
    # Rounding errors are relative to each element, and minimum and maximum are the largest ones.
    # Inherited errors are as large for smaller elements.
    lower = [distance / peak for distance in extremes]
    samples = [distance / rms for distance in extremes]
    if "mean" in distances:
        lower.append(distances["mean"] / rms)
        samples.append(lower[-1] * cancellation)
    if "l2" in distances:
        lower.append(distances["l2"] / math.sqrt(max(count, 1)) / rms)
        samples.append(lower[-1] * cancellation)
    return max(lower), max(*lower, math.sqrt(math.fsum(x * x for x in samples) / len(samples)))


def _non_finite(one: Statistics, two: Statistics) -> str:
    def has_any(statistics: Statistics) -> bool:
        values = (statistics.min, statistics.max, statistics.mean, statistics.l2)
        return (
            any(value is not None and not math.isfinite(value) for value in values)
            or bool(statistics.nan)
            or bool(statistics.inf)
        )

    in_first = has_any(one)
    if in_first == has_any(two):
        return ""
    return f"NaN or infinity only in the {'first' if in_first else 'second'}"


def compare_tensors(first: torch.Tensor, second: torch.Tensor) -> Difference:
    """Return the error of a tensor against another with the same number of elements."""
    if first.dtype == second.dtype and torch.equal(first, second):
        wide = first.double().flatten()
        return Difference(
            lower=0, upper=0, rms=_rms(wide), peak=_peak(wide), is_exact=True, cosine=1.0, largest=0
        )
    left, right = first.double().flatten(), second.double().flatten()
    usable = left.isfinite()
    rms, peak = _rms(left[usable]), _peak(left[usable])
    if remark := unlike(left, right):
        return Difference(lower=math.inf, upper=math.inf, rms=rms, peak=peak, remark=remark)
    left, right = left[usable], right[usable]
    distance = (right - left).abs()
    error = _rms(distance)
    relative = error / rms if rms > 0 else (math.inf if error else 0.0)
    norms = float(left.norm() * right.norm())
    is_large = left.abs() > rms / 1000
    largest_relative = (
        (distance[is_large] / left[is_large].abs()).max().item() if is_large.any() else None
    )
    return Difference(
        lower=relative,
        upper=relative,
        rms=rms,
        peak=peak,
        is_exact=error == 0,
        cosine=float(left @ right) / norms if norms else None,
        largest=_peak(distance),
        relative=largest_relative,
    )


def unlike(left: torch.Tensor, right: torch.Tensor) -> str:
    """Return in words how the non-finite elements differ; empty if they agree.

    If -inf in a mask becomes inf, the softmax is NaN, so the two must not count as equal.
    """
    usable = left.isfinite()
    if not torch.equal(usable, right.isfinite()):
        return "NaN or infinity at different positions"
    kinds = [values[~usable].nan_to_num(nan=0.0).sign() for values in (left, right)]
    return "" if torch.equal(*kinds) else "NaN in place of infinity, or infinity of another sign"


def _rms(wide: torch.Tensor) -> float:
    return wide.norm().item() / math.sqrt(max(wide.numel(), 1))


def _peak(wide: torch.Tensor) -> float:
    return wide.abs().max().item() if wide.numel() else 0.0
