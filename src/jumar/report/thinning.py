"""Thinning curves without changing how they look."""

from collections.abc import Sequence

from jumar.report.content import Point


def thinned(points: Sequence[Point], max_points: int) -> list[Point]:
    """Thin out a curve, keeping the first and last point and both extremes of every stretch.

    Averaging over stretches would hide the spike that a reader looks for. Points without a value
    remain as one gap per stretch.

    Args:
        points: The points, in x order.
        max_points: Maximum number of points; at least 8.
    """
    if len(points) <= max_points:
        return list(points)
    # A stretch contributes its minimum, its maximum and possibly a gap; both ends are kept too.
    stretches = (max_points - 2) // 3
    inner = points[1:-1]
    kept_indices = {0, len(points) - 1}
    for number in range(stretches):
        start = number * len(inner) // stretches
        stop = (number + 1) * len(inner) // stretches
        indices = range(start + 1, stop + 1)
        finite = [(y, index) for index in indices if (y := points[index].y) is not None]
        if finite:
            kept_indices.add(min(finite)[1])
            kept_indices.add(max(finite)[1])
        gap = next((index for index in indices if points[index].y is None), None)
        if gap is not None:
            kept_indices.add(gap)
    return [points[index] for index in sorted(kept_indices)]


def evenly(count: int, max_count: int) -> list[int]:
    """Up to `max_count` of `count` indices, evenly spread, including the first and the last."""
    if count <= max_count:
        return list(range(count))
    if max_count < 2:
        return [count - 1][:max_count]
    return sorted({round(step * (count - 1) / (max_count - 1)) for step in range(max_count)})
