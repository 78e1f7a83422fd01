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


def test_a_clip_with_every_change_switched_off_is_the_clip() -> None:
    np.testing.assert_array_equal(changed(PLAIN, SPEECH), SPEECH / 32768)


@given(st.integers(0, 10_000))
def test_a_shift_moves_the_clip_by_at_most_its_range_and_fills_with_zeros(seed: int) -> None:
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


def test_the_background_has_the_share_and_the_loudness_of_the_settings() -> None:
    data = replace(PLAIN, background_frequency=0.8, background_volume=0.1)
    silence = np.zeros(LENGTH, dtype=np.int16)
    loudness = np.array([changed(data, silence, seed).std() for seed in range(300)])
    assert np.mean(loudness > 0) == pytest.approx(0.8, abs=0.07)
    full = NOISE.std() / 32768
    assert loudness.max() == pytest.approx(0.1 * full, rel=0.05)
    assert loudness[loudness > 0].mean() == pytest.approx(0.05 * full, rel=0.1)


def test_silence_is_background_alone() -> None:
    data = replace(PLAIN, background_frequency=1, gain_db=6, speed=0.2, time_shift_ms=100)
    silence = np.zeros(LENGTH, dtype=np.int16)
    for seed in range(5):
        np.testing.assert_array_equal(changed(data, None, seed), changed(data, silence, seed))


def test_a_ratio_of_speech_to_noise_is_kept() -> None:
    data = replace(PLAIN, background_frequency=1, background_snr_db=(10.0, 10.0))
    added = changed(data, SPEECH, 3) - SPEECH / 32768
    ratio = 10 * np.log10(np.mean((SPEECH / 32768.0) ** 2) / np.mean(added**2))
    assert ratio == pytest.approx(10, abs=0.01)


def test_what_is_too_loud_is_clipped() -> None:
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


def test_made_noises_are_white_and_pink_and_always_the_same() -> None:
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
