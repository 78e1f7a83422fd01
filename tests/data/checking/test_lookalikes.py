"""Which images look alike: every bound from both sides."""

import numpy as np
import pytest

from jumar.data.checking.lookalikes import alike, groups_of

BASE = np.arange(256) * 3 % 200 + 20
"""A look with contrast, each level far from 0 and 255."""


def pairs(*looks: np.ndarray, aspects: tuple[float, ...] = ()) -> list[list[int]]:
    result = alike(np.stack(looks).astype(np.uint8), np.array(aspects or [1.0] * len(looks)))
    assert result.crowded.tolist() == []
    return result.pairs.tolist()


def changed(*by: int) -> np.ndarray:
    """The look with its first levels changed."""
    look = BASE.copy()
    look[: len(by)] += by
    return look


@pytest.mark.parametrize(
    ("look", "is_alike"),
    [
        (changed(4), True),
        (changed(5), False),
        (changed(-4, 4), True),
        (changed(-5), False),
        (BASE + 1, True),
        (BASE - 1, True),
        (changed(1) + 1, False),
    ],
    ids=["4", "5", "-4 and 4", "-5", "1 everywhere", "-1 everywhere", "above 1 on average"],
)
def test_no_mean_differs_by_more_than_4_levels_and_the_average_by_no_more_than_1(
    look: np.ndarray, is_alike: bool
) -> None:
    assert pairs(BASE, look) == ([[0, 1]] if is_alike else [])


def test_block_that_differs_by_the_whole_bound_is_a_candidate() -> None:
    look = BASE.reshape(16, 16).copy()
    look[4:8, 8:12] += 4  # one of the 16 blocks of 4 x 4 means: a quarter of a level on average
    assert pairs(BASE, look.reshape(-1)) == [[0, 1]]


@pytest.mark.parametrize(("contrast", "compared"), [(8, True), (7, False)])
def test_images_with_less_than_8_levels_of_contrast_are_not_compared(
    contrast: int, compared: bool
) -> None:
    flat = np.where(np.arange(256) % 2, 100 + contrast, 100 - contrast)
    assert pairs(flat, flat, flat + 1) == ([[0, 1], [0, 2]] if compared else [])


@pytest.mark.parametrize(("aspect", "is_alike"), [(1.0201, True), (1.0203, False), (0.981, True)])
def test_shapes_differ_by_less_than_2_percent(aspect: float, is_alike: bool) -> None:
    assert pairs(BASE, changed(1), aspects=(1.0, aspect)) == ([[0, 1]] if is_alike else [])


def test_copies_are_paired_with_the_first_and_others_with_each_other() -> None:
    other = BASE[::-1]
    looks = (other, BASE, changed(2), BASE, other, changed(0, 3))
    assert pairs(*looks) == [[1, 3], [0, 4], [1, 2], [1, 5], [2, 5]]
    assert pairs(BASE) == []


def test_connected_items_form_a_group_in_ascending_order() -> None:
    assert groups_of(np.array([[7, 2], [5, 6], [2, 4]]), 9) == [[2, 4, 7], [5, 6]]
    assert groups_of(np.empty((0, 2), np.int64), 3) == []
