from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.pixels.crop_window import Box, CropRule, Window, draw_window, scaled

RECIPE = CropRule(area=(0.08, 1.0), aspect=(0.75, 1.333), attempts=10, object_covered=0.1)
SIDES = st.integers(1, 400)


@given(height=SIDES, width=SIDES, seed=st.integers(0, 1000))
def test_window_is_inside_the_image_and_has_an_allowed_area(
    height: int, width: int, seed: int
) -> None:
    top, left, rows, columns = draw_window(height, width, RECIPE, np.random.default_rng(seed))
    assert 0 <= top <= top + rows <= height
    assert 0 <= left <= left + columns <= width
    assert rows * columns >= 0.08 * height * width


def test_impossible_rule_gives_the_whole_image() -> None:
    rule = RECIPE._replace(aspect=(50.0, 60.0), area=(0.9, 1.0))
    assert draw_window(30, 40, rule, np.random.default_rng(0)) == Window(0, 0, 30, 40)


def test_object_is_covered_by_the_requested_share() -> None:
    rule = RECIPE._replace(object_covered=0.7, attempts=100)
    box = (0.5, 0.1, 0.8, 0.4)
    for seed in range(200):
        top, left, rows, columns = draw_window(
            100, 200, rule, np.random.default_rng(seed), objects=[box]
        )
        tall = min(80, top + rows) - max(50, top)
        wide = min(80, left + columns) - max(20, left)
        assert tall * wide >= 0.7 * 30 * 60


# Mean and quantiles (5, 25, 50, 75, 95 %) of the area, and mean height and width, of 20 000 draws
# of tf.image.sample_distorted_bounding_box (TensorFlow 2.21).
TENSORFLOW = [
    (375, 500, (), 0.1, 0.3884, (0.119, 0.209, 0.355, 0.540, 0.773), 255.75, 265.64),
    (500, 200, (), 0.1, 0.2318, (0.110, 0.154, 0.219, 0.294, 0.403), 148.46, 151.20),
    (280, 280, (), 0.0001, 0.4021, (0.098, 0.193, 0.362, 0.590, 0.818), 167.50, 172.39),
    (
        375,
        500,
        ((0.1, 0.1, 0.3, 0.3), (0.6, 0.5, 0.9, 0.6)),
        0.5,
        0.4500,
        (0.140, 0.296, 0.437, 0.590, 0.805),
        277.35,
        289.74,
    ),
]


@pytest.mark.parametrize(
    "row", TENSORFLOW, ids=lambda row: f"{row[0]}x{row[1]}, {len(row[2])} boxes"
)
def test_windows_are_distributed_as_in_tensorflow(
    row: tuple[int, int, tuple[Box, ...], float, float, tuple[float, ...], float, float],
) -> None:
    height, width, boxes, covered, area, quantiles, rows, columns = row
    random = np.random.default_rng(5)
    rule = RECIPE._replace(object_covered=covered)
    drawn = np.array([draw_window(height, width, rule, random, objects=boxes) for _ in range(8000)])
    areas = drawn[:, 2] * drawn[:, 3] / (height * width)
    assert areas.mean() == pytest.approx(area, abs=0.008)
    assert np.quantile(areas, [0.05, 0.25, 0.5, 0.75, 0.95]) == pytest.approx(quantiles, abs=0.02)
    assert drawn[:, 2].mean() == pytest.approx(rows, rel=0.015)
    assert drawn[:, 3].mean() == pytest.approx(columns, rel=0.015)


@given(seed=st.integers(0, 300), height=SIDES, width=SIDES)
def test_window_of_the_frame_is_mapped_to_the_image(seed: int, height: int, width: int) -> None:
    drawn = draw_window(280, 280, RECIPE, np.random.default_rng(seed))
    top, left, rows, columns = scaled(drawn, 280, height, width)
    assert rows >= 1
    assert columns >= 1
    assert 0 <= top <= top + rows <= height
    assert 0 <= left <= left + columns <= width
    assert abs(top / height - drawn.top / 280) <= 1 / height
    assert abs(rows / height - drawn.height / 280) <= 1 / height


