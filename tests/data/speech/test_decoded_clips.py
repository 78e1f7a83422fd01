import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from jumar.data.samples import CorruptRecord
from jumar.data.speech.decoded_clips import DecodedClips, fit_clip
from jumar.data.speech.speech_commands import open_speech
from jumar.data.speech.wav import write_wav
from tests.data.tones import divided, in_folder, tone


def clips(folder: Path, keep_bytes: int, *, rate: int = 16_000) -> DecodedClips:
    speech = open_speech(str(folder), "training", notice=lambda _: None)
    return DecodedClips(speech, rate=rate, samples=rate, keep_bytes=keep_bytes)


@pytest.mark.parametrize("length", [0, 3, 5, 8])
def test_clip_is_truncated_or_padded_at_the_end(length: int) -> None:
    result = fit_clip(np.arange(1, length + 1, dtype=np.float32), 5)
    assert result.tolist() == [*range(1, min(length, 5) + 1), *[0] * (5 - min(length, 5))]


def test_cached_clips_equal_decoded_ones(tmp_path: Path) -> None:
    folder = divided(tmp_path)
    all_kept, some_kept, none_kept = (clips(folder, size) for size in (10**7, 100_000, 0))
    for _ in range(2):
        for index in range(24):
            np.testing.assert_array_equal(all_kept[index], none_kept[index])
            np.testing.assert_array_equal(some_kept[index], none_kept[index])


def test_cached_clip_needs_no_file_and_an_uncached_one_does(tmp_path: Path) -> None:
    folder = divided(tmp_path)
    result = clips(folder, 3 * 32_000)
    before = [result[index].copy() for index in range(4)]
    for path in (folder / "train").rglob("*.wav"):
        path.unlink()
    for index in range(3):
        np.testing.assert_array_equal(result[index], before[index])
    with pytest.raises(CorruptRecord):
        result[3]


def test_forked_processes_share_cached_clips(tmp_path: Path) -> None:
    folder = divided(tmp_path)
    result = clips(folder, 10**7)
    child = os.fork()
    if not child:
        result[5]
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    expected = clips(folder, 0)[5]
    for path in (folder / "train").rglob("*.wav"):
        path.unlink()
    np.testing.assert_array_equal(result[5], expected)


def test_half_written_clip_is_decoded_again(tmp_path: Path) -> None:
    result = clips(divided(tmp_path), 10**7)
    expected = result[2].copy()
    result[2][8_000:] = 0
    np.testing.assert_array_equal(result[2], expected)


def test_clips_survive_pickling(tmp_path: Path) -> None:
    result = clips(divided(tmp_path), 10**7)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(result))[7], result[7])


def test_clips_of_other_rates_are_resampled(tmp_path: Path) -> None:
    files = {
        f"train/low/{rate}_nohash_0.wav": tone("low", 0, rate=rate) for rate in (16_000, 22_050)
    }
    files |= {f"val/low/{name}": tone("low", 0) for name in ("a.wav",)}
    result = clips(in_folder(tmp_path, files), 0)
    one, other = (result[index].astype(np.float64) for index in range(2))
    # All but the noise of the room, which is another one at another rate.
    assert np.abs(one - other).std() < 100 < 0.1 * one.std()


def test_cache_holds_as_many_clips_as_fit_at_two_bytes_per_sample(tmp_path: Path) -> None:
    folder = divided(tmp_path)
    for size, kept in ((32_000 * 2 - 1, 1), (32_000 * 2, 2)):
        result = clips(folder, size)
        before = [result[index].copy() for index in range(3)]
        path = sorted((folder / "train").rglob("*.wav"))
        names = [result._speech.source.read(index).origin for index in range(3)]
        contents = {name: Path(name).read_bytes() for name in names}
        assert len(path) == 24
        for name in names:
            Path(name).write_bytes(b"")
        for index in range(3):
            if index < kept:
                np.testing.assert_array_equal(result[index], before[index])
            else:
                with pytest.raises(CorruptRecord, match="the file is empty"):
                    result[index]
        for name, content in contents.items():
            Path(name).write_bytes(content)


def test_all_zero_clip_is_cached(tmp_path: Path) -> None:
    files = {
        f"{part}/low/{name}.wav": write_wav(np.zeros(9, np.int16), 16_000)
        for part in ("train", "val")
        for name in "ab"
    }
    folder = in_folder(tmp_path, files)
    result = clips(folder, 10**6)
    assert not result[1].any()
    for path in (folder / "train").rglob("*.wav"):
        path.unlink()
    assert not result[1].any()
    with pytest.raises(CorruptRecord):
        result[0]
