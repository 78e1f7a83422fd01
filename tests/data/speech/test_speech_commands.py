import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from jumar.data.samples import fingerprint_of
from jumar.data.speech.speech_commands import (
    Part,
    Speech,
    open_speech,
    speaker_groups,
    which_part,
)
from jumar.ground.errors import UserError
from tests.data.tones import divided, in_folder, in_zip, tone, tone_files

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


def test_speakers_are_divided_as_in_the_original() -> None:
    """The numbers are what `which_set` of ML-KWS-for-MCU's input_data.py returns."""
    result = {speaker: which_part(f"yes/{speaker:08x}_nohash_0.wav") for speaker in range(30)}
    assert {s for s, part in result.items() if part == "validation"} == VALIDATION_OF_10
    assert {s for s, part in result.items() if part == "testing"} == TESTING_OF_10
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


def test_folder_and_its_zip_give_the_same_parts(tmp_path: Path) -> None:
    files = tone_files(WORDS, 20)
    folder = in_folder(tmp_path / "set", files)
    zipped = in_zip(tmp_path / "set.zip", {f"set/{name}": data for name, data in files.items()})
    result: list[tuple[str, str]] = []
    for part in ("training", "validation", "testing"):
        one, other = opened(folder, part), opened(zipped, part)
        assert clips(one) == clips(other)
        assert one.source.read(0).encoded == other.source.read(0).encoded
        result += clips(one)
    assert len(result) == len(set(result)) == len(files)
    assert {word for word, _ in result} == {"low", "high", "unknown"}


def test_lists_of_a_set_take_precedence_over_speakers(tmp_path: Path) -> None:
    folder = in_folder(tmp_path, tone_files(WORDS, 4))
    (folder / "validation_list.txt").write_text("low/00000001_nohash_0.wav\n")
    (folder / "testing_list.txt").write_text("high/00000002_nohash_0.wav\n")
    assert clips(opened(folder, "validation")) == [("low", "00000001_nohash_0.wav")]
    assert clips(opened(folder, "testing")) == [("high", "00000002_nohash_0.wav")]
    training = opened(folder, "training")
    assert len(training.word_of) == 10
    with (folder / "validation_list.txt").open("a") as file:
        file.write("low/lost_nohash_0.wav\n")
    messages: list[str] = []
    open_speech(str(folder), "validation", notice=messages.append)
    assert any("1 clips listed in validation_list.txt are missing: low/lost" in s for s in messages)


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
def test_existing_parts_are_used_unchanged(kind: str, tmp_path: Path) -> None:
    path = parts_as(kind, tmp_path)
    assert {name[:8] for _, name in clips(opened(path, "training"))} == {
        f"{speaker:08x}" for speaker in range(6)
    }
    validation = opened(path, "validation")
    assert {name[:6] for _, name in clips(validation)} == {"000000"}
    assert all(int(name[:8], 16) >= 100 for _, name in clips(validation))
    with pytest.raises(UserError, match="it has no testing part"):
        opened(path, "testing")


