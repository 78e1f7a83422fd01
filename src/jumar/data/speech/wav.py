"""WAV files: decoding to float samples, encoding from int16, and resampling.

Format: "Multimedia Programming Interface and Data Specifications 1.0" (IBM and Microsoft, 1991)
and the extensible header of Microsoft's "Multiple Channel Audio Data and WAVE Files" (2001).
"""

import math
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jumar.data.samples import CorruptRecord

Samples = NDArray[np.float32]

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_OTHER_CODINGS = {
    2: "Microsoft's ADPCM",
    6: "A-law",
    7: "mu-law",
    17: "IMA's ADPCM",
    49: "GSM 6.10",
    85: "MP3",
}
_FIXED_FORMAT = struct.Struct("<HHIIHH")
_SUBFORMAT = 24
"""Offset of the encoding in the extensible header: the first two bytes of a GUID."""
_MIN_UNSET_LENGTH = 0x7FFFF000
"""Lengths from this one on mean an unknown length: a program that writes to a pipe cannot seek
back. eSpeak NG leaves exactly this value, others all ones."""
_MAX_CHANNELS = 64
_RATES = range(1_000, 768_001)


@dataclass(frozen=True, eq=False, kw_only=True)
class Wave:
    """Mono sound.

    Attributes:
        samples: float32 [n]; integer formats are scaled to -1..1.
        rate: Samples per second.
    """

    samples: Samples
    rate: int


@dataclass(frozen=True, kw_only=True)
class _Format:
    coding: int
    channels: int
    rate: int
    bits: int

    @property
    def frame_bytes(self) -> int:
        return self.channels * self.bits // 8


def read_wav(encoded: bytes, origin: str) -> Wave:
    """Decode a WAV file of PCM with 8, 16, 24 or 32 bits, or of float with 32 or 64.

    Integers are divided by half their range, as TensorFlow's `decode_wav` divides 16 bits by 32768.
    Channels are averaged. If the length is unknown, the rest of the file is decoded.

    Args:
        encoded: The whole file.
        origin: Its name in error messages.

    Raises:
        CorruptRecord: It is not a WAV file, is damaged or truncated, or has another encoding.
    """
    try:
        form, data = _chunks(encoded)
        samples = _decoded_samples(form, data)
        if not np.isfinite(samples).all():
            raise ValueError("it contains samples that are not finite")
        return Wave(samples=samples, rate=form.rate)
    except ValueError as error:
        raise CorruptRecord(origin, error) from error


def write_wav(samples: NDArray[np.int16], rate: int) -> bytes:
    """Encode samples as a 16-bit mono WAV file.

    Args:
        samples: int16 [n].
        rate: Samples per second.
    """
    data = samples.astype("<i2").tobytes()
    header = _FIXED_FORMAT.pack(_PCM, 1, rate, 2 * rate, 2, 16)
    body = b"".join(
        [b"WAVEfmt ", struct.pack("<I", len(header)), header, b"data", struct.pack("<I", len(data))]
    )
    return b"RIFF" + struct.pack("<I", len(body) + len(data)) + body + data


