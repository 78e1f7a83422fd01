"""Asking a trained network about clips and images."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumar.data.speech.wav import read_wav, to_int16, write_wav
from tests.cli.in_process import here, settings
from tests.data.tones import divided, tone

LABELS = {"_silence_", "_unknown_", "low", "middle", "high"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned to distinguish three tones."""
    folder = tmp_path_factory.mktemp("keywords")
    data = divided(folder / "set", train=10, val=5)
    options = settings(
        data__path=data,
        data__words="low,middle,high",
        data__batch_size=12,
        data__background_frequency=0,
        data__workers=0,
        precision__mode="must_keep_origin_dtype",
        optimizer__learning_rate=0.005,
        schedule__kind="cosine",
        training__duration="150it",
        training__evaluate_every="150it",
    )
    here("train", "ds-cnn-s", "--device", "cpu", "--run-dir", "run", *options, cwd=folder)
    results = json.loads((folder / "run" / "results.json").read_text())
    assert results["metrics"]["accuracy"] > 90
    return folder / "run"


def answers(run: Path, *files: Path) -> list[dict[str, object]]:
    done = here("predict", run, *files, "--json", "--device", "cpu", cwd=run.parent)
    report = json.loads(done.out)
    assert report["errors"] == []
    return report["results"]


def write(path: Path, encoded: bytes) -> Path:
    path.write_bytes(encoded)
    return path


def likeliest(answer: dict[str, object]) -> str:
    probabilities = answer["probabilities"]
    assert isinstance(probabilities, dict)
    assert set(probabilities) == LABELS
    assert sum(probabilities.values()) == pytest.approx(1, abs=1e-5)
    return max(probabilities, key=probabilities.__getitem__)


def test_words_of_a_folder_are_printed_with_the_three_best_guesses(run: Path) -> None:
    folder = run.parent / "set" / "val" / "high"
    done = here("predict", run, folder, "--device", "cpu", cwd=run.parent)
    lines = done.out.splitlines()
    assert len(lines) == 5
    assert sum(": high " in line for line in lines) >= 4
    assert all(line.count(" %") == 3 for line in lines)


def test_short_long_and_resampled_clips_are_classified(run: Path, tmp_path: Path) -> None:
    other_rate = write(tmp_path / "rate.wav", tone("high", 100, rate=22_050))
    short = write(tmp_path / "short.wav", write_wav(np.zeros(300, np.int16), 16_000))
    word = to_int16(read_wav(tone("high", 100), "x").samples)
    silence = np.zeros(16_000, np.int16)
    late = write(
        tmp_path / "late.wav", write_wav(np.concatenate([silence, silence, word, silence]), 16_000)
    )
    result = answers(run, other_rate, short, late)
    assert [answer["start_s"] for answer in result[:2]] == [None, None]
    assert likeliest(result[0]) == likeliest(result[2]) == "high"
    assert abs(float(str(result[2]["start_s"])) - 2) <= 0.5


def test_clip_gets_the_same_answer_alone_and_in_a_batch(run: Path) -> None:
    folder = run.parent / "set" / "val"
    together = answers(run, folder)
    assert len(together) == 20
    assert answers(run, Path(str(together[7]["file"]))) == [together[7]]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "there is no such file"),
        (b"RIFF", "not a WAV file"),
        (b"", "empty"),
        (write_wav(np.zeros(0, np.int16), 16_000), "no audio samples"),
        ("folder", "no WAV files"),
    ],
)
def test_unreadable_clips_are_reported(
    run: Path, tmp_path: Path, content: bytes | str | None, expected: str
) -> None:
    path = tmp_path / "clip.wav"
    if content == "folder":
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    done = here("predict", run, path, "--device", "cpu", cwd=tmp_path, code=2)
    assert expected in done.message
    assert "clip.wav" in done.message
    # A path that is misspelt is no sample that could be left out.
    assert ("--skip-corrupt" in done.message) == isinstance(content, bytes)