@pytest.mark.parametrize("zipped", [False, True])
def test_background_noise_is_not_a_word_and_is_also_found_next_to_the_parts(
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


def test_non_clip_files_are_skipped_and_reported(tmp_path: Path) -> None:
    files = tone_files(("low",), 12) | {"low/notes.txt": b"x", "more.csv": b"y", "README.md": b"z"}
    messages: list[str] = []
    open_speech(str(in_folder(tmp_path, files)), "training", notice=messages.append)
    assert [line.split(": ")[1] for line in messages] == ["skipped 2 files outside the words"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [([], "no WAV file"), (["a.tar.gz"], "neither a folder nor a zip"), (None, "no such file")],
)
def test_folders_that_are_not_a_set_are_refused_with_an_explanation(
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


def test_real_arabic_commands_have_no_speaker_in_both_parts(shared: Path) -> None:
    path = shared / "data" / "keywords-ar"
    train, val = opened(path, "training"), opened(path, "validation")
    assert (len(train.word_of), len(val.word_of)) == (900, 240)
    assert np.bincount(train.word_of).tolist() == [72] * 8 + [180, 72, 72]
    assert train.words[8] == "unknown"
    speakers = [{name.split("_")[0] for _, name in clips(speech)} for speech in (train, val)]
    assert [len(result) for result in speakers] == [18, 6]
    assert not speakers[0] & speakers[1]


def test_speaker_split_matches_the_original_at_any_percentage() -> None:
    """`which_set` in plain: the hash of the speaker modulo 2**27, as a percentage."""
    counts: Counter[str] = Counter()
    for number in range(1500):
        name = f"folder/speaker{number}_nohash_{number % 3}.wav"
        digest = int(hashlib.sha1(f"speaker{number}".encode()).hexdigest(), 16)
        percentage = digest % 2**27 * (100 / (2**27 - 1))
        for validation, testing in ((10.0, 10.0), (5.0, 30.0)):
            part = "training"
            if percentage < validation:
                part = "validation"
            elif percentage < validation + testing:
                part = "testing"
            assert which_part(name, validation=validation, testing=testing) == part
        counts[which_part(name)] += 1
    assert counts["validation"] / 1500 == pytest.approx(0.1, abs=0.03)
    assert counts["testing"] / 1500 == pytest.approx(0.1, abs=0.03)
    assert which_part("a_nohash_1_nohash_2.wav") == which_part("a_nohash_.wav")


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["yes/a_nohash_0.wav", "no/a_nohash_1.wav", "no/b.wav"], ["a", "a", "b.wav"]),
        (
            ["yes/12_03.wav", "no/12_1.WAVE", "yes/13_1.wav", "no/13_2.wav", "no/x_y_9.wav"],
            ["12", "12", "13", "13", "x_y"],
        ),
        # Two speakers are too few, and half of three that speak several words are not enough.
        (["yes/12_03.wav", "no/12_1.wav", "yes/13_1.wav", "no/13_2.wav"], None),
        (["yes/1_1.wav", "no/1_2.wav", "yes/2_1.wav", "yes/3_1.wav"], None),
        (
            ["yes/1_1.wav", "no/1_2.wav", "yes/2_1.wav", "no/2_1.wav", "no/3_1.wav", "no/4_1.wav"],
            None,
        ),
        (["yes/yes_1.wav", "no/no_1.wav", "go/go_1.wav"], None),
        (["yes/12_03.wav", "no/12_1.wav", "yes/x.wav"], None),
    ],
)
def test_speakers_are_parsed_from_file_names(names: list[str], groups: list[str] | None) -> None:
    assert speaker_groups(names) == groups


def test_chosen_part_keeps_all_noises_after_its_clips(tmp_path: Path) -> None:
    files = tone_files(("low", "high"), 3) | {
        "_background_noise_/a.wav": b"a",
        "_background_noise_/deep/b.wave": b"b",
        "_background_noise_/notes.txt": b"c",
    }
    speech = opened(in_folder(tmp_path, files), "training", whole=True)
    assert (speech.noises, len(speech.word_of)) == (2, 6)
    assert list(speech.names) == [
        f"{word}/{speaker:08x}_nohash_0.wav" for word in ("high", "low") for speaker in range(3)
    ]
    some = speech.chosen(np.array([4, 1]), "of these")
    assert some.word_of.tolist() == [1, 0]
    assert some.names == ["low/00000001_nohash_0.wav", "high/00000001_nohash_0.wav"]
    assert [some.read_noise(number).encoded for number in range(2)] == [b"a", b"b"]
    assert some.source.read(0).origin.endswith("low/00000001_nohash_0.wav")
    assert (some.words, some.noises) == (["high", "low"], 2)


