import contextlib
import io
import struct
import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import wavfile

from jumar.data.samples import CorruptRecord
from jumar.data.speech.wav import Wave, read_wav, resample, to_int16, write_wav

SIXTEEN_BITS = st.lists(st.integers(-32768, 32767), max_size=50)


def by_the_standard_library(frames: bytes, *, width: int, channels: int = 1) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(8_000)
        file.writeframes(frames)
    return buffer.getvalue()


def by_scipy(samples: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    wavfile.write(buffer, 44_100, samples)
    return buffer.getvalue()


def reason(encoded: bytes) -> str:
    with pytest.raises(CorruptRecord) as caught:
        read_wav(encoded, "clip.wav")
    assert caught.value.fault.origin == "clip.wav"
    return caught.value.fault.reason


@given(SIXTEEN_BITS, st.integers(1_000, 96_000))
def test_sixteen_bit_samples_round_trip(numbers: list[int], rate: int) -> None:
    samples = np.array(numbers, dtype=np.int16)
    result = read_wav(write_wav(samples, rate), "clip")
    assert result.rate == rate
    assert result.samples.dtype == np.float32
    np.testing.assert_array_equal(result.samples, samples / 32768)
    np.testing.assert_array_equal(to_int16(result.samples), samples)


@given(SIXTEEN_BITS)
def test_standard_library_reads_written_files(numbers: list[int]) -> None:
    samples = np.array(numbers, dtype="<i2")
    with wave.open(io.BytesIO(write_wav(samples, 16_000))) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 16_000)
        assert file.readframes(len(samples) + 1) == samples.tobytes()


@pytest.mark.parametrize(
    ("width", "frames", "expected"),
    [
        (1, bytes([0, 128, 255]), [-1, 0, 127 / 128]),
        (2, struct.pack("<3h", -32768, 0, 32767), [-1, 0, 32767 / 32768]),
        (3, b"\x00\x00\x80\x00\x00\x00\xff\xff\x7f", [-1, 0, (2**23 - 1) / 2**23]),
        (4, struct.pack("<3i", -(2**31), 0, 2**30), [-1, 0, 0.5]),
    ],
)
def test_integers_of_every_width_are_divided_by_half_their_range(
    width: int, frames: bytes, expected: list[float]
) -> None:
    result = read_wav(by_the_standard_library(frames, width=width), "clip")
    np.testing.assert_allclose(result.samples, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int32, np.float32, np.float64])
def test_files_written_by_scipy_are_read(kind: type) -> None:
    values = np.linspace(-0.9, 0.9, 50)
    scales = {np.uint8: (128, 128), np.int16: (2**15, 0), np.int32: (2**31, 0)}
    factor, offset = scales.get(kind, (1, 0))
    scaled = values * factor + offset
    written = np.rint(scaled) if kind in scales else scaled
    result = read_wav(by_scipy(written.astype(kind)), "clip")
    assert result.rate == 44_100
    np.testing.assert_allclose(result.samples, values, rtol=0, atol=0.51 / factor + 1e-7)


def test_channels_are_averaged() -> None:
    frames = struct.pack("<4h", 1000, 3000, -1000, 1000)
    result = read_wav(by_the_standard_library(frames, width=2, channels=2), "clip")
    np.testing.assert_allclose(result.samples * 32768, [2000, 0])


@pytest.mark.parametrize("length", [0, 0x7FFFF000, 0x7FFFFFFF, 0xFFFFFFFF])
def test_unset_length_means_the_rest_of_the_file(length: int) -> None:
    whole = write_wav(np.arange(100, dtype=np.int16), 22_050)
    piped = whole[:40] + struct.pack("<I", length) + whole[44:]
    np.testing.assert_array_equal(read_wav(piped, "pipe").samples, read_wav(whole, "file").samples)


def test_chunks_before_the_samples_are_skipped() -> None:
    whole = write_wav(np.arange(9, dtype=np.int16), 16_000)
    odd = whole[:36] + b"LIST" + struct.pack("<I", 3) + b"abc\0" + whole[36:]
    assert len(read_wav(odd, "clip").samples) == 9