def test_broken_clip_is_reported_in_order_and_can_be_skipped(run: Path, tmp_path: Path) -> None:
    good = next((run.parent / "set").rglob("*.wav")).read_bytes()
    (tmp_path / "clips").mkdir()
    write(tmp_path / "clips" / "a.wav", good)
    write(tmp_path / "clips" / "b.wav", b"no sound")
    write(tmp_path / "clips" / "c.wav", good)
    arguments = ("predict", run, tmp_path / "clips", "--device", "cpu")
    refused = here(*arguments, cwd=run.parent, code=2)
    assert "a.wav" in refused.out
    assert "c.wav" not in refused.out
    assert "--skip-corrupt N" in refused.message
    tolerated = here(*arguments, "--skip-corrupt", "1", cwd=run.parent)
    assert "c.wav" in tolerated.out
    assert "skipped: " in tolerated.err


def test_json_has_the_answers_and_the_errors_of_all_files(run: Path, tmp_path: Path) -> None:
    good = next((run.parent / "set").rglob("*.wav"))
    clips = [tmp_path / name for name in ("a.wav", "b.wav", "c.wav")]
    for clip in (clips[0], clips[2]):
        write(clip, good.read_bytes())
    write(clips[1], b"no sound")
    (tmp_path / "empty").mkdir()
    command = ("predict", run, *clips, tmp_path / "empty", "--json", "--device", "cpu")
    refused = here(*command, cwd=tmp_path, code=2)
    report = json.loads(refused.out)
    assert [answer["file"] for answer in report["results"]] == [str(clips[0]), str(clips[2])]
    assert [error["file"] for error in report["errors"]] == [str(clips[1]), str(tmp_path / "empty")]
    assert "not a WAV file" in report["errors"][0]["error"]
    assert "2 of 4 files cannot be read" in refused.message
    tolerated = here(*command, "--skip-corrupt", "2", cwd=tmp_path)
    assert json.loads(tolerated.out) == report


def test_zero_guesses_are_refused(run: Path) -> None:
    done = here("predict", run, "x.wav", "--top", "0", cwd=run.parent, code=2)
    assert "--top" in done.message


def test_call_without_files_says_how_to_give_one(run: Path) -> None:
    assert "clip.wav" in here("predict", run, cwd=run.parent, code=2).message


def test_images_are_labelled_with_class_names(tmp_path: Path) -> None:
    from tests.cli.in_process import train
    from tests.data.pictures import pets, write_files

    files = {f"{part}/{name}": data for part in ("train", "val") for name, data in pets(4).items()}
    folder = write_files(tmp_path / "pets", files)
    options = settings(data__path=folder, training__duration="1it")
    train("--run-dir", "run", *options, cwd=tmp_path)
    done = here("predict", "run", folder / "val", "--json", "--device", "cpu", cwd=tmp_path)
    result = json.loads(done.out)["results"]
    assert len(result) == 8
    assert all(set(answer["probabilities"]) == {"cat", "horse"} for answer in result)
    assert "jumar predict run image.jpg" in here("predict", "run", cwd=tmp_path, code=2).message
    write(tmp_path / "none.jpg", b"")
    done = here("predict", "run", "none.jpg", "--device", "cpu", cwd=tmp_path, code=2)
    assert "none.jpg: the file is empty" in done.message
    pages = [Image.new("RGB", (64, 64), color) for color in ("red", "green", "blue")]
    for name, what in (("a.gif", "2 of 3 frames"), ("b.tif", "2 of 3 pages")):
        (tmp_path / "more").mkdir(exist_ok=True)
        pages[0].save(tmp_path / "more" / name, save_all=True, append_images=pages[1:])
        done = here("predict", "run", "more", "--device", "cpu", cwd=tmp_path)
        assert re.search(f"more/{name}: (cat|horse) ", done.out)
        assert f"more/{name}: only the first one is used, {what} ignored" in done.err


def test_published_network_predicts_the_same_as_in_tensorflow(shared: Path, tmp_path: Path) -> None:
    published = shared / "data" / "pretrained" / "ml-kws"
    graph = published / "DS_CNN_S.pb"
    here("weights", "import", "ds-cnn-s", graph, "--to", "run", cwd=tmp_path)
    report = json.loads((published / "expected_tf1.15.json").read_text())
    expected = report["models"][graph.name]["softmax"]
    result = answers(tmp_path / "run", published / "samples")
    assert len(result) == len(expected) == 4
    for answer in result:
        numbers = expected[Path(str(answer["file"])).name.split("_")[0]]
        # The expected numbers are rounded to six digits.
        assert answer["probabilities"] == pytest.approx(
            dict(zip(report["labels"], numbers, strict=True)), abs=2e-6
        )
