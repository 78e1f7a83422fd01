import numpy as np
import pytest

from jumar.data.pixels.erasing import NoErasing, RandomErasing
from jumar.ground.errors import UserError
from jumar.settings import checked, describe

MEAN = (10.0, 20.4, 30.6)


def white(height: int = 40, width: int = 60) -> np.ndarray:
    return np.full((height, width, 3), 255, np.uint8)


def test_one_box_within_the_ranges_becomes_the_mean_colour() -> None:
    settings = RandomErasing(probability=1.0, fill="mean", area=(0.1, 0.2), aspect=(0.5, 2.0))
    for seed in range(40):
        before = white()
        after = settings.erased(before, np.random.default_rng(seed), MEAN)
        changed = (after != 255).any(axis=2)
        rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
        assert changed[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
        assert 0.08 < changed.mean() < 0.22
        assert 0.45 < len(rows) / len(columns) < 2.2
        assert set(map(tuple, after[changed].tolist())) == {(10, 20, 31)}
        assert (before == 255).all()


def test_noise_uses_all_levels() -> None:
    settings = RandomErasing(probability=1.0, area=(0.3, 0.4))
    after = settings.erased(np.zeros((64, 64, 3), np.uint8), np.random.default_rng(1), MEAN)
    assert len(np.unique(after)) > 200


def test_requested_share_of_images_is_erased() -> None:
    settings = RandomErasing(probability=0.25)
    random = np.random.default_rng(1)
    erased = [(settings.erased(white(), random, MEAN) != 255).any() for _ in range(400)]
    assert np.mean(erased) == pytest.approx(0.25, abs=0.07)


def test_equal_generators_erase_equally_and_zero_share_draws_nothing() -> None:
    settings = RandomErasing(probability=1.0)
    one, other = (settings.erased(white(), np.random.default_rng(3), MEAN) for _ in range(2))
    assert np.array_equal(one, other)
    random = np.random.default_rng(3)
    NoErasing().erased(white(), random, MEAN)
    assert random.random() == np.random.default_rng(3).random()


def test_image_too_small_for_any_box_is_unchanged() -> None:
    after = RandomErasing(probability=1.0).erased(white(1, 1), np.random.default_rng(1), MEAN)
    assert (after == 255).all()


def test_invalid_ranges_are_refused() -> None:
    with pytest.raises(UserError, match="minimum and a maximum"):
        checked(RandomErasing(area=(0.5, 0.2)))


def test_settings_have_their_defaults_and_bounds() -> None:
    rows = {row.path: (row.value, row.allowed) for row in describe(RandomErasing())}
    assert rows == {
        "probability": (0.5, "0 to 1"),
        "area": ((0.02, 0.4), "0 to 1"),
        "aspect": ((0.3, 3.33), "0.01 or more"),
        "fill": ("noise", "noise, mean"),
    }


@pytest.mark.parametrize("name", ["area", "aspect"])
def test_range_has_two_values_that_may_be_equal(name: str) -> None:
    checked(RandomErasing(**{name: (0.3, 0.3)}))
    for values in ((0.3,), (0.1, 0.2, 0.3), (0.31, 0.3)):
        with pytest.raises(UserError) as caught:
            checked(RandomErasing(**{name: values}))
        assert (caught.value.what, caught.value.where, caught.value.todo) == (
            f"'{name}' needs a minimum and a maximum, not {values}",
            f"data.erasing.{name}",
            f"For instance: data.erasing.{name}=0.02,0.4",
        )


@pytest.mark.parametrize("fill", ["noise", "mean"])
def test_box_is_determined_by_the_drawn_numbers(fill: str) -> None:
    settings = RandomErasing(probability=0.9, area=(0.1, 0.2), aspect=(0.5, 2.0), fill=fill)
    drawn = 0
    for seed in range(30):
        random = np.random.default_rng(seed)
        expected = white()
        if random.random() < 0.9:
            drawn += 1
            area = 40 * 60 * random.uniform(0.1, 0.2)
            aspect = np.exp(random.uniform(np.log(0.5), np.log(2.0)))
            rows, columns = round((area * aspect) ** 0.5), round((area / aspect) ** 0.5)
            top, left = random.integers(40 - rows + 1), random.integers(60 - columns + 1)
            box = expected[top : top + rows, left : left + columns]
            box[:] = (
                random.integers(0, 256, box.shape, dtype=np.uint8)
                if fill == "noise"
                else (10, 20, 31)
            )
        assert np.array_equal(settings.erased(white(), np.random.default_rng(seed), MEAN), expected)
    assert 20 < drawn < 30


def test_box_may_touch_an_edge_but_not_span_the_image() -> None:
    quarter = RandomErasing(probability=1.0, area=(4 / 9, 4 / 9), aspect=(1.0, 1.0), fill="mean")
    places = set()
    for seed in range(60):
        after = quarter.erased(white(3, 3), np.random.default_rng(seed), MEAN)
        rows, columns = np.nonzero((after != 255).any(axis=2))
        assert len(rows) == 4
        places.add((int(rows.min()), int(columns.min())))
    assert places == {(0, 0), (0, 1), (1, 0), (1, 1)}
    for height, width in ((4, 10), (10, 4)):
        square = RandomErasing(probability=1.0, area=(0.4, 0.4), aspect=(1.0, 1.0))
        random = np.random.default_rng(1)
        assert (square.erased(white(height, width), random, MEAN) == 255).all()
        again = np.random.default_rng(1)
        again.random(1 + 2 * 100)  # whether at all, and a hundred boxes of 4 x 4
        assert random.random() == again.random()


def test_noise_includes_the_darkest_and_brightest_level() -> None:
    settings = RandomErasing(probability=1.0, area=(0.3, 0.4))
    after = settings.erased(np.full((90, 90, 3), 7, np.uint8), np.random.default_rng(1), MEAN)
    assert (after.min(), after.max()) == (0, 255)
