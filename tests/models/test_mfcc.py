import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.models.mfcc import Mfcc, PowerSpectrogram


def noise(clips: int, samples: int) -> torch.Tensor:
    return torch.rand(clips, samples, generator=torch.Generator().manual_seed(1)) * 2 - 1


@settings(max_examples=40)
@given(window=st.integers(2, 70), stride=st.integers(1, 40), more=st.integers(0, 90))
def test_power_is_that_of_the_windowed_fourier_transform(
    window: int, stride: int, more: int
) -> None:
    audio = noise(2, window + more)
    hann = 0.5 - 0.5 * np.cos(2 * math.pi * np.arange(window) / window)
    length = 1
    while length < window:
        length *= 2
    starts = range(0, more + 1, stride)
    frames = np.stack([audio.double().numpy()[:, i : i + window] for i in starts], axis=1)
    expected = np.abs(np.fft.rfft(frames * hann, length)) ** 2
    for matrices in (False, True):
        spectrogram = PowerSpectrogram(
            window_samples=window, stride_samples=stride, matrices=matrices
        )
        found = spectrogram(audio)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5 * expected.max())


def test_wanted_bins_are_those_of_all_bins() -> None:
    audio = noise(1, 1000)
    every = PowerSpectrogram(window_samples=480, stride_samples=160)(audio)
    for matrices in (False, True):
        some = PowerSpectrogram(
            window_samples=480, stride_samples=160, bins=range(3, 40), matrices=matrices
        )
        torch.testing.assert_close(some(audio), every[..., 3:40], rtol=1e-4, atol=1e-4)


def test_frames_and_coefficients_are_as_many_as_said() -> None:
    for window, stride, coefficients in ((640, 320, 10), (640, 640, 10), (480, 160, 40)):
        mfcc = Mfcc(window_samples=window, stride_samples=stride, coefficients=coefficients)
        found = mfcc(noise(2, 16_000))
        assert found.shape == (2, mfcc.frames(16_000), coefficients)
    assert Mfcc().frames(639) == 0


def test_a_clip_has_the_same_coefficients_in_a_batch_of_any_size() -> None:
    audio = noise(60, 2000)
    mfcc = Mfcc()
    together = mfcc(audio)
    alone = torch.cat([mfcc(clip[None]) for clip in audio])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-4)


def test_mixed_precision_does_not_reach_the_coefficients() -> None:
    audio = noise(2, 3000)
    mfcc = Mfcc()
    expected = mfcc(audio)
    with torch.autocast("cpu", torch.bfloat16):
        found = mfcc(audio)
        assert mfcc.log_mel(audio).dtype == torch.float32
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_silence_is_finite_and_only_in_the_first_coefficient() -> None:
    found = Mfcc()(torch.zeros(1, 640))[0, 0]
    assert found[0] == pytest.approx(math.sqrt(2 / 40) * 40 * math.log(1e-12), rel=1e-6)
    torch.testing.assert_close(found[1:], torch.zeros(9), rtol=0, atol=1e-3)


def test_a_tone_is_loudest_in_the_band_around_it() -> None:
    low, high = 1127 * np.log1p(np.array([20.0, 4000.0]) / 700)
    mels = np.linspace(low, high, 42)[1:-1]
    centres = 700 * np.expm1(mels / 1127)
    times = torch.arange(640, dtype=torch.float64) / 16_000
    for band in (10, 25, 39):
        tone = torch.sin(2 * math.pi * centres[band] * times).float()[None]
        assert int(Mfcc().log_mel(tone)[0, 0].argmax()) == band


def test_front_end_adds_nothing_to_a_checkpoint() -> None:
    assert not Mfcc().state_dict()
    assert not list(Mfcc().parameters())


def test_impossible_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="no 41 coefficients"):
        Mfcc(coefficients=41)
    with pytest.raises(ValueError, match="at 4000 samples"):
        Mfcc(sample_rate=4000)
    with pytest.raises(ValueError, match="no frames"):
        Mfcc(window_samples=0)
    with pytest.raises(ValueError, match="no bins"):
        PowerSpectrogram(window_samples=16, stride_samples=8, bins=range(12))
    with pytest.raises(ValueError, match="640 samples or more"):
        Mfcc()(torch.zeros(1, 639))
