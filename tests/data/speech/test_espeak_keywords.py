import json
import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jumar.data.speech.espeak_keywords import (
    ACCENTS,
    PITCHES,
    SPEEDS,
    VARIANTS,
    KeywordsRequest,
    WrittenPart,
    placed,
    plan_utterances,
    write_espeak_keywords,
)
from jumar.data.speech.speech_commands import open_speech, which_part
from jumar.data.speech.wav import read_wav, write_wav
from jumar.ground.errors import UserError

HAS_ESPEAK = shutil.which("espeak-ng") is not None
needs_espeak = pytest.mark.skipif(not HAS_ESPEAK, reason="needs espeak-ng")


def request(folder: Path, **changes: object) -> KeywordsRequest:
    small = KeywordsRequest(
        folder=folder, words=("yes", "no"), clips=12, eval_clips=4, seed=3, workers=2
    )
    return replace(small, **changes)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_each_word_gets_its_share_without_duplicate_clips() -> None:
    utterances = plan_utterances(KeywordsRequest(folder=Path("x"), clips=6_000, eval_clips=1_000))
    paths = [utterance.path for utterance in utterances]
    assert len(set(paths)) == len(paths) == 7_000
    train = [u for u in utterances if u.part == "train"]
    assert sum(u.word == "yes" for u in train) == 500
    assert sum(u.folder.startswith("unknown/") for u in train) == 1_000


def test_parts_share_no_voice_and_names_give_the_speaker() -> None:
    utterances = plan_utterances(KeywordsRequest(folder=Path("x")))
    voices = {part: {u.variant for u in utterances if u.part == part} for part in ("train", "val")}
    assert len(voices["train"]) == 13
    assert len(voices["val"]) == 48
    assert not voices["train"] & voices["val"]
    parts = {(u.variant, which_part(u.path)) for u in utterances}
    assert len(parts) == 61


def test_plan_of_a_word_depends_only_on_the_options_and_the_word() -> None:
    one = plan_utterances(KeywordsRequest(folder=Path("a"), seed=5))
    assert one == plan_utterances(KeywordsRequest(folder=Path("b"), seed=5))
    assert one != plan_utterances(KeywordsRequest(folder=Path("a"), seed=6))
    other = plan_utterances(KeywordsRequest(folder=Path("a"), seed=5, words=("stop", "yes", "hey")))
    of_stop = [{u.path for u in found if u.word == "stop"} for found in (one, other)]
    assert len(of_stop[0] & of_stop[1]) > 100


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"words": ("../x",)}, "cannot be a keyword"),
        ({"words": ("-w",)}, "cannot be a keyword"),
        ({"words": ("Yes",)}, "cannot be a keyword"),
        ({"words": ()}, "must be distinct"),
        ({"words": ("a", "a")}, "must be distinct"),
        ({"clips": 2}, "fewer than one for each word"),
        ({"clips": 100_000}, "different ones can be made"),
    ],
)
def test_unspeakable_words_are_refused(changes: dict[str, object], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        plan_utterances(request(Path("x"), **changes))


def test_word_is_centred_in_a_second_with_a_hundredth_of_margin() -> None:
    sound = np.zeros(20_000, dtype=np.float32)
    sound[9_000:11_000] = 0.5
    clip = placed(sound)
    assert clip is not None
    assert len(clip) == 16_000
    assert np.flatnonzero(clip).tolist() == list(range(7_000, 9_000))
    sound[500] = 0.5
    sound[-500:] = 0.5
    assert placed(sound) is None
    assert placed(np.full(100, 0.005, np.float32)) is None


def test_missing_synthesizer_is_reported_with_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="apt install espeak-ng"):
        write_espeak_keywords(request(tmp_path / "set"))
    assert not (tmp_path / "set").exists()


@needs_espeak
def test_same_options_give_the_same_bytes_even_after_an_interruption(tmp_path: Path) -> None:
    written = write_espeak_keywords(request(tmp_path / "one"))
    assert [(part.part, part.clips) for part in written] == [("train", 12), ("val", 4)]
    whole = contents(tmp_path / "one")
    write_espeak_keywords(request(tmp_path / "two", workers=1))
    assert contents(tmp_path / "two") == whole
    clips = sorted((tmp_path / "two").rglob("*.wav"))
    for path in clips[::2]:
        path.unlink()
    again = write_espeak_keywords(request(tmp_path / "two"))
    assert sum(part.made for part in again) == len(clips[::2])
    assert contents(tmp_path / "two") == whole


