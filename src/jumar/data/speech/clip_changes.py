"""Augments clips: shifts in time, background noise, and changes that the original lacks."""

import math
from collections.abc import Sequence

import numpy as np

from jumar.data.speech.decoded_clips import Clip
from jumar.data.speech.keyword_data import KeywordData
from jumar.data.speech.wav import Samples, to_int16

_NOISE = 4
"""First entropy word for generated noise; samplers use 1 to 3."""
_NOISE_SECONDS = 60
_NOISE_DEVIATION = 0.25


def changed_clip(
    clip: Clip | None, noises: Sequence[Clip], data: KeywordData, random: np.random.Generator
) -> Samples:
    """Augment a clip for training: shift it in time, add background noise, clip it to -1..1.

    Args:
        clip: int16 [samples]; None for silence, which is only background noise.
        noises: The background noises.
        data: The settings.
        random: The random generator of this sample in this epoch; the drawn values do not depend on
            the settings.
    """
    length = data.clip_samples
    row = np.empty(length, dtype=np.float32)
    max_shift = min(int(data.time_shift_ms * data.sample_rate / 1_000), length)
    # Python floats: products with numpy's would be float64.
    move, presence, loudness, gain, speed, offset, choice = random.random(7).tolist()
    shift = int(move * 2 * max_shift) - max_shift
    if clip is None:
        row.fill(0)
    else:
        source = clip
        if data.speed:
            source = _at_speed(clip, 1 + data.speed * (2 * speed - 1))
        scale = np.float32(2.0**-15 * 10 ** (data.gain_db * (2 * gain - 1) / 20))
        destination, start = max(shift, 0), max(-shift, 0)
        np.multiply(
            source[start : length - destination], scale, out=row[destination : length - start]
        )
        row[:destination] = row[length - start :] = 0
    if noises and presence < data.background_frequency:
        noise = noises[int(choice * len(noises))]
        begin = int(offset * (len(noise) - length))
        background = noise[begin : begin + length].astype(np.float32)
        if clip is None or not data.background_snr_db:
            background *= loudness * data.background_volume * 2.0**-15
        else:
            background *= _noise_factor(row, background, loudness, data.background_snr_db)
        row += background
    return np.clip(row, -1.0, 1.0, out=row)


def _noise_factor(
    speech: Samples, noise: Samples, fraction: float, ratios: Sequence[float]
) -> float:
    """Return the noise factor for a signal-to-noise ratio drawn from the range in the settings."""
    low, high = ratios
    power = float(np.dot(noise, noise))
    if not power:
        return 0.0
    ratio = 10 ** ((low + fraction * (high - low)) / 10)
    return math.sqrt(float(np.dot(speech, speech)) / (power * ratio))


def _at_speed(clip: Clip, speed: float) -> Samples:
    """Speed up or slow down a clip around its centre, which also changes its pitch."""
    times = np.arange(len(clip))
    middle = len(clip) / 2
    return np.interp((times - middle) * speed + middle, times, clip, left=0, right=0).astype(
        np.float32
    )


def made_noises(rate: int) -> list[Clip]:
    """Return one minute each of white and pink noise, int16, identical at every call.

    Their standard deviation is a quarter of full scale.
    """
    random = np.random.default_rng((_NOISE, rate))
    white = random.standard_normal(_NOISE_SECONDS * rate, dtype=np.float32)
    spectrum = np.fft.rfft(white)
    spectrum[0] = 0
    # Power is proportional to 1/f, so amplitude to 1 / sqrt(f).
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    pink = np.fft.irfft(spectrum, len(white)).astype(np.float32)
    return [to_int16(noise * (_NOISE_DEVIATION / noise.std())) for noise in (white, pink)]
