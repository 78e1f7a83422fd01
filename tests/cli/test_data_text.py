"""`jumar data pretraining`: the data that it writes, and what it refuses."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.in_process import Done, here
from tests.data.text.payloads import payloads_of
from tests.data.text.vocabularies import write_vocabulary

TEXT = "the cat sat on the mat\nthe dog ran\na cat ran.\n\nthe dog sat on the cat\nhe ran\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_vocabulary(tmp_path / "vocab.txt")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text(TEXT)
    (tmp_path / "texts" / "b.txt").write_text(TEXT.replace("cat", "dog") + "中文词语。天气很好\n")
    return tmp_path


def pretraining(folder: Path, *options: str, code: int = 0, texts: str = "texts") -> Done:
    defaults = {"--vocab": "vocab.txt", "--to": "out", "--max-seq-length": "16"}
    left = [word for pair in defaults.items() if pair[0] not in options for word in pair]
    arguments = (*left, *options)
    return here("data", "pretraining", texts, *arguments, cwd=folder, code=code)


def contents(path: Path) -> list[bytes]:
    return [each.read_bytes() for each in sorted(path.glob("*.tfrecord"))]


@pytest.mark.parametrize("order", ["streaming", "original"])
def test_records_are_written_and_summarised(folder: Path, order: str) -> None:
    done = pretraining(folder, "--order", order, "--shards", "2", "--dupe-factor", "3")
    manifest = json.loads((folder / "out" / "pretraining.json").read_text())
    assert manifest["order"] == order
    assert manifest["options"]["dupe_factor"] == 3
    records = [len(payloads_of(path)) for path in sorted((folder / "out").glob("*.tfrecord"))]
    assert sum(records) == manifest["written"]["instances"]
    assert f"{sum(records)} instances in 2 shards" in done.out
    assert "about " in done.out.splitlines()[0]


def test_options_affect_the_records(folder: Path) -> None:
    pretraining(folder, "--workers", "1")
    usual = contents(folder / "out")
    for number, options in enumerate(
        [
            ("--random-seed", "1"),
            ("--case", "cased", "--longest-word", "2"),
            ("--do-whole-word-mask",),
            ("--do-whole-word-mask", "--segmenter", "spaces"),
            ("--no-next-sentence",),
            ("--masked-lm-prob", "0.5"),
            ("--short-seq-prob", "1"),
            ("--max-predictions-per-seq", "1"),
            ("--max-seq-length", "20"),
        ]
    ):
        pretraining(folder, "--to", f"other{number}", *options)
        assert contents(folder / f"other{number}") != usual
    pretraining(folder, "--to", "again", "--workers", "2")
    assert contents(folder / "again") == usual


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--max-seq-length", "4"), "--max-seq-length: 4"),
        (("--vocab", "none.txt"), "none.txt: there is no such vocabulary"),
        (("--to", "texts/out"), "texts/out: is inside the input folder"),
        (("--to", "texts"), "is inside the input folder"),
        (("--to", "vocab.txt"), "vocab.txt: already exists"),
        (("--shards", "0"), "--shards: 0 shards"),
        (("--workers", "0"), "--workers: cannot be 0"),
        (("--segmenter", "spaces"), "--segmenter: a segmenter has no effect"),
        (("--order", "original", "--no-next-sentence"), "instances are always pairs of segments"),
    ],
)
def test_impossible_requests_fail_before_anything_is_written(
    folder: Path, options: tuple[str, ...], what: str
) -> None:
    before = sorted(folder.rglob("*"))
    assert what in pretraining(folder, *options, code=2).message
    assert sorted(folder.rglob("*")) == before


def test_text_inside_the_output_folder_is_refused(folder: Path) -> None:
    done = pretraining(folder, "--to", "texts", texts="texts/a.txt", code=2)
    assert "would overwrite the text" in done.message


def test_without_jieba_the_message_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    done = pretraining(folder, "--do-whole-word-mask", "--segmenter", "jieba", code=2)
    assert "pip install jieba" in done.message
    assert not (folder / "out").exists()


@pytest.mark.slow
def test_after_ctrl_c_the_same_command_resumes(folder: Path) -> None:
    (folder / "texts" / "a.txt").write_text((TEXT * 9 + "\n") * 7_000)
    arguments = ["data", "pretraining", "texts", "--vocab", "vocab.txt", "--dupe-factor", "1"]
    begun = [sys.executable, "-m", "jumar", *arguments, "--to", "out", "--workers", "1"]
    process = subprocess.Popen(begun, cwd=folder, stdout=subprocess.PIPE, text=True)
    chunks = folder / ".out.unfinished" / "chunks"
    while not list(chunks.glob("*.json")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command resumes from here" in out
    done = here(*arguments, "--to", "out", "--workers", "2", cwd=folder)
    assert "resuming: 1 of 2 chunks and 0 of 8 shards" in done.out
    here(*arguments, "--to", "whole", cwd=folder)
    assert contents(folder / "out") == contents(folder / "whole")
    assert not (folder / ".out.unfinished").exists()


def test_vocabulary_is_trained_and_tokenizes_its_own_texts(folder: Path) -> None:
    done = here("data", "vocab", "texts", "--to", "new.txt", "--size", "80", cwd=folder)
    assert "from 2 files: new.txt" in done.out
    lines = (folder / "new.txt").read_text(encoding="utf-8").split("\n")
    assert lines[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert "0.00% of them [UNK]" in pretraining(folder, "--vocab", "new.txt").out


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("texts", "--to", "vocab.txt"), "vocab.txt: already exists"),
        (("none", "--to", "new.txt"), "none: there is no such text file"),
        (("texts", "--to", "new.txt", "--size", "3"), "--size: 3"),
        (("texts", "--to", "new.txt", "--min-frequency", "0"), "--min-frequency: 0"),
    ],
)
def test_no_vocabulary_is_written_if_none_can_be_trained(
    folder: Path, options: tuple[str, ...], what: str
) -> None:
    assert what in here("data", "vocab", *options, cwd=folder, code=2).message
    assert not (folder / "new.txt").exists()
