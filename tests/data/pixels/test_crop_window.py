import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.pixels.crop_window import Box, CropRule, Window, draw_window, scaled

RECIPE = CropRule(area=(0.08, 1.0), aspect=(0.75, 1.333), attempts=10, object_covered=0.1)
SIDES = st.integers(1, 400)


@given(height=SIDES, width=SIDES, seed=st.integers(0, 1000))
def test_a_window_lies_in_the_picture_and_has_an_allowed_area(
    height: int, width: int, seed: int
) -> None:
    top, left, rows, columns = draw_window(height, width, RECIPE, np.random.default_rng(seed))
    assert 0 <= top <= top + rows <= height
    assert 0 <= left <= left + columns <= width
    assert rows * columns >= 0.08 * height * width


def test_an_impossible_rule_gives_the_whole_picture() -> None:
    rule = RECIPE._replace(aspect=(50.0, 60.0), area=(0.9, 1.0))
    assert draw_window(30, 40, rule, np.random.default_rng(0)) == Window(0, 0, 30, 40)


def test_an_object_is_covered_as_far_as_asked() -> None:
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
def test_windows_are_distributed_as_those_of_tensorflow(
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
def test_a_window_of_the_frame_is_carried_into_the_picture(
    seed: int, height: int, width: int
) -> None:
    drawn = draw_window(280, 280, RECIPE, np.random.default_rng(seed))
    top, left, rows, columns = scaled(drawn, 280, height, width)
    assert rows >= 1
    assert columns >= 1
    assert 0 <= top <= top + rows <= height
    assert 0 <= left <= left + columns <= width
    assert abs(top / height - drawn.top / 280) <= 1 / height
    assert abs(rows / height - drawn.height / 280) <= 1 / height
