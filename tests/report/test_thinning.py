from hypothesis import given
from hypothesis import strategies as st

from jumar.report.content import Point
from jumar.report.thinning import evenly, thinned

CURVES = st.lists(st.none() | st.floats(-1e6, 1e6), min_size=1, max_size=600).map(
    lambda values: [Point(float(x), y) for x, y in enumerate(values)]
)


@given(CURVES, st.integers(8, 100))
def test_thinning_keeps_ends_and_extremes_and_invents_nothing(
    points: list[Point], most: int
) -> None:
    kept = thinned(points, most)
    assert len(kept) <= most
    assert kept[0] == points[0]
    assert kept[-1] == points[-1]
    assert [point.x for point in kept] == sorted({point.x for point in kept})
    assert set(kept) <= set(points)
    values = [point.y for point in points if point.y is not None]
    if values:
        left = [point.y for point in kept if point.y is not None]
        assert (min(left), max(left)) == (min(values), max(values))


def test_one_spike_in_a_hundred_thousand_steps_is_still_seen() -> None:
    points = [Point(float(x), 1.0) for x in range(100_000)]
    points[54_321] = Point(54_321.0, 900.0)
    assert Point(54_321.0, 900.0) in thinned(points, 400)


def test_one_gap_in_a_hundred_thousand_steps_is_still_seen() -> None:
    points = [Point(float(x), 1.0) for x in range(100_000)]
    points[54_321] = Point(54_321.0, None)
    assert Point(54_321.0, None) in thinned(points, 400)


@given(st.integers(0, 1000), st.integers(1, 50))
def test_evenly_spaced_indices_are_few_and_include_the_last(count: int, most: int) -> None:
    result = evenly(count, most)
    assert len(result) <= most
    assert result == sorted(set(result))
    assert all(0 <= index < count for index in result)
    if count:
        assert result[-1] == count - 1
