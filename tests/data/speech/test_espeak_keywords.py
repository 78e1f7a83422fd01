import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jumar.data.speech.espeak_keywords import (
    KeywordsRequest,
    placed,
    plan_utterances,
    write_espeak_keywords,
)
from jumar.data.speech.speech_commands import open_speech, which_part
from jumar.data.speech.wav import read_wav
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


def test_each_word_gets_its_share_and_no_clip_comes_twice() -> None:
    utterances = plan_utterances(KeywordsRequest(folder=Path("x"), clips=6_000, eval_clips=1_000))
    paths = [utterance.path for utterance in utterances]
    assert len(set(paths)) == len(paths) == 7_000
    train = [u for u in utterances if u.part == "train"]
    assert sum(u.word == "yes" for u in train) == 500
    assert sum(u.folder.startswith("unknown/") for u in train) == 1_000


def test_no_voice_is_in_both_parts_and_the_names_give_the_speaker() -> None:
    utterances = plan_utterances(KeywordsRequest(folder=Path("x")))
    voices = {part: {u.variant for u in utterances if u.part == part} for part in ("train", "val")}
    assert len(voices["train"]) == 13
    assert len(voices["val"]) == 48
    assert not voices["train"] & voices["val"]
    parts = {(u.variant, which_part(u.path)) for u in utterances}
    assert len(parts) == 61


def test_the_plan_follows_from_the_options_and_of_the_words_only_from_each() -> None:
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
def test_what_cannot_be_spoken_is_refused(changes: dict[str, object], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        plan_utterances(request(Path("x"), **changes))


def test_a_word_is_put_in_the_middle_of_a_second_with_a_hundredth_around_it() -> None:
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


def test_a_missing_synthesizer_is_told_with_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="apt install espeak-ng"):
        write_espeak_keywords(request(tmp_path / "set"))
    assert not (tmp_path / "set").exists()


@needs_espeak
def test_the_same_options_give_the_same_bytes_also_after_an_interruption(tmp_path: Path) -> None:
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
def test_the_clips_are_seconds_of_speech_that_can_be_opened(tmp_path: Path) -> None:
    write_espeak_keywords(request(tmp_path / "set"))
    speech = open_speech(str(tmp_path / "set"), "training", notice=lambda _: None)
    assert speech.words == ["no", "unknown", "yes"]
    assert np.bincount(speech.word_of).tolist() == [3, 6, 3]
    for index in range(len(speech.word_of)):
        wave = read_wav(speech.source.read(index).encoded, "clip")
        assert (wave.rate, len(wave.samples)) == (16_000, 16_000)
        assert 0.05 < np.abs(wave.samples).max() <= 1


@needs_espeak
def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    write_espeak_keywords(request(tmp_path / "set"))
    with pytest.raises(UserError, match="made with other options"):
        write_espeak_keywords(request(tmp_path / "set", seed=4))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match="not empty"):
        write_espeak_keywords(request(tmp_path / "mine"))
    assert len(contents(tmp_path / "mine")) == 1