@needs_espeak
def test_clips_are_one_second_of_speech_and_open_as_a_set(tmp_path: Path) -> None:
    write_espeak_keywords(request(tmp_path / "set"))
    speech = open_speech(str(tmp_path / "set"), "training", notice=lambda _: None)
    assert speech.words == ["no", "unknown", "yes"]
    assert np.bincount(speech.word_of).tolist() == [3, 6, 3]
    for index in range(len(speech.word_of)):
        wave = read_wav(speech.source.read(index).encoded, "clip")
        assert (wave.rate, len(wave.samples)) == (16_000, 16_000)
        assert 0.05 < np.abs(wave.samples).max() <= 1


@needs_espeak
def test_unrelated_folder_is_left_alone(tmp_path: Path) -> None:
    write_espeak_keywords(request(tmp_path / "set"))
    with pytest.raises(UserError, match="made with different options"):
        write_espeak_keywords(request(tmp_path / "set", seed=4))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match="not empty"):
        write_espeak_keywords(request(tmp_path / "mine"))
    assert len(contents(tmp_path / "mine")) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"words": ("yes", "unknown")},
            "--words: 'unknown' cannot be a keyword\n  Use words of lower-case letters, separated "
            "by commas.",
        ),
        (
            {"words": ("a1",)},
            "--words: 'a1' cannot be a keyword\n  Use words of lower-case letters, separated "
            "by commas.",
        ),
        ({"words": ("a", "b", "a")}, "--words: the words must be distinct"),
        ({"words": ()}, "--words: the words must be distinct"),
        ({"clips": 3}, "--clips: 3 clips are fewer than one for each word\n  Request at least 4."),
        (
            {"eval_clips": 3},
            "--eval-clips: 3 clips are fewer than one for each word\n  Request at least 4.",
        ),
        (
            {"clips": 9_104},
            "--clips: 2276 clips of 'yes' requested, but only 2275 different ones can be made "
            "for train",
        ),
        (
            {"eval_clips": 33_604},
            "--eval-clips: 8401 clips of 'yes' requested, but only 8400 different ones can be made "
            "for val",
        ),
    ],
)
def test_impossible_requests_have_the_full_message(
    changes: dict[str, object], message: str
) -> None:
    """Seven accents, 13 or 48 variants, five speeds and five pitches make the different clips."""
    with pytest.raises(UserError) as caught:
        plan_utterances(request(Path("x"), **changes))
    assert str(caught.value) == message


def test_smallest_and_largest_clip_counts_are_planned() -> None:
    least = plan_utterances(request(Path("x"), clips=4, eval_clips=5))
    assert [(each.part, each.folder.partition("/")[0], each.word) for each in least[:2]] == [
        ("train", "yes", "yes"),
        ("train", "no", "no"),
    ]
    unknown = [each for each in least if each.folder.startswith("unknown/")]
    assert [each.part for each in unknown] == ["train"] * 2 + ["val"] * 3
    assert all(each.folder == f"unknown/{each.word}" for each in unknown)
    most = plan_utterances(request(Path("x"), clips=9_103, eval_clips=4))
    train = [each for each in most if each.part == "train"]
    assert len(train) == len({each.path for each in train}) == 9_103
    assert sum(each.word == "yes" for each in train) == 2_275
    # A wanted word is no unknown one.
    words = {
        each.word for each in plan_utterances(request(Path("x"), words=("cat", "no"), clips=400))
    }
    wanted = {
        "cat",
        "no",
        "tree",
        "house",
        "seven",
        "happy",
        "wow",
        "marvin",
        "bird",
        "zero",
        "nine",
    }
    assert words == wanted


