"""How strong the noise is, against formulas; how it is stored."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.denoising.noise import Level, NoiseSettings, add_noise, draw_level
from jumar.ground.errors import UserError

GREY = 128
FLAT = np.full((200, 200, 3), GREY, np.uint8)


def random(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("level", "deviation"),
    [
        (Level("gaussian", 20.0), 20.0),
        # A pixel of mean n photons varies by sqrt(n); a white one has `value` of them.
        (Level("poisson", 100.0), 255 / 100 * np.sqrt(100 * GREY / 255)),
        # sqrt(A D s / Nsat + D^2 (A CT1 + CT2)^2), arXiv 1904.10898
        (
            Level("camera", 16.0, 2.0),
            255 * np.sqrt(16 * 2 * GREY / 255 / 7480 + 4 * (16 * 1.25e-4 + 1.11e-4) ** 2),
        ),
    ],
)
def test_noise_has_the_formulas_strength_and_zero_mean(level: Level, deviation: float) -> None:
    noise = add_noise(FLAT, level, random(), "float") * 255 - GREY
    assert noise.dtype == np.float32
    assert noise.std() == pytest.approx(deviation, rel=0.01)
    assert abs(noise.mean()) < 4 * deviation / np.sqrt(noise.size)


@pytest.mark.parametrize("gain", [0.1, 64.0])
def test_black_image_gets_only_the_sensors_dark_noise(gain: float) -> None:
    """At the small gain mostly its constant, at the large one what grows with the gain."""
    noise = add_noise(np.zeros_like(FLAT), Level("camera", gain, 2.0), random(), "float")
    assert noise.std() == pytest.approx(2 * (gain * 1.25e-4 + 1.11e-4), rel=0.01)


def test_camera_noise_of_a_black_image_is_finite_and_small() -> None:
    black = np.zeros((50, 50), np.uint8)
    noise = add_noise(black, Level("camera", 64.0, 4.0), random(), "float") * 255
    assert 0 < noise.std() < 10


def test_bytes_are_clipped_and_truncated_like_a_numpy_cast() -> None:
    clean = random(3).integers(0, 256, (40, 40), dtype=np.uint8)
    as_float = add_noise(clean, Level("gaussian", 60.0), random(), "float") * 255
    as_bytes = add_noise(clean, Level("gaussian", 60.0), random(), "uint8")
    assert as_bytes.dtype == np.uint8
    assert as_float.min() < 0
    assert as_float.max() > 255
    # A value that float32 puts just below or above a whole level may fall to either side.
    assert np.abs(as_bytes - np.floor(as_float.clip(0, 255))).max() <= 1
    assert np.mean(as_bytes == np.floor(as_float.clip(0, 255))) > 0.999


@given(st.floats(0, 80), st.integers(0, 99))
def test_equal_seeds_give_equal_noise(sigma: float, seed: int) -> None:
    clean = np.full((4, 5), 77, np.uint8)
    first, second = (
        add_noise(clean, Level("gaussian", sigma), random(seed), "float") for _ in range(2)
    )
    assert np.array_equal(first, second)


def test_zero_noise_leaves_the_image_unchanged() -> None:
    clean = random().integers(0, 256, (9, 9), dtype=np.uint8)
    assert np.array_equal(add_noise(clean, Level("gaussian", 0.0), random(), "uint8"), clean)


def test_levels_are_uniform_in_their_range_or_constant() -> None:
    drawn = [draw_level(NoiseSettings(sigma=(10.0, 30.0)), random(seed)) for seed in range(400)]
    values = np.array([level.value for level in drawn])
    assert 10 <= values.min() < 11
    assert 29 < values.max() <= 30
    assert values.mean() == pytest.approx(20, abs=1)
    assert draw_level(NoiseSettings(sigma=(25.0,)), random()) == Level("gaussian", 25.0)


def test_mixture_is_half_gaussian_and_half_camera() -> None:
    kinds = [draw_level(NoiseSettings(kind="mixed"), random(seed)).kind for seed in range(400)]
    assert set(kinds) == {"gaussian", "camera"}
    assert kinds.count("camera") == pytest.approx(200, abs=60)


@pytest.mark.parametrize("sigma", [(), (30.0, 10.0), (1.0, 2.0, 3.0)])
def test_invalid_ranges_are_refused(sigma: tuple[float, ...]) -> None:
    with pytest.raises(UserError, match=r"noise\.sigma"):
        NoiseSettings(sigma=sigma).check()


@pytest.mark.parametrize(("gain", "digital"), [(16.0, 2.0), (0.5, 1.0), (64.0, 4.0)])
def test_camera_noise_is_gaussian_noise_times_its_formula_at_every_level(
    gain: float, digital: float
) -> None:
    """The same draws at a deviation of 1 and at that of the camera, arXiv 1904.10898."""
    clean = np.arange(256, dtype=np.uint8)
    unit = add_noise(clean, Level("gaussian", 1.0), random(), "float").astype(np.float64) * 255
    camera = add_noise(clean, Level("camera", gain, digital), random(), "float").astype(np.float64)
    far = np.abs(unit - clean) > 0.5
    result = ((camera * 255 - clean) / (unit - clean))[far]
    brightness = clean[far] / 255
    variance = gain * digital * brightness / 7480
    variance += (digital * (gain * 1.25e-4 + 1.11e-4)) ** 2
    np.testing.assert_allclose(result, 255 * np.sqrt(variance), rtol=2e-4, atol=2e-4)
    assert np.median(result / np.sqrt(variance)) == pytest.approx(255, rel=1e-5)


@pytest.mark.parametrize("photons", [1.0, 51.0, 1000.0])
def test_photon_counts_are_integers(photons: float) -> None:
    clean = np.tile(np.arange(256, dtype=np.uint8), (50, 1))
    counts = random(4).poisson(clean / 255 * photons)
    result = add_noise(clean, Level("poisson", photons), random(4), "float")
    assert result.dtype == np.float32
    close = np.isclose(result, counts / photons, rtol=1e-5, atol=1e-7)
    # Rounding of the mean may move a draw in a great many.
    assert close.mean() > 0.999
    as_bytes = add_noise(clean, Level("poisson", photons), random(4), "uint8")
    expected = np.clip(counts * 255 / photons, 0, 255)
    assert np.abs(as_bytes - expected)[close].max() <= 1
    assert (as_bytes <= expected + 1e-3)[close].all()


def test_each_noise_kind_draws_levels_from_its_own_ranges() -> None:
    settings = NoiseSettings(
        sigma=(1.0, 2.0), photons=(30.0, 31.0), analog_gain=(5.0, 6.0), digital_gain=(7.0, 8.0)
    )
    for kind, low in (("gaussian", 1), ("poisson", 30), ("camera", 5)):
        levels = [draw_level(replace(settings, kind=kind), random(seed)) for seed in range(60)]
        assert {level.kind for level in levels} == {kind}
        values = [level.value for level in levels]
        assert low <= min(values) < low + 0.2 < low + 0.8 < max(values) <= low + 1
        digital = [level.digital_gain for level in levels]
        if kind == "camera":
            assert 7 <= min(digital) < 7.2 < 7.8 < max(digital) <= 8
        else:
            assert set(digital) == {1.0}
    fixed = NoiseSettings(kind="camera", analog_gain=(5.0,), digital_gain=(7.0,))
    assert draw_level(fixed, random()) == Level("camera", 5.0, 7.0)
    assert draw_level(NoiseSettings(kind="poisson", photons=(9.0,)), random()).value == 9.0
