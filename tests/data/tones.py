"""Small sets in the layout of Speech Commands whose words are tones, for tests."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jumar.data.speech.wav import write_wav

PITCHES = {"low": 300.0, "middle": 900.0, "high": 2400.0, "other": 1500.0}


def tone(word: str, speaker: int, *, rate: int = 16_000, seconds: float = 1.0) -> bytes:
    """A WAV file: the word's pitch, a little higher or lower for each speaker, in a quiet room.

    Without the room's noise most bands of evaluation's clips would be digitally silent, and no
    clip of training is.
    """
    times = np.arange(int(rate * seconds)) / rate
    pitch = PITCHES.get(word, 600.0) * (1 + 0.01 * (speaker % 50))
    samples = np.sin(2 * np.pi * pitch * times) * np.sin(np.pi * times / seconds) * 8_000
    room = np.random.default_rng(speaker).normal(0, 60, len(samples))
    return write_wav((samples + room).astype(np.int16), rate)


def tone_files(words: Sequence[str], clips: int, *, first: int = 0) -> dict[str, bytes]:
    """Files by their path: `clips` speakers of each word."""
    return {
        f"{word}/{speaker:08x}_nohash_0.wav": tone(word.rsplit("/", 1)[-1], speaker)
        for word in words
        for speaker in range(first, first + clips)
    }


def in_folder(root: Path, files: Mapping[str, bytes]) -> Path:
    """Write files below a folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def in_zip(path: Path, files: Mapping[str, bytes]) -> Path:
    """Write files into a zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(buffer.getvalue())
    return path


def divided(root: Path, *, train: int = 6, val: int = 3) -> Path:
    """A folder with the parts `train` and `val`; `other` is an unknown word in both."""
    words = ("low", "middle", "high", "unknown/other")
    files = {f"train/{name}": data for name, data in tone_files(words, train).items()}
    files |= {f"val/{name}": data for name, data in tone_files(words, val, first=100).items()}
    return in_folder(root, files)