def test_clips_are_planned_in_grid_order() -> None:
    """Which of them is drawn by a seed; then accents, variants, speeds, pitches in turn."""
    planned = [each for each in plan_utterances(request(Path("x"), clips=400)) if each.word == "no"]
    train = [each for each in planned if each.part == "train"]
    order = [
        (
            ACCENTS.index(each.accent),
            VARIANTS["train"].index(each.variant),
            SPEEDS.index(each.speed),
            PITCHES.index(each.pitch),
        )
        for each in train
    ]
    assert len(order) == 100
    assert order == sorted(order)
    drawn = np.random.default_rng((5, 3, 0, zlib.crc32(b"no"))).permutation(2275)[:100]
    places = [((a * 13 + v) * 5 + s) * 5 + p for a, v, s, p in order]
    assert places == sorted(drawn.tolist())
    first = train[0]
    assert first.path == (
        f"train/no/{first.variant}_nohash_{first.accent}-s{first.speed}-p{first.pitch}.wav"
    )


def test_voices_use_the_listed_speeds_and_pitches() -> None:
    assert (SPEEDS, PITCHES) == ((110, 130, 150, 175, 200), (25, 40, 50, 60, 75))
    assert [len(VARIANTS[part]) for part in ("train", "val")] == [13, 48]
    assert len(set(ACCENTS)) == 7


@pytest.mark.parametrize(
    ("first", "last", "start"),
    [
        (0, 99, 0),
        (100, 199, 0),
        (500, 16_179, 340),
        (500, 500, 340),
    ],
)
def test_word_is_trimmed_to_a_hundredth_of_a_second_around_it(
    first: int, last: int, start: int
) -> None:
    sound = np.full(17_000, 0.01, np.float32)
    sound[first : last + 1] = -0.011
    end = min(last + 160, 16_999)
    clip = placed(sound)
    assert clip is not None
    word = sound[start : end + 1]
    margin = (16_000 - len(word)) // 2
    expected = np.zeros(16_000, np.float32)
    expected[margin : margin + len(word)] = word
    np.testing.assert_array_equal(clip, expected)


def test_word_of_one_second_fits_and_a_longer_one_does_not() -> None:
    sound = np.zeros(17_000, np.float32)
    sound[300], sound[300 + 16_000 - 321] = 0.5, 0.5
    clip = placed(sound)
    assert clip is not None
    assert np.flatnonzero(clip).tolist() == [160, 15_839]
    sound[300 + 16_000 - 320] = 0.5
    assert placed(sound) is None
    assert placed(np.full(100, 0.01, np.float32)) is None


STUB = """#!/bin/sh
case "$1" in --voices=variant) echo VARIANTS; exit;; esac
echo "$@" >> FOLDER/asked
for word; do :; done
case "$word" in
    bad) echo one >&2; echo no such voice >&2; exit 1;;
    quiet) exit 5;;
    long|broken) exec /bin/cat FOLDER/$word.wav;;
    *) exec /bin/cat FOLDER/any.wav;;
esac
"""