class Drawn:
    """A generator whose numbers are known."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def random(self, count: int) -> np.ndarray:
        taken, self.numbers = self.numbers[:count], self.numbers[count:]
        return np.array(taken)


ONE = CropRule(area=(0.25, 0.5), aspect=(1.0, 2.0), attempts=1, object_covered=0.0)
ALMOST = 0.999999


@pytest.mark.parametrize(
    ("size", "rule", "numbers", "window"),
    [
        # Height and width of a window are drawn from aspect 1.5: 58 to 82 rows.
        ((100, 200), ONE, (0.5, 0.5, 0.5, 0.5), (15, 48, 70, 105)),
        ((100, 200), ONE, (0.0, 0.0, 0.0, 0.0), (0, 0, 71, 71)),
        # 71 x 142 would be more than half of the image, and 67 x 74 less than a quarter.
        ((100, 200), ONE, (ALMOST, ALMOST, ALMOST, ALMOST), (30, 60, 70, 140)),
        ((100, 200), ONE, (0.1, 0.0, 0.0, 0.0), (0, 0, 68, 75)),
        # Exactly a quarter, and exactly a half.
        ((100, 200), ONE, (1.0, 0.0, 0.0, 0.0), (0, 0, 50, 100)),
        ((100, 200), ONE, (0.0, ALMOST, 0.0, 0.0), (0, 0, 100, 100)),
        # As high as the image, and as wide: 25 rows of aspect 2 are 50 columns.
        (
            (100, 200),
            ONE._replace(area=(0.25, 1.0)),
            (0.0, ALMOST, ALMOST, ALMOST),
            (0, 100, 100, 100),
        ),
        (
            (200, 50),
            ONE._replace(area=(0.08, 1.0)),
            (1.0, ALMOST, ALMOST, ALMOST),
            (175, 0, 25, 50),
        ),
        # 7 rows of aspect 0.5 round to 4 columns, one more than there are.
        (
            (20, 3),
            ONE._replace(area=(0.05, 1.0), aspect=(0.5, 0.5)),
            (0.0, ALMOST, ALMOST, 0.0),
            (14, 0, 6, 3),
        ),
    ],
)
def test_window_is_determined_by_the_drawn_numbers(
    size: tuple[int, int],
    rule: CropRule,
    numbers: tuple[float, ...],
    window: tuple[int, int, int, int],
) -> None:
    drawn: Any = Drawn(*numbers)
    assert draw_window(*size, rule, drawn) == window
    assert drawn.numbers == []


def test_four_numbers_are_drawn_for_each_attempt() -> None:
    rule = RECIPE._replace(aspect=(50.0, 60.0), area=(0.9, 1.0), attempts=7)
    drawn: Any = Drawn(*[0.5] * 40)
    assert draw_window(30, 40, rule, drawn) == Window(0, 0, 30, 40)
    assert len(drawn.numbers) == 40 - 4 * 7


@pytest.mark.parametrize(
    ("boxes", "covered", "taken"),
    [
        # The window is rows 0 to 71 and columns 0 to 71 of 100 x 200.
        (((0.0, 0.0, 0.71, 0.355),), 1.0, True),
        (((0.0, 0.0, 1.0, 0.355),), 0.71, True),
        (((0.0, 0.0, 1.0, 0.355),), 0.72, False),
        (((0.0, 0.0, 0.71, 0.71),), 0.5, True),
        (((0.42, 0.21, 1.0, 0.5),), 0.25, True),
        (((0.42, 0.21, 1.0, 0.5),), 0.26, False),
        (((0.8, 0.0, 1.0, 0.1),), 0.0, True),
        (((0.8, 0.0, 1.0, 0.1),), 0.01, False),
        (((0.0, 0.5, 0.1, 0.6),), 0.01, False),
        (((0.5, 0.1, 0.5, 0.2),), 0.01, False),
        (((0.8, 0.0, 1.0, 0.1), (0.0, 0.0, 0.1, 0.1)), 1.0, True),
    ],
)
def test_window_covers_enough_of_one_object(
    boxes: tuple[Box, ...], covered: float, taken: bool
) -> None:
    drawn: Any = Drawn(0.0, 0.0, 0.0, 0.0)
    rule = ONE._replace(object_covered=covered)
    window = draw_window(100, 200, rule, drawn, objects=boxes)
    assert window == ((0, 0, 71, 71) if taken else (0, 0, 100, 200))


@pytest.mark.parametrize(
    ("window", "size", "expected"),
    [
        ((50, 100, 140, 28), (100, 30), (17, 10, 50, 3)),
        ((279, 279, 1, 1), (280, 560), (279, 558, 1, 2)),
        ((279, 279, 1, 1), (1, 3), (0, 2, 1, 1)),
        ((0, 0, 280, 280), (77, 401), (0, 0, 77, 401)),
    ],
)
def test_mapped_window_keeps_its_share_and_at_least_one_pixel(
    window: tuple[int, int, int, int], size: tuple[int, int], expected: tuple[int, int, int, int]
) -> None:
    assert scaled(Window(*window), 280, *size) == expected
