"""Clips of the same length as int16, decoded once for all processes."""

import mmap

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from jumar.data.speech.speech_commands import Speech
from jumar.data.speech.wav import Samples, read_wav, resample, to_int16

Clip = NDArray[np.int16]


def fit_clip(samples: Samples, length: int) -> Samples:
    """Return the first `length` samples, padded with zeros if there are fewer."""
    if len(samples) >= length:
        return samples[:length]
    return np.pad(samples, (0, length - len(samples)))


class DecodedClips:
    """Clips as int16 [samples], decoded on first use and cached for all processes.

    The memory is anonymous and shared, so that workers forked later fill it for each other. A clip
    counts as cached only if its checksum exists and matches: another process may be writing it at
    the same time, and processors differ in the order in which writes become visible.

    Args:
        speech: The undecoded clips.
        rate: Sampling rate to convert to, per second.
        samples: Length of a clip.
        keep_bytes: Maximum size of the cache, which contains the first clips.
    """

    def __init__(self, speech: Speech, *, rate: int, samples: int, keep_bytes: int) -> None:
        self._speech, self._rate, self._samples = speech, rate, samples
        self._cached_count = min(len(speech.word_of), keep_bytes // (2 * samples))
        self._allocate()

    def _allocate(self) -> None:
        if self._cached_count:
            clips, sums = (
                mmap.mmap(-1, self._cached_count * size) for size in (2 * self._samples, 8)
            )
            self._clips = np.frombuffer(clips, np.int16).reshape(self._cached_count, self._samples)
            self._sums = np.frombuffer(sums, np.uint64)

    def __getstate__(self) -> tuple[Speech, int, int, int]:
        return self._speech, self._rate, self._samples, self._cached_count

    def __setstate__(self, state: tuple[Speech, int, int, int]) -> None:
        self._speech, self._rate, self._samples, self._cached_count = state
        self._allocate()

    def __getitem__(self, index: int) -> Clip:
        """Return a clip, which must not be modified; raises `CorruptRecord` if it is unreadable."""
        if index >= self._cached_count:
            return self._decode(index)
        row, checksum = self._clips[index], int(self._sums[index])
        if checksum and checksum == _checksum(row):
            return row
        clip = self._decode(index)
        row[:] = clip
        self._sums[index] = _checksum(clip)
        return clip

    def _decode(self, index: int) -> Clip:
        record = self._speech.source.read(index)
        wave = read_wav(record.encoded, record.origin)
        return to_int16(fit_clip(resample(wave, self._rate), self._samples))


def _checksum(clip: Clip) -> int:
    """Return a checksum that is never 0, the value of unused memory."""
    return google_crc32c.value(clip) | 1 << 32