@pytest.fixture
def synthesizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for eSpeak NG if it is not installed: it hums."""
    place = tmp_path / "bin" / "espeak-ng"
    place.parent.mkdir()
    names = " ".join(f"!v/{name}" for part in VARIANTS.values() for name in part)
    place.write_text(STUB.replace("VARIANTS", names).replace("FOLDER", str(place.parent)))
    place.chmod(0o755)
    hum = (9_000 * np.sin(np.arange(40_000) / 10)).astype(np.int16)
    for name, count in (("any", 4_000), ("long", 40_000)):
        whole = write_wav(hum[:count], 22_050)
        # A program that writes to a pipe cannot fill in the lengths.
        piped = whole[:4] + b"\xff" * 4 + whole[8:40] + b"\xff" * 4 + whole[44:]
        (place.parent / f"{name}.wav").write_bytes(piped)
    (place.parent / "broken.wav").write_bytes(whole[:16] + b"\4\0\0\0" + whole[20:])
    monkeypatch.setenv("PATH", str(place.parent))
    return place


def test_missing_clips_are_made_counted_and_reported(synthesizer: Path, tmp_path: Path) -> None:
    report: list[tuple[int, int]] = []
    wanted = request(tmp_path / "set", words=("no", "long"), workers=1)
    written = write_espeak_keywords(wanted, progress=lambda *each: report.append(each))
    assert written == [
        WrittenPart(part="train", clips=9, made=9, left_out=3),
        WrittenPart(part="val", clips=3, made=3, left_out=1),
    ]
    assert report == [(done, 16) for done in range(1, 17)]
    paths = sorted((tmp_path / "set").rglob("*.wav"))
    assert len(paths) == 12
    wave = read_wav(paths[0].read_bytes(), "clip")
    assert (wave.rate, len(wave.samples)) == (16_000, 16_000)
    # 4,000 samples at 22,050 a second; the hum's ends are below what is audible.
    assert np.count_nonzero(wave.samples) == pytest.approx(4_000 / 22_050 * 16_000, abs=20)
    assert np.abs(wave.samples).max() == pytest.approx(9_000 / 32_768, rel=0.05)
    note = json.loads((tmp_path / "set" / "espeak.json").read_text())
    assert note == {"words": ["no", "long"], "clips": 12, "eval_clips": 4, "seed": 3}
    paths[0].unlink()
    again = write_espeak_keywords(wanted)
    assert [(part.clips, part.made, part.left_out) for part in again] == [
        (9, int("train" in paths[0].parts), 3),
        (3, int("val" in paths[0].parts), 1),
    ]
    assert synthesizer.exists()


def test_many_clips_are_spoken_ahead_in_their_order(synthesizer: Path, tmp_path: Path) -> None:
    wanted = request(tmp_path / "set", words=("long",), clips=66, eval_clips=3)
    assert [part.clips for part in write_espeak_keywords(wanted)] == [44, 2]
    asked = (synthesizer.parent / "asked").read_text().splitlines()
    assert sorted(asked) == sorted(
        f"-v {each.accent}+{each.variant} -s {each.speed} -p {each.pitch} -a 100 --stdout "
        f"{each.word}"
        for each in plan_utterances(wanted)
    )


@pytest.mark.parametrize(
    ("word", "what", "where"),
    [
        ("bad", "espeak-ng failed with exit code 1: no such voice", "bad, voice "),
        ("quiet", "espeak-ng failed with exit code 5: ", "quiet, voice "),
        ("broken", "its format chunk has 4 bytes; at least 16 are needed", "espeak-ng -v "),
    ],
)
def test_failing_synthesizer_is_reported(
    synthesizer: Path, tmp_path: Path, word: str, what: str, where: str
) -> None:
    with pytest.raises(UserError) as caught:
        write_espeak_keywords(request(tmp_path / "set", words=(word,), workers=1))
    assert caught.value.what == what
    assert caught.value.where.startswith(where)
    assert synthesizer.exists()


def test_synthesizer_without_all_voices_is_refused(synthesizer: Path, tmp_path: Path) -> None:
    text = synthesizer.read_text()
    for name in ("f1", "f2", "m8", "adam", "paul", "zac"):
        text = text.replace(f"!v/{name} ", "").replace(f"!v/{name}'", "'")
    synthesizer.write_text(text)
    with pytest.raises(UserError) as caught:
        write_espeak_keywords(request(tmp_path / "set"))
    assert str(caught.value) == (
        f"{synthesizer}: this espeak-ng lacks the voice variants f1, f2, m8, adam, paul\n"
        "  Install eSpeak NG 1.51 or newer with its complete data."
    )


def test_unrelated_folder_has_the_full_message(synthesizer: Path, tmp_path: Path) -> None:
    place = tmp_path / "set"
    write_espeak_keywords(request(place))
    with pytest.raises(UserError) as caught:
        write_espeak_keywords(request(place, seed=4))
    assert str(caught.value) == (
        f"{place}: the folder contains clips made with different options\n"
        f"  Choose another folder; {place / 'espeak.json'} lists those options."
    )
    with pytest.raises(UserError) as caught:
        write_espeak_keywords(request(synthesizer.parent))
    assert (
        str(caught.value) == f"{synthesizer.parent}: the folder is not empty\n  Choose a new one."
    )
    (place / "espeak.json").write_text("{")
    with pytest.raises(UserError, match="cannot be used: ") as caught:
        write_espeak_keywords(request(place))
    assert caught.value.where == str(place)