def resample(wave: Wave, rate: int) -> Samples:
    """Resample with a windowed-sinc polyphase filter (SciPy's default).

    Returns:
        float32 [ceil(n * rate / wave.rate)]; the same array if it already has that rate.
    """
    if wave.rate == rate or not len(wave.samples):
        return wave.samples
    # The import takes half a second, and most data sets have one rate.
    from scipy.signal import resample_poly

    divisor = math.gcd(rate, wave.rate)
    resampled = resample_poly(wave.samples, rate // divisor, wave.rate // divisor)
    return np.asarray(resampled, dtype=np.float32)


def to_int16(samples: Samples) -> NDArray[np.int16]:
    """Convert samples in -1..1 to int16, rounded; louder ones are clipped."""
    return np.clip(np.rint(samples * 32768.0), -32768, 32767).astype(np.int16)


def _chunks(encoded: bytes) -> tuple[_Format, memoryview]:
    if len(encoded) < 12 or encoded[:4] != b"RIFF" or encoded[8:12] != b"WAVE":
        raise ValueError(_not_wav_reason(encoded))
    form: _Format | None = None
    position = 12
    while position + 8 <= len(encoded):
        name = encoded[position : position + 4]
        (length,) = struct.unpack_from("<I", encoded, position + 4)
        start, rest = position + 8, len(encoded) - position - 8
        if name == b"data":
            if form is None:
                raise ValueError("its samples come before its format chunk")
            return form, memoryview(encoded)[start : start + _data_bytes(length, rest, form)]
        if length > rest:
            raise ValueError(
                f"its {_chunk_name(name)} should have {length} bytes, but has {rest}: it is "
                "truncated"
            )
        if name == b"fmt ":
            form = _format(encoded[start : start + length])
        position = start + length + length % 2
    raise ValueError("it has no samples: the file is truncated or damaged")


def _chunk_name(name: bytes) -> str:
    """Return a chunk's four-letter name for messages; in a damaged file, it may be anything."""
    text = name.decode("latin-1").strip()
    return f"chunk '{text}'" if text.isascii() and text.isalnum() else "unnamed chunk"


def _not_wav_reason(encoded: bytes) -> str:
    if not encoded:
        return "the file is empty"
    if encoded[:4] in (b"RIFX", b"RF64", b"BW64"):
        return f"{encoded[:4].decode()} files are not supported; convert it to a plain WAV file"
    formats = {b"OggS": "Ogg", b"fLaC": "FLAC", b"ID3": "MP3", b"FORM": "AIFF"}
    for magic, name in formats.items():
        if encoded.startswith(magic):
            return f"this is a file in {name} format, not WAV; convert it"
    return "not a WAV file: it does not begin with RIFF and WAVE"


def _data_bytes(length: int, rest: int, form: _Format) -> int:
    if length >= _MIN_UNSET_LENGTH or (length == 0 and rest >= form.frame_bytes):
        return rest - rest % form.frame_bytes
    if length > rest:
        raise ValueError(
            f"it should have {length} bytes of samples, but has {rest}: it is truncated"
        )
    if length % form.frame_bytes:
        raise ValueError(
            f"{length} bytes of samples are not a multiple of {form.frame_bytes} bytes per frame"
        )
    return length


def _format(chunk: bytes) -> _Format:
    if len(chunk) < _FIXED_FORMAT.size:
        raise ValueError(f"its format chunk has {len(chunk)} bytes; at least 16 are needed")
    coding, channels, rate, _, frame, bits = _FIXED_FORMAT.unpack_from(chunk)
    if coding == _EXTENSIBLE:
        if len(chunk) < _SUBFORMAT + 2:
            raise ValueError("its extensible format chunk is truncated")
        (coding,) = struct.unpack_from("<H", chunk, _SUBFORMAT)
    if coding not in (_PCM, _FLOAT):
        name = _OTHER_CODINGS.get(coding, f"format {coding}")
        raise ValueError(f"its encoding is {name}; only PCM and float are supported, convert it")
    if bits not in ((8, 16, 24, 32) if coding == _PCM else (32, 64)):
        kind = "PCM" if coding == _PCM else "float"
        raise ValueError(f"{bits}-bit {kind} is not supported")
    if not 1 <= channels <= _MAX_CHANNELS or rate not in _RATES:
        raise ValueError(f"implausible format: {channels} channels at {rate} samples per second")
    form = _Format(coding=coding, channels=channels, rate=rate, bits=bits)
    if frame != form.frame_bytes:
        raise ValueError(
            f"{channels} channels of {bits} bits have {form.frame_bytes} bytes, not {frame}"
        )
    return form


def _decoded_samples(form: _Format, data: memoryview) -> Samples:
    samples = np.empty(len(data) // (form.bits // 8), dtype=np.float32)
    if form.coding == _FLOAT:
        with np.errstate(over="ignore"):
            samples[:] = np.frombuffer(data, dtype=f"<f{form.bits // 8}")
    elif form.bits == 8:
        samples[:] = np.frombuffer(data, dtype=np.uint8)
        samples -= 128
        samples *= 2.0**-7
    elif form.bits == 24:
        padded = np.zeros((len(samples), 4), dtype=np.uint8)
        padded[:, 1:] = np.frombuffer(data, dtype=np.uint8).reshape(-1, 3)
        samples[:] = padded.view("<i4")[:, 0]
        samples *= 2.0**-31
    else:
        samples[:] = np.frombuffer(data, dtype=f"<i{form.bits // 8}")
        samples *= 2.0 ** (1 - form.bits)
    if form.channels == 1:
        return samples
    return samples.reshape(-1, form.channels).mean(axis=1, dtype=np.float32)