def test_noise_next_to_zipped_parts_follows_the_clips_and_enters_the_fingerprint(
    tmp_path: Path,
) -> None:
    prints: list[str] = []
    for name, noise in (("a", b"hum"), ("b", b"hum"), ("c", b"hiss")):
        folder = "_BACKGROUND_noise_"
        place = in_folder(
            parts_as("zips", tmp_path / name), {f"{folder}/{noise.decode()}.wav": noise}
        )
        speech = opened(place, "training")
        assert len(speech.source) == 18 + 1
        assert speech.source.read(17).encoded[:4] == b"RIFF"
        assert speech.source.read(18).encoded == speech.read_noise(0).encoded == noise
        prints.append(fingerprint_of(speech.source))
    assert prints[0] == prints[1] != prints[2]
    alone = opened(parts_as("zips", tmp_path / "d"), "training")
    assert (alone.noises, len(alone.source)) == (0, 18)


def test_folder_containing_only_another_folder_opens_the_inner_one(tmp_path: Path) -> None:
    inner = in_folder(tmp_path / "top" / "set", tone_files(("low", "high"), 12))
    assert opened(tmp_path / "top", "training").words == ["high", "low"]
    (tmp_path / "top" / "file.txt").write_bytes(b"x")
    wrapped = opened(tmp_path / "top", "training", whole=True)
    assert (wrapped.words, len(wrapped.word_of)) == (["set"], 24)
    (tmp_path / "top" / "file.txt").unlink()
    (inner / "clip.wav").write_bytes(b"x")
    assert opened(tmp_path / "top", "training", whole=True).words == ["set"]
    only = in_folder(tmp_path / "only", tone_files(("low",), 12))
    assert opened(only, "training", whole=True).words == ["low"]


@pytest.mark.parametrize(
    ("folders", "part", "found"),
    [
        (("Train", "VALIDATION"), "validation", "VALIDATION"),
        (("training", "eval", "testing"), "testing", "testing"),
        (("training", "eval", "val"), "validation", "val"),
        (("train", "training", "test"), "training", "train"),
    ],
)
def test_parts_are_found_by_their_first_matching_name(
    tmp_path: Path, folders: Sequence[str], part: Part, found: str
) -> None:
    for number, folder in enumerate(folders):
        in_folder(tmp_path / folder, tone_files(("low",), 1, first=number))
    speech = opened(tmp_path, part)
    number = folders.index(found)
    assert list(speech.names) == [f"low/{number:08x}_nohash_0.wav"]


def test_single_part_or_part_without_words_counts_as_words(tmp_path: Path) -> None:
    in_folder(tmp_path / "a", tone_files(("train/low", "train/high", "go"), 2))
    assert opened(tmp_path / "a", "training", whole=True).words == ["go", "train"]
    in_folder(tmp_path / "b", tone_files(("train/low", "test"), 2))
    assert opened(tmp_path / "b", "training", whole=True).words == ["test", "train"]
    in_zip(tmp_path / "c" / "test.zip", tone_files(("low",), 1))
    in_folder(tmp_path / "c", tone_files(("train/low",), 1))
    assert clips(opened(tmp_path / "c", "testing")) == [("low", "00000000_nohash_0.wav")]


def test_words_are_lower_case_folders_with_everything_below_them(tmp_path: Path) -> None:
    deep = "Low/" + "/".join("abcdefghijklmnopqrstuvwxyz012345")
    files = {f"{deep}/1.WAV": tone("low", 1), "High/2.wave": tone("high", 1)}
    speech = opened(in_folder(tmp_path, files), "training", whole=True)
    assert (speech.words, speech.word_of.tolist()) == (["high", "low"], [0, 1])
    assert speech.word_of.dtype == np.int32
    assert list(speech.names) == ["High/2.wave", f"{deep}/1.WAV"]
    in_folder(tmp_path, {f"{deep}/i/1.wav": tone("low", 1)})
    with pytest.raises(UserError) as caught:
        opened(tmp_path, "training", whole=True)
    assert str(caught.value) == (
        f"{tmp_path}/{deep}/i: folders are nested more than 32 deep; does a symbolic link point to "
        "a parent?"
    )