def test_extensible_header_is_read() -> None:
    form = struct.pack("<HHIIHHHHIH", 0xFFFE, 1, 16_000, 32_000, 2, 16, 22, 16, 4, 1) + bytes(14)
    data = b"data" + struct.pack("<Ihh", 4, 16384, -16384)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + data
    result = read_wav(b"RIFF" + struct.pack("<I", len(body)) + body, "clip")
    np.testing.assert_array_equal(result.samples, [0.5, -0.5])


def test_truncated_clip_is_refused() -> None:
    whole = write_wav(np.arange(100, dtype=np.int16), 16_000)
    for length in range(len(whole)):
        assert reason(whole[:length])


@pytest.mark.parametrize(
    ("name", "said"),
    [(b"fmt ", "'fmt'"), (b"LIST", "'LIST'"), (b"\x00\xff\x1b[", "unnamed"), (b"a'b\n", "unnamed")],
)
def test_damaged_chunk_is_named_as_text(name: bytes, said: str) -> None:
    chunk = name + struct.pack("<I", 1000) + bytes(16)
    text = reason(b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WAVE" + chunk)
    assert said in text
    assert "b'" not in text
    assert "\\x" not in text
    assert text.isprintable()


def test_reason_names_the_format_of_a_foreign_file() -> None:
    whole = write_wav(np.zeros(4, np.int16), 16_000)
    assert "FLAC" in reason(b"fLaC" + bytes(40))
    assert "mu-law" in reason(whole[:20] + b"\x07\x00" + whole[22:])
    assert "RF64" in reason(b"RF64" + whole[4:])
    assert "empty" in reason(b"")
    assert "not finite" in reason(by_scipy(np.array([0.0, np.nan], dtype=np.float32)))


@given(st.data())
def test_damaged_files_are_read_or_refused_without_other_exceptions(data: st.DataObject) -> None:
    whole = bytearray(write_wav(np.arange(20, dtype=np.int16), 16_000))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, 47))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptRecord):
        read_wav(bytes(whole), "clip")


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
def test_resampling_keeps_the_pitch_of_a_tone(rate: int) -> None:
    times = np.arange(rate) / rate
    wave_ = Wave(samples=np.sin(2 * np.pi * 440 * times).astype(np.float32), rate=rate)
    result = resample(wave_, 16_000)
    assert (result.dtype, len(result)) == (np.float32, 16_000)
    expected = np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    np.testing.assert_allclose(result[200:-200], expected[200:-200], atol=5e-3)


def test_real_clip_is_read_like_the_standard_library_does(shared: Path) -> None:
    path = shared / "data" / "pretrained" / "ml-kws" / "samples" / "yes_1000ms.wav"
    with wave.open(str(path)) as file:
        expected = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
    result = read_wav(path.read_bytes(), str(path))
    assert result.rate == 16_000
    np.testing.assert_array_equal(result.samples, expected)


def chunk(name: bytes, content: bytes, length: int | None = None) -> bytes:
    return name + struct.pack("<I", len(content) if length is None else length) + content


def form(
    coding: int = 1, channels: int = 1, rate: int = 16_000, bits: int = 16, frame: int = 0
) -> bytes:
    frame = frame or channels * bits // 8
    return struct.pack("<HHIIHH", coding, channels, rate, rate * frame, frame, bits)


def riff(*chunks: bytes) -> bytes:
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


DATA = chunk(b"data", struct.pack("<2h", 16384, -16384))


def test_file_is_written_with_the_expected_bytes() -> None:
    assert write_wav(np.array([1, -2], np.int16), 8_000) == (
        b"RIFF" + struct.pack("<I", 40) + b"WAVE"
        b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8_000, 16_000, 2, 16) + b"data"
        b"\x04\0\0\0\x01\0\xfe\xff"
    )


