"""What is learned about a clip."""

import hashlib
from pathlib import Path

import numpy as np

from jumar.data.checking.item import Item
from jumar.data.checking.sounds import open_clips
from jumar.data.speech.wav import write_wav
from tests.data.tones import in_folder

SAMPLES = np.array([0, 16384, -32768, 1], np.int16)


def hashed(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def test_item_has_hashes_the_duration_and_the_word_and_silence_is_a_trait(
    tmp_path: Path,
) -> None:
    sound = write_wav(SAMPLES, 8_000)
    clips = {
        "high/1_nohash_0.wav": write_wav(np.zeros(4, np.int16), 16_000),
        "low/1_nohash_0.wav": sound,
        "low/2_nohash_0.wav": write_wav(np.zeros(0, np.int16), 16_000),
        "low/3_nohash_0.wav": sound[:20],
    }
    in_folder(tmp_path, {f"train/{name}": content for name, content in clips.items()})
    in_folder(tmp_path, {"val/low/4_nohash_0.wav": sound})
    part = open_clips(str(tmp_path), "", lambda _: None)[0]
    items = {Path(item.where).stem: item for item in map(part.reader.item, (1, 2, 3))}
    assert items["1_nohash_0"] == Item(
        where=str(tmp_path / "train" / "low" / "1_nohash_0.wav"),
        content=hashed(sound),
        meaning=hashed((SAMPLES / 32768).astype(np.float32).tobytes()),
        label="low",
        classes=("low",),
        size=(("duration", 4 / 8_000),),
        traits=("8000 Hz",),
    )
    broken = items["3_nohash_0"]
    assert (broken.content, broken.label, bool(broken.fault)) == (b"", "", True)
    assert len(part.reader) == 4
    silent = part.reader.item(0)
    assert (silent.label, silent.traits) == ("high", ("16000 Hz", "silent"))
    assert items["2_nohash_0"].traits == ("16000 Hz", "without samples")
