import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import fft

from jumar.models.mfcc import Mfcc, PowerSpectrogram


def noise(clips: int, samples: int) -> torch.Tensor:
    return torch.rand(clips, samples, generator=torch.Generator().manual_seed(1)) * 2 - 1


@settings(max_examples=40)
@given(window=st.integers(2, 70), stride=st.integers(1, 40), more=st.integers(0, 90))
def test_power_matches_the_windowed_fourier_transform(window: int, stride: int, more: int) -> None:
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
        result = spectrogram(audio)
        assert result.shape == expected.shape
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-5 * expected.max())


def test_selected_bins_equal_those_of_the_full_transform() -> None:
    audio = noise(1, 1000)
    every = PowerSpectrogram(window_samples=480, stride_samples=160)(audio)
    for matrices in (False, True):
        some = PowerSpectrogram(
            window_samples=480, stride_samples=160, bins=range(3, 40), matrices=matrices
        )
        torch.testing.assert_close(some(audio), every[..., 3:40], rtol=1e-4, atol=1e-4)


def test_frames_and_coefficients_have_the_expected_count() -> None:
    for window, stride, coefficients in ((640, 320, 10), (640, 640, 10), (480, 160, 40)):
        mfcc = Mfcc(window_samples=window, stride_samples=stride, coefficients=coefficients)
        result = mfcc(noise(2, 16_000))
        assert result.shape == (2, mfcc.frames(16_000), coefficients)
    assert Mfcc().frames(639) == 0


def test_clip_has_the_same_coefficients_in_a_batch_of_any_size() -> None:
    audio = noise(60, 2000)
    mfcc = Mfcc()
    together = mfcc(audio)
    alone = torch.cat([mfcc(clip[None]) for clip in audio])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-4)


def test_coefficients_are_unaffected_by_mixed_precision() -> None:
    audio = noise(2, 3000)
    mfcc = Mfcc()
    expected = mfcc(audio)
    with torch.autocast("cpu", torch.bfloat16):
        result = mfcc(audio)
        assert mfcc.log_mel(audio).dtype == torch.float32
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, expected, rtol=0, atol=0)


def test_silence_is_finite_and_only_affects_the_first_coefficient() -> None:
    result = Mfcc()(torch.zeros(1, 640))[0, 0]
    assert result[0] == pytest.approx(math.sqrt(2 / 40) * 40 * math.log(1e-12), rel=1e-6)
    torch.testing.assert_close(result[1:], torch.zeros(9), rtol=0, atol=1e-3)


def test_tone_is_loudest_in_the_band_around_it() -> None:
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
    with pytest.raises(ValueError, match="40 mel bands, not 41"):
        Mfcc(coefficients=41)
    with pytest.raises(ValueError, match="at 4000 samples"):
        Mfcc(sample_rate=4000)
    with pytest.raises(ValueError, match="frames of 0 samples every 320 are not possible"):
        Mfcc(window_samples=0)
    with pytest.raises(ValueError, match="no bins"):
        PowerSpectrogram(window_samples=16, stride_samples=8, bins=range(12))
    with pytest.raises(ValueError, match="640 samples or more"):
        Mfcc()(torch.zeros(1, 639))


@pytest.mark.parametrize("matrices", [False, True])
def test_coefficients_are_those_of_the_formulas_written_out_with_scipys_transform(
    matrices: bool,
) -> None:
    settings = {"window_samples": 300, "stride_samples": 130, "coefficients": 7, "bands": 12}
    mfcc = Mfcc(sample_rate=8000, lowest=100.0, highest=3000.0, matrices=matrices, **settings)
    audio = noise(3, 1000)
    starts = range(0, 1000 - 300 + 1, 130)
    frames = np.stack([audio.double().numpy()[:, i : i + 300] for i in starts], axis=1)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(300) / 300)
    magnitudes = np.abs(np.fft.rfft(frames * hann, 512))
    edges = np.linspace(*(1127 * np.log1p(np.array([100.0, 3000.0]) / 700)), 14)
    mels = 1127 * np.log1p(np.arange(257) * 8000 / 512 / 700)
    filters = np.array(
        [np.interp(mels, edges[n : n + 3], [0, 1, 0], left=0, right=0) for n in range(12)]
    )
    energies = np.log(magnitudes @ filters.T)
    np.testing.assert_allclose(mfcc.log_mel(audio).numpy(), energies, rtol=1e-3, atol=1e-3)
    expected = fft.dct(energies, type=2, axis=-1)[..., :7] / 2 * np.sqrt(2 / 12)
    result = mfcc(audio)
    assert result.shape == (3, len(starts), 7)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-3, atol=2e-3)


