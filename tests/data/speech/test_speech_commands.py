from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from jumar.data.speech.speech_commands import Part, Speech, open_speech, which_part
from jumar.ground.errors import UserError
from tests.data.tones import divided, in_folder, in_zip, tone_files

WORDS = ("low", "high", "unknown/other")
VALIDATION_OF_10 = {0x00, 0x07, 0x0B, 0x0F, 0x19, 0x1A, 0x1B}
TESTING_OF_10 = {0x02, 0x18}


def clips(speech: Speech) -> list[tuple[str, str]]:
    """Word and file name of every clip."""
    return [
        (speech.words[word], speech.source.read(index).origin.rsplit("/", 1)[-1])
        for index, word in enumerate(speech.word_of)
    ]


def opened(path: Path, part: Part, *, whole: bool = False) -> Speech:
    return open_speech(str(path), part, whole=whole, notice=lambda _: None)


def test_speakers_are_divided_as_the_original_code_divides_them() -> None:
    """The numbers are what `which_set` of ML-KWS-for-MCU's input_data.py returns."""
    found = {speaker: which_part(f"yes/{speaker:08x}_nohash_0.wav") for speaker in range(30)}
    assert {s for s, part in found.items() if part == "validation"} == VALIDATION_OF_10
    assert {s for s, part in found.items() if part == "testing"} == TESTING_OF_10
    for name, expected in (
        ("00000002_nohash_0.wav", "validation"),
        ("00000013_nohash_0.wav", "testing"),
        ("00000018_nohash_0.wav", "validation"),
        ("bobby_nohash_0.wav", "training"),
    ):
        assert which_part(name, validation=20, testing=5) == expected


@pytest.mark.parametrize("number", range(5))
def test_all_clips_of_a_speaker_are_in_one_part(number: int) -> None:
    assert which_part(f"0000000b_nohash_{number}.wav") == "validation"


def test_a_folder_and_its_zip_give_the_same_parts(tmp_path: Path) -> None:
    files = tone_files(WORDS, 20)
    folder = in_folder(tmp_path / "set", files)
    zipped = in_zip(tmp_path / "set.zip", {f"set/{name}": data for name, data in files.items()})
    found: list[tuple[str, str]] = []
    for part in ("training", "validation", "testing"):
        one, other = opened(folder, part), opened(zipped, part)
        assert clips(one) == clips(other)
        assert one.divided_by == other.divided_by == "speakers"
        assert one.source.read(0).encoded == other.source.read(0).encoded
        found += clips(one)
    assert len(found) == len(set(found)) == len(files)
    assert {word for word, _ in found} == {"low", "high", "unknown"}


def test_the_lists_of_a_set_come_before_the_speakers(tmp_path: Path) -> None:
    folder = in_folder(tmp_path, tone_files(WORDS, 4))
    (folder / "validation_list.txt").write_text("low/00000001_nohash_0.wav\n")
    (folder / "testing_list.txt").write_text("high/00000002_nohash_0.wav\n")
    assert clips(opened(folder, "validation")) == [("low", "00000001_nohash_0.wav")]
    assert clips(opened(folder, "testing")) == [("high", "00000002_nohash_0.wav")]
    training = opened(folder, "training")
    assert (len(training.word_of), training.divided_by) == (10, "lists")
    with (folder / "validation_list.txt").open("a") as file:
        file.write("low/lost_nohash_0.wav\n")
    said: list[str] = []
    open_speech(str(folder), "validation", notice=said.append)
    assert any("1 clips that validation_list.txt names are missing: low/lost" in s for s in said)


def parts_as(kind: str, root: Path) -> Path:
    if kind == "folders":
        return divided(root / "set")
    train, val = tone_files(WORDS, 6), tone_files(WORDS, 3, first=100)
    if kind == "zips":
        in_zip(root / "set" / "train.zip", train)
        in_zip(root / "set" / "val.zip", val)
        return root / "set"
    files = {f"set/train/{name}": data for name, data in train.items()}
    files |= {f"set/val/{name}": data for name, data in val.items()}
    return in_zip(root / "set.zip", files)


@pytest.mark.parametrize("kind", ["folders", "zips", "one zip"])
def test_parts_are_taken_as_they_are(kind: str, tmp_path: Path) -> None:
    path = parts_as(kind, tmp_path)
    assert {name[:8] for _, name in clips(opened(path, "training"))} == {
        f"{speaker:08x}" for speaker in range(6)
    }
    validation = opened(path, "validation")
    assert validation.divided_by == "folders"
    assert {name[:6] for _, name in clips(validation)} == {"000000"}
    assert all(int(name[:8], 16) >= 100 for _, name in clips(validation))
    with pytest.raises(UserError, match="no part for testing"):
        opened(path, "testing")


@pytest.mark.parametrize("zipped", [False, True])
def test_background_noise_is_no_word_and_found_beside_the_parts_too(
    tmp_path: Path, zipped: bool
) -> None:
    noise = {"_background_noise_/hum.wav": b"hum"}
    inside = tone_files(("low",), 12) | noise
    path = in_zip(tmp_path / "a.zip", inside) if zipped else in_folder(tmp_path / "a", inside)
    speech = opened(path, "training")
    assert (speech.words, speech.noises) == (["low"], 1)
    assert speech.read_noise(0).encoded == b"hum"
    outside = in_folder(parts_as("zips", tmp_path / "b"), noise)
    assert opened(outside, "training").read_noise(0).encoded == b"hum"


def test_files_that_are_no_clips_are_left_out_and_said(tmp_path: Path) -> None:
    files = tone_files(("low",), 12) | {"low/notes.txt": b"x", "more.csv": b"y", "README.md": b"z"}
    said: list[str] = []
    open_speech(str(in_folder(tmp_path, files)), "training", notice=said.append)
    assert [line.split(": ")[1] for line in said] == ["skipped 2 files outside of the words"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [([], "no WAV file"), (["a.tar.gz"], "neither a folder nor a zip"), (None, "no such file")],
)
def test_what_is_no_set_is_refused_in_words(
    tmp_path: Path, files: Sequence[str] | None, expected: str
) -> None:
    path = tmp_path / "set"
    if files is not None:
        path.mkdir()
        for name in files:
            path = in_folder(path, {name: b"x"}) / name
    with pytest.raises(UserError, match=expected):
        opened(path, "training")
    with pytest.raises(UserError, match="jumar data keywords"):
        open_speech("", "training", notice=lambda _: None)


def test_the_real_arabic_commands_have_no_speaker_in_both_parts(shared: Path) -> None:
    path = shared / "data" / "keywords-ar"
    train, val = opened(path, "training"), opened(path, "validation")
    assert (len(train.word_of), len(val.word_of)) == (900, 240)
    assert np.bincount(train.word_of).tolist() == [72] * 8 + [180, 72, 72]
    assert train.words[8] == "unknown"
    speakers = [{name.split("_")[0] for _, name in clips(speech)} for speech in (train, val)]
    assert [len(found) for found in speakers] == [18, 6]
    assert not speakers[0] & speakers[1]
