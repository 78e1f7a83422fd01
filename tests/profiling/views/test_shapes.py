"""Shapes as text, and the elements of a tensor."""

import pytest

from jumar.profiling.views.shapes import shapes_of, volume

_LIMIT = 2**50


def test_shapes_are_parsed_and_non_numeric_ones_are_not_tensors() -> None:
    assert shapes_of("2,3;;4, 5;7") == [(2, 3), (), (4, 5), (7,)]
    assert shapes_of("2,a;4") == [(4,)]
    assert shapes_of(None) == []
    assert shapes_of("") == [()]


@pytest.mark.parametrize(
    ("shape", "elements"),
    [
        ((2, 3, 4), 24),
        ((), 1),
        ((5, 0), 0),
        ((-1, 3), 0),
        ((_LIMIT - 1,), _LIMIT - 1),
        ((_LIMIT,), 0),
        ((2**25, 2**25 - 1), 2**50 - 2**25),
        ((2**25, 2**25), 0),
        ((2**49, 3), 0),
    ],
)
def test_element_count_is_the_product_of_sizes_within_limits(
    shape: tuple[int, ...], elements: int
) -> None:
    assert volume(shape) == elements