def test_numbers_at_their_limits_are_accepted_and_others_named() -> None:
    assert Mfcc(coefficients=40)(noise(1, 640)).shape == (1, 1, 40)
    assert Mfcc(coefficients=1)(noise(1, 640)).shape == (1, 1, 1)
    assert Mfcc(sample_rate=8000, lowest=0.0, highest=4000.0).frames(960) == 2
    assert PowerSpectrogram(window_samples=2, stride_samples=1)(noise(1, 3)).shape == (1, 2, 2)
    assert PowerSpectrogram(window_samples=16, stride_samples=8, bins=range(9))(
        noise(1, 16)
    ).shape == (1, 1, 9)
    for call, message in (
        (lambda: Mfcc(coefficients=0), "from 1 to the 40 mel bands, not 0"),
        (
            lambda: Mfcc(lowest=-1.0),
            "bands from -1.0 to 4000.0 Hz are not possible at 16000",
        ),
        (
            lambda: Mfcc(lowest=9.0, highest=9.0),
            "bands from 9.0 to 9.0 Hz are not possible at 16000",
        ),
        (
            lambda: Mfcc(highest=8000.5),
            "bands from 20.0 to 8000.5 Hz are not possible at 16000",
        ),
        (
            lambda: PowerSpectrogram(window_samples=1, stride_samples=1),
            "frames of 1 samples every 1 are not possible",
        ),
        (
            lambda: PowerSpectrogram(window_samples=4, stride_samples=0),
            "frames of 4 samples every 0 are not possible",
        ),
        (
            lambda: PowerSpectrogram(window_samples=16, stride_samples=8, bins=range(3, 10)),
            "a transform of 16 samples has no bins range(3, 10)",
        ),
        (
            lambda: PowerSpectrogram(window_samples=16, stride_samples=8, bins=range(-1, 4)),
            "a transform of 16 samples has no bins range(-1, 4)",
        ),
        (
            lambda: PowerSpectrogram(window_samples=16, stride_samples=8, bins=range(4, 4)),
            "a transform of 16 samples has no bins range(4, 4)",
        ),
        (
            lambda: PowerSpectrogram(window_samples=4, stride_samples=2)(noise(1, 9)[0]),
            "audio must be [N, 4 samples or more], not [9]",
        ),
        (lambda: Mfcc()(noise(2, 639)), "audio must be [N, 640 samples or more], not [2, 639]"),
    ):
        with pytest.raises(ValueError, match=r"no|audio") as error:
            call()
        assert message in str(error.value)


def test_default_front_end_is_the_published_one() -> None:
    """40 ms every 20 ms at 16 kHz, 10 of 40 bands between 20 and 4000 Hz."""
    report = Mfcc(
        sample_rate=16_000,
        window_samples=640,
        stride_samples=320,
        coefficients=10,
        bands=40,
        lowest=20.0,
        highest=4000.0,
        matrices=False,
    )
    audio = noise(11, 1400)
    assert torch.equal(Mfcc()(audio), report(audio))
    assert (report.sample_rate, report.window_samples, report.stride_samples) == (16_000, 640, 320)
    assert [report.frames(samples) for samples in (639, 640, 959, 960)] == [0, 1, 1, 2]
