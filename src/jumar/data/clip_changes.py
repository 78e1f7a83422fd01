"""What training does to a clip: moved in time, background noise, and what the original lacks."""

import math
from collections.abc import Sequence

import numpy as np

from jumar.data.decoded_clips import Clip
from jumar.data.keyword_data import KeywordData
from jumar.data.wav import Samples, to_int16

_NOISE = 4
"""First word of the entropy of what is made here; 1 to 3 are those of samplers."""
_NOISE_SECONDS = 60
_NOISE_DEVIATION = 0.25


def change_clip(
    row: Samples,
    clip: Clip | None,
    noises: Sequence[Clip],
    data: KeywordData,
    random: np.random.Generator,
) -> None:
    """Write a clip as training hears it: moved in time, with background noise, clipped to -1..1.

    Args:
        row: float32 [samples], overwritten.
        clip: int16 [samples]; None for silence, which is background noise alone.
        noises: What the background is taken from.
        data: Settings.
        random: Draws, in the same order whatever the settings are.
    """
    length = len(row)
    furthest = min(int(data.time_shift_ms * data.sample_rate / 1_000), length)
    shift = int(random.integers(-furthest, furthest)) if furthest else 0
    present, loudness, gain, speed, place, which = random.random(6)
    row[:] = 0
    if clip is not None:
        source = clip
        if data.speed:
            source = _at_speed(clip, 1 + data.speed * (2 * speed - 1))
        scale = 2.0**-15 * 10 ** (data.gain_db * (2 * gain - 1) / 20)
        to, start = max(shift, 0), max(-shift, 0)
        moved = row[to : length - start]
        moved[:] = source[start : length - to]
        moved *= scale
    if not noises or present >= data.background_frequency:
        return
    noise = noises[int(which * len(noises))]
    begin = int(place * (len(noise) - length))
    background = noise[begin : begin + length].astype(np.float32)
    background *= (
        _volume(row, background, loudness, data)
        if clip is not None
        else (loudness * data.background_volume * 2.0**-15)
    )
    row += background
    np.clip(row, -1.0, 1.0, out=row)


def _volume(speech: Samples, noise: Samples, share: float, data: KeywordData) -> float:
    """The factor on int16 noise under speech."""
    if not data.background_snr_db:
        return share * data.background_volume * 2.0**-15
    low, high = data.background_snr_db
    power = float(np.dot(noise, noise))
    if not power:
        return 0.0
    ratio = 10 ** ((low + share * (high - low)) / 10)
    return math.sqrt(float(np.dot(speech, speech)) / (power * ratio))


def _at_speed(clip: Clip, speed: float) -> Samples:
    """A clip played faster or slower, and so higher or lower, about its middle."""
    places = np.arange(len(clip))
    middle = len(clip) / 2
    return np.interp((places - middle) * speed + middle, places, clip, left=0, right=0).astype(
        np.float32
    )


def made_noises(rate: int) -> list[Clip]:
    """A minute of white and one of pink noise, int16, the same at every call.

    Their standard deviation is a quarter of the full scale.
    """
    random = np.random.default_rng((_NOISE, rate))
    white = random.standard_normal(_NOISE_SECONDS * rate, dtype=np.float32)
    spectrum = np.fft.rfft(white)
    spectrum[0] = 0
    # Power in proportion to 1/f: the amplitude falls with the root of the frequency.
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    pink = np.fft.irfft(spectrum, len(white)).astype(np.float32)
    return [to_int16(noise * (_NOISE_DEVIATION / noise.std())) for noise in (white, pink)]