@pytest.mark.parametrize(
    ("encoded", "said"),
    [
        (b"", "the file is empty"),
        (b"RIFX" + bytes(40), "RIFX files are not supported; convert it to a plain WAV file"),
        (b"BW64" + bytes(40), "BW64 files are not supported; convert it to a plain WAV file"),
        (b"OggS" + bytes(40), "this is a file in Ogg format, not WAV; convert it"),
        (b"ID3\3" + bytes(40), "this is a file in MP3 format, not WAV; convert it"),
        (b"FORM" + bytes(40), "this is a file in AIFF format, not WAV; convert it"),
        (b"none", "not a WAV file: it does not begin with RIFF and WAVE"),
        (riff()[:11], "not a WAV file: it does not begin with RIFF and WAVE"),
        (b"RIFF" + bytes(40), "not a WAV file: it does not begin with RIFF and WAVE"),
        (b"RIFX" + riff(DATA)[4:], "RIFX files are not supported; convert it to a plain WAV file"),
        (riff(), "it has no samples: the file is truncated or damaged"),
        (riff(chunk(b"fmt ", form())), "it has no samples: the file is truncated or damaged"),
        (riff(DATA), "its samples come before its format chunk"),
        (
            riff(chunk(b"LIST", b"abc", 9)),
            "its chunk 'LIST' should have 9 bytes, but has 3: it is truncated",
        ),
        (
            riff(chunk(b"a b ", b"abc", 9)),
            "its unnamed chunk should have 9 bytes, but has 3: it is truncated",
        ),
        (
            riff(chunk(b"\xe9\xe9\xe9\xe9", b"abc", 9)),
            "its unnamed chunk should have 9 bytes, but has 3: it is truncated",
        ),
        (
            riff(chunk(b"fmt ", form()[:15])),
            "its format chunk has 15 bytes; at least 16 are needed",
        ),
        (
            riff(chunk(b"fmt ", form(0xFFFE) + bytes(9)), DATA),
            "its extensible format chunk is truncated",
        ),
        (
            riff(chunk(b"fmt ", form(0xFFFE) + bytes(8) + b"\x55\0"), DATA),
            "its encoding is MP3; only PCM and float are supported, convert it",
        ),
        (
            riff(chunk(b"fmt ", form(99)), DATA),
            "its encoding is format 99; only PCM and float are supported, convert it",
        ),
        (riff(chunk(b"fmt ", form(bits=12)), DATA), "12-bit PCM is not supported"),
        (riff(chunk(b"fmt ", form(bits=64)), DATA), "64-bit PCM is not supported"),
        (riff(chunk(b"fmt ", form(3, bits=16)), DATA), "16-bit float is not supported"),
        (
            riff(chunk(b"fmt ", form(channels=0, frame=2)), DATA),
            "implausible format: 0 channels at 16000 samples per second",
        ),
        (
            riff(chunk(b"fmt ", form(channels=65)), DATA),
            "implausible format: 65 channels at 16000 samples per second",
        ),
        (
            riff(chunk(b"fmt ", form(rate=999)), DATA),
            "implausible format: 1 channels at 999 samples per second",
        ),
        (
            riff(chunk(b"fmt ", form(rate=768_001)), DATA),
            "implausible format: 1 channels at 768001 samples per second",
        ),
        (
            riff(chunk(b"fmt ", form(channels=2, frame=3)), DATA),
            "2 channels of 16 bits have 4 bytes, not 3",
        ),
        (
            riff(chunk(b"fmt ", form()), chunk(b"data", bytes(4), 5)),
            "it should have 5 bytes of samples, but has 4: it is truncated",
        ),
        (
            riff(chunk(b"fmt ", form()), chunk(b"data", bytes(4), 0x7FFFEFFF)),
            "it should have 2147479551 bytes of samples, but has 4: it is truncated",
        ),
        (
            riff(chunk(b"fmt ", form()), chunk(b"data", bytes(5), 3)),
            "3 bytes of samples are not a multiple of 2 bytes per frame",
        ),
        (
            riff(chunk(b"fmt ", form(3, bits=32)), chunk(b"data", struct.pack("<f", np.inf))),
            "it contains samples that are not finite",
        ),
        (
            riff(chunk(b"fmt ", form(3, bits=64)), chunk(b"data", struct.pack("<d", 1e300))),
            "it contains samples that are not finite",
        ),
    ],
)
def test_reason_has_the_full_message(encoded: bytes, said: str) -> None:
    assert reason(encoded) == said


