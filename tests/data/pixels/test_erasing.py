import numpy as np
import pytest

from jumar.data.pixels.erasing import NoErasing, RandomErasing
from jumar.ground.errors import UserError
from jumar.settings import checked

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


def test_as_many_pictures_are_erased_as_asked_for() -> None:
    settings = RandomErasing(probability=0.25)
    random = np.random.default_rng(1)
    erased = [(settings.erased(white(), random, MEAN) != 255).any() for _ in range(400)]
    assert np.mean(erased) == pytest.approx(0.25, abs=0.07)


def test_the_same_generator_erases_the_same_and_none_draws_nothing() -> None:
    settings = RandomErasing(probability=1.0)
    one, other = (settings.erased(white(), np.random.default_rng(3), MEAN) for _ in range(2))
    assert np.array_equal(one, other)
    random = np.random.default_rng(3)
    NoErasing().erased(white(), random, MEAN)
    assert random.random() == np.random.default_rng(3).random()


def test_a_picture_into_which_no_box_fits_stays_whole() -> None:
    after = RandomErasing(probability=1.0).erased(white(1, 1), np.random.default_rng(1), MEAN)
    assert (after == 255).all()


def test_what_is_no_range_is_refused() -> None:
    with pytest.raises(UserError, match="smallest and the largest"):
        checked(RandomErasing(area=(0.5, 0.2)))
