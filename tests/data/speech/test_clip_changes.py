from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.speech.clip_changes import changed_clip, made_noises
from jumar.data.speech.keyword_data import KeywordData

LENGTH = 16_000
PLAIN = KeywordData(path="x", time_shift_ms=0, background_frequency=0)
SPEECH = (np.sin(np.arange(LENGTH) / 5) * 9_000).astype(np.int16)
NOISE = np.random.default_rng(1).integers(-9_000, 9_000, 5 * LENGTH).astype(np.int16)


def changed(data: KeywordData, clip: np.ndarray | None, seed: int = 0) -> np.ndarray:
    return changed_clip(clip, [NOISE], data, np.random.default_rng(seed))


def test_clip_is_unchanged_with_every_change_off() -> None:
    np.testing.assert_array_equal(changed(PLAIN, SPEECH), SPEECH / 32768)


@given(st.integers(0, 10_000))
def test_shift_moves_the_clip_by_at_most_its_range_and_fills_with_zeros(seed: int) -> None:
    clip = np.arange(1, LENGTH + 1, dtype=np.int16)
    row = changed(replace(PLAIN, time_shift_ms=100), clip, seed) * 32768
    kept = np.flatnonzero(row)
    shift = int(kept[0] - (row[kept[0]] - 1))
    assert -1600 <= shift < 1600
    # The original pads one side with zeros and cuts the other.
    expected = np.pad(clip, (max(shift, 0), max(-shift, 0)))[max(-shift, 0) :][:LENGTH]
    np.testing.assert_array_equal(row, expected)