@pytest.mark.parametrize(
    ("coding", "name"),
    [
        *((2, "Microsoft's ADPCM"), (6, "A-law"), (7, "mu-law"), (17, "IMA's ADPCM")),
        *((49, "GSM 6.10"), (85, "MP3")),
    ],
)
def test_other_encodings_are_reported_by_name(coding: int, name: str) -> None:
    assert reason(riff(chunk(b"fmt ", form(coding)), DATA)) == (
        f"its encoding is {name}; only PCM and float are supported, convert it"
    )


@pytest.mark.parametrize(
    ("encoded", "rate", "samples"),
    [
        (riff(chunk(b"fmt ", form(rate=1_000)), DATA), 1_000, [0.5, -0.5]),
        (riff(chunk(b"fmt ", form(rate=768_000)), DATA), 768_000, [0.5, -0.5]),
        # Data after the samples, and the rest of an incomplete frame.
        (riff(chunk(b"fmt ", form()), DATA, chunk(b"LIST", b"abc")), 16_000, [0.5, -0.5]),
        (
            riff(chunk(b"fmt ", form()), chunk(b"data", b"\0\x40\0", 0xFFFFFFFF)),
            16_000,
            [0.5],
        ),
        (riff(chunk(b"fmt ", form()), chunk(b"data", b"\0\x40", 0)), 16_000, [0.5]),
        (riff(chunk(b"fmt ", form()), chunk(b"data", b"\0", 0)), 16_000, []),
        (riff(chunk(b"fmt ", form()), chunk(b"data", b"")), 16_000, []),
        (riff(chunk(b"odd ", b"abc") + b"\0", chunk(b"fmt ", form()), DATA), 16_000, [0.5, -0.5]),
        (riff(chunk(b"fmt ", form() + b"\0\0"), DATA), 16_000, [0.5, -0.5]),
        (
            riff(
                chunk(b"fmt ", form(3, channels=3, bits=32)),
                chunk(b"data", struct.pack("<6f", 1, 2, 6, -1, 0, -2)),
            ),
            16_000,
            [3, -1],
        ),
        (
            riff(
                chunk(b"fmt ", form(channels=2, bits=24)),
                chunk(b"data", b"\0\0\x40\0\0\x20\0\0\xc0\0\0\0"),
            ),
            16_000,
            [0.375, -0.25],
        ),
        (
            riff(chunk(b"fmt ", form(channels=64, bits=8)), chunk(b"data", bytes([192]) * 64)),
            16_000,
            [0.5],
        ),
    ],
)
def test_known_bytes_decode_to_known_samples(
    encoded: bytes, rate: int, samples: list[float]
) -> None:
    result = read_wav(encoded, "clip")
    assert (result.rate, result.samples.tolist()) == (rate, samples)
    assert result.samples.dtype == np.float32


def test_loud_samples_are_clipped_and_others_rounded() -> None:
    result = to_int16(np.array([-2, -1, -1.6 / 32768, 0.4 / 32768, 1, 2], np.float32))
    assert result.tolist() == [-32768, -32768, -2, 0, 32767, 32767]
    assert result.dtype == np.int16


def test_equal_rates_return_the_same_array() -> None:
    some = Wave(samples=np.ones(3, np.float32), rate=8_000)
    none = Wave(samples=np.ones(0, np.float32), rate=8_000)
    assert resample(some, 8_000) is some.samples
    assert resample(none, 16_000) is none.samples
    assert len(resample(some, 8_001)) == 4