def test_missing_listed_clips_are_counted_and_some_named(tmp_path: Path) -> None:
    folder = in_folder(tmp_path, tone_files(("low",), 2))
    lost = [f"low/{name}_nohash_0.wav" for name in "dcba"]
    (folder / "testing_list.txt").write_text("low/00000001_nohash_0.wav\n\n" + "\n".join(lost[1:]))
    messages: list[str] = []
    assert len(open_speech(str(folder), "testing", notice=messages.append).word_of) == 1
    a, b, c = sorted(lost[1:])
    text = f"{folder}: 3 clips listed in testing_list.txt are missing: {a}, {b}, {c}"
    assert messages == [text]
    (folder / "testing_list.txt").write_text("low/00000001_nohash_0.wav \r\n" + "\n".join(lost))
    open_speech(str(folder), "testing", notice=messages.append)
    assert messages[1] == text.replace("3 clips", "4 clips") + ", ..."
    speech = open_speech(str(folder), "training", notice=messages.append)
    assert (len(speech.word_of), len(messages)) == (1, 2)
    (folder / "testing_list.txt").write_bytes(b"\xff")
    with pytest.raises(
        UserError, match="the list of the clips for testing cannot be read: "
    ) as bad:
        opened(folder, "testing")
    assert bad.value.where == str(folder)


def test_skipped_files_are_counted_by_suffix_except_standard_ones(tmp_path: Path) -> None:
    files = tone_files(("low",), 12) | dict.fromkeys(
        ("low/a.txt", "low/deep/b.txt", "c.csv", "LICENSE", "README.md", "validation_list.txt"), b""
    )
    messages: list[str] = []
    open_speech(str(in_folder(tmp_path, files)), "training", whole=True, notice=messages.append)
    (text,) = messages
    assert text.startswith(f"{tmp_path}: skipped 3 files outside the words: ")
    assert ".txt" in text
    assert ".csv" in text


MAKE = (
    "Set data.path to a folder or zip with a folder of WAV files for each word; "
    "`jumar data keywords --to DIR` creates one with a speech synthesiser."
)


def test_folders_that_are_not_a_set_have_the_full_message(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"x")
    in_folder(tmp_path / "set", {"low/a.txt": b"x"})
    divided(tmp_path / "parts")
    for path, part, message in (
        ("", "training", f"data.path: no speech data set\n  {MAKE}"),
        (
            f"{tmp_path}/a.tar",
            "training",
            f"{tmp_path}/a.tar: neither a folder nor a zip\n"
            "  Unpack other archives first: tar -xf FILE -C FOLDER",
        ),
        (
            f"{tmp_path}/set",
            "training",
            f"{tmp_path}/set: contains no WAV file of this part\n"
            "  Expected one folder for each word with WAV files in it.",
        ),
        (
            f"{tmp_path}/parts",
            "testing",
            f"{tmp_path}/parts: it has no testing part\n"
            "  It has: training, validation. Set data.eval_part or data.eval_path.",
        ),
    ):
        with pytest.raises(UserError) as caught:
            open_speech(path, part, notice=lambda _: None)  # pyright: ignore[reportArgumentType]
        assert str(caught.value) == message


@pytest.mark.parametrize("zipped", [False, True])
def test_lists_name_clips_relative_to_their_folder(tmp_path: Path, zipped: bool) -> None:
    files = tone_files(("low",), 3)
    files["validation_list.txt"] = b"low/00000001_nohash_0.wav\n"
    wrapped = {f"set/{name}": content for name, content in files.items()}
    path = in_zip(tmp_path / "a.zip", wrapped) if zipped else in_folder(tmp_path / "a", wrapped)
    assert list(opened(path, "validation").names) == ["low/00000001_nohash_0.wav"]
    assert len(opened(path, "training").word_of) == 2
    with pytest.raises(UserError, match="no WAV file of this part") as caught:
        opened(path, "testing")
    assert caught.value.where == f"{path}/set"