def test_shifts_reach_both_ends_of_the_range() -> None:
    clip = np.zeros(LENGTH, dtype=np.int16)
    clip[LENGTH // 2] = 1000
    data = replace(PLAIN, time_shift_ms=1)
    places = {int(changed(data, clip, seed).argmax()) - LENGTH // 2 for seed in range(400)}
    assert places == set(range(-16, 16))


def test_background_has_the_configured_share_and_loudness() -> None:
    data = replace(PLAIN, background_frequency=0.8, background_volume=0.1)
    silence = np.zeros(LENGTH, dtype=np.int16)
    loudness = np.array([changed(data, silence, seed).std() for seed in range(300)])
    assert np.mean(loudness > 0) == pytest.approx(0.8, abs=0.07)
    full = NOISE.std() / 32768
    assert loudness.max() == pytest.approx(0.1 * full, rel=0.05)
    assert loudness[loudness > 0].mean() == pytest.approx(0.05 * full, rel=0.1)


def test_silence_is_background_only() -> None:
    data = replace(PLAIN, background_frequency=1, gain_db=6, speed=0.2, time_shift_ms=100)
    silence = np.zeros(LENGTH, dtype=np.int16)
    for seed in range(5):
        np.testing.assert_array_equal(changed(data, None, seed), changed(data, silence, seed))


def test_signal_to_noise_ratio_is_kept() -> None:
    data = replace(PLAIN, background_frequency=1, background_snr_db=(10.0, 10.0))
    added = changed(data, SPEECH, 3) - SPEECH / 32768
    ratio = 10 * np.log10(np.mean((SPEECH / 32768.0) ** 2) / np.mean(added**2))
    assert ratio == pytest.approx(10, abs=0.01)


def test_loud_samples_are_clipped() -> None:
    data = replace(PLAIN, background_frequency=1, background_volume=1)
    clip = np.full(LENGTH, 32767, dtype=np.int16)
    row = changed(data, clip, 2)
    assert row.max() == 1.0
    assert np.abs(row).max() <= 1.0
    assert max(changed(replace(PLAIN, gain_db=9), clip, seed).max() for seed in range(9)) == 1.0


def test_gain_and_speed_stay_within_their_ranges() -> None:
    peaks = [changed(replace(PLAIN, gain_db=6), SPEECH, seed).max() for seed in range(200)]
    half, twice = (SPEECH.max() / 32768 * 10 ** (db / 20) for db in (-6, 6))
    assert half <= min(peaks) < 1.1 * half
    assert 0.9 * twice < max(peaks) <= twice
    crossings = [
        np.count_nonzero(np.diff(np.signbit(changed(replace(PLAIN, speed=0.2), SPEECH, seed))))
        for seed in range(100)
    ]
    # Faster, the clip ends earlier and zeros follow: the crossings stay as many. Slower, it is cut.
    plain = np.count_nonzero(np.diff(np.signbit(SPEECH)))
    assert 0.78 * plain < min(crossings) < 0.85 * plain
    assert plain - 2 <= max(crossings) <= plain + 2


def test_generated_noises_are_white_and_pink_and_reproducible() -> None:
    white, pink = made_noises(16_000)
    again = made_noises(16_000)
    assert np.array_equal(white, again[0])
    assert np.array_equal(pink, again[1])

    def octaves(noise: np.ndarray) -> np.ndarray:
        power = np.abs(np.fft.rfft(noise / 32768.0)) ** 2
        edges = [int(edge * len(power) / 8_000) for edge in (500, 1_000, 2_000, 4_000)]
        return np.array([power[a:b].sum() for a, b in pairwise(edges)])

    # White noise doubles its power from octave to octave, pink noise keeps it.
    np.testing.assert_allclose(octaves(white)[1:] / octaves(white)[:-1], 2, rtol=0.05)
    np.testing.assert_allclose(octaves(pink)[1:] / octaves(pink)[:-1], 1, rtol=0.05)


@pytest.mark.parametrize("seed", range(6))
def test_changes_follow_from_the_draws_in_order(seed: int) -> None:
    """Shift, whether noise comes, its loudness, gain, speed, the noise's place and which one."""
    data = replace(
        PLAIN,
        time_shift_ms=50,
        background_frequency=0.5,
        background_volume=0.3,
        gain_db=6,
        speed=0.1,
    )
    noises = [NOISE, NOISE[::-1].copy(), NOISE[: LENGTH + 1]]
    row = changed_clip(SPEECH, noises, data, np.random.default_rng(seed))
    draws = np.random.default_rng(seed).random(7).tolist()
    move, present, loudness, gain, speed, place, which = draws
    shift = int(move * 1600) - 800
    rate = 0.9 + 0.2 * speed
    places = (np.arange(LENGTH) - LENGTH / 2) * rate + LENGTH / 2
    clip = np.interp(places, np.arange(LENGTH), SPEECH, left=0, right=0)
    clip = clip / 32768 * 10 ** ((12 * gain - 6) / 20)
    expected = np.zeros(LENGTH)
    expected[max(shift, 0) : LENGTH + min(shift, 0)] = clip[max(-shift, 0) : LENGTH - max(shift, 0)]
    if present < 0.5:
        noise = noises[int(3 * which)]
        begin = int(place * (len(noise) - LENGTH))
        expected += noise[begin : begin + LENGTH] / 32768 * loudness * 0.3
    np.testing.assert_allclose(row, np.clip(expected, -1, 1), atol=2e-6)


def test_ratio_is_drawn_uniformly_in_decibels() -> None:
    data = replace(PLAIN, background_frequency=1, background_snr_db=(-5.0, 15.0))
    for seed in range(5):
        added = changed(data, SPEECH, seed) - SPEECH / 32768
        result = 10 * np.log10(np.mean((SPEECH / 32768.0) ** 2) / np.mean(added**2))
        share = np.random.default_rng(seed).random(3)[2]
        assert result == pytest.approx(-5 + 20 * share, abs=0.05)


def test_silent_or_absent_noise_adds_nothing() -> None:
    data = replace(PLAIN, background_frequency=1, background_snr_db=(1.0, 1.0))
    quiet = np.zeros(2 * LENGTH, np.int16)
    random = np.random.default_rng(0)
    np.testing.assert_array_equal(changed_clip(SPEECH, [quiet], data, random), SPEECH / 32768)
    np.testing.assert_array_equal(changed_clip(SPEECH, [], data, random), SPEECH / 32768)
    # Silence gets its noise by volume, regardless of the requested ratio.
    loud = changed_clip(None, [NOISE], replace(data, background_volume=0.2), random)
    assert 0 < loud.std() <= 0.2 * NOISE.std() / 32768 * 1.05


def test_shift_is_at_most_the_clip_length() -> None:
    data = KeywordData(path="x", clip_ms=10, time_shift_ms=500, background_frequency=0)
    clip = np.arange(1, 161, dtype=np.int16)
    seen: set[int] = set()
    for seed in range(300):
        row = changed_clip(clip, [], data, np.random.default_rng(seed)) * 32768
        seen.add(np.count_nonzero(row))
        assert row.shape == (160,)
    assert min(seen) <= 3
    assert max(seen) >= 157


def test_generated_noises_last_a_minute_at_a_quarter_of_full_scale() -> None:
    noises = made_noises(1_000)
    assert [len(noise) for noise in noises] == [60_000, 60_000]
    for noise in noises:
        assert noise.dtype == np.int16
        assert noise.std() == pytest.approx(8192, rel=1e-3)
    drawn = np.random.default_rng((4, 1_000)).standard_normal(60_000, dtype=np.float32)
    np.testing.assert_allclose(noises[0] / 8192, np.clip(drawn / drawn.std(), -4, 4), atol=1e-3)
    spectrum = np.fft.rfft(drawn.astype(np.float64))
    frequencies = np.arange(len(spectrum))
    pink = np.fft.irfft(np.where(frequencies, spectrum / np.sqrt(np.maximum(frequencies, 1)), 0))
    np.testing.assert_allclose(noises[1] / 8192, np.clip(pink / pink.std(), -4, 4), atol=1e-3)
