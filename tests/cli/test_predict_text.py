"""Asking fine-tuned networks about new texts."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.in_process import here
from tests.cli.small_text_runs import FINE_TUNED, fine_tune
from tests.recipes.small_data import write_texts


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, and a run of each recipe named as it."""
    folder = tmp_path_factory.mktemp("texts")
    write_texts(folder)
    for name in FINE_TUNED:
        fine_tune(folder, name)
    return folder


def asked(
    place: Path, name: str, *arguments: str | Path, cwd: Path | None = None
) -> list[dict[str, Any]]:
    done = here("predict", place / name, *arguments, "--json", "--device", "cpu", cwd=cwd or place)
    content = json.loads(done.out)
    assert content["errors"] == []
    return content["results"]


def test_text_labels_have_names_and_probabilities(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.txt"
    path.write_text("a b c x\n\nd e f y\n")
    results = asked(place, "bert-classify", path, cwd=tmp_path)
    assert [result["text"] for result in results] == ["a b c x", "d e f y"]
    assert results[1]["where"] == f"{path}, line 3"
    for result, label in zip(results, "01", strict=True):
        assert sum(result["probabilities"].values()) == pytest.approx(1, abs=1e-5)
        assert result["probabilities"][label] > 0.8
    single = asked(place, "bert-classify", "--text", "d e f y")
    assert single[0]["probabilities"]["1"] == pytest.approx(results[1]["probabilities"]["1"])


def test_files_with_columns_need_no_label(place: Path, tmp_path: Path) -> None:
    (tmp_path / "new.tsv").write_text("text_a\na b c x\n")
    (tmp_path / "new.jsonl").write_text('{"text": "a b c x"}\n')
    results = asked(place, "bert-classify", tmp_path / "new.tsv", tmp_path / "new.jsonl")
    assert [result["text"] for result in results] == ["a b c x"] * 2
    assert results[0]["probabilities"] == results[1]["probabilities"]
    path = place / "sentences" / "dev.tsv"
    best = [
        max(row["probabilities"], key=row["probabilities"].get)
        for row in asked(place, "bert-classify", path)
    ]
    done = here("predict", place / "bert-classify", path, "--top", "1", cwd=place)
    assert [line.split()[0] for line in done.out.splitlines()] == best
    assert sum(label == "010101"[number] for number, label in enumerate(best)) >= 4


def test_entities_have_character_offsets_in_the_whole_text(place: Path) -> None:
    # Longer than a sample of 12 tokens, so it is tagged in parts.
    text = " ".join("abcdefgabcdefgabcdefg")
    (result,) = asked(place, "bert-ner", "--text", text)
    assert result["entities"]
    for entity in result["entities"]:
        assert text[entity["begin"] : entity["end"]] == entity["text"]
        assert entity["text"] == entity["text"].strip() != ""
        assert set(entity["text"]) <= set("ab ")
        assert entity["kind"] == "X"
        assert 0 < entity["probability"] <= 1
    ends = [entity["end"] for entity in result["entities"]]
    assert ends == sorted(ends)
    assert ends[-1] > 26
    done = here("predict", place / "bert-ner", "--text", text, "--device", "cpu", cwd=place)
    assert done.out.splitlines()[0] == text
    assert len(done.out.splitlines()) == 1 + len(ends)


def test_texts_split_into_words_have_entities_of_whole_words(place: Path) -> None:
    text = "c a b, ga ab a b f"
    arguments = ("--text", text, "--set", "data.new_texts=words")
    (result,) = asked(place, "bert-ner", *arguments)
    assert {"a", "b"} <= set("".join(entity["text"] for entity in result["entities"]))
    for entity in result["entities"]:
        assert text[entity["begin"] : entity["end"]] == entity["text"]
        assert f" {text} "[entity["begin"]] in " ,"
        assert f" {text} "[entity["end"] + 1] in " ,"


def test_answers_are_listed_with_their_position(place: Path) -> None:
    passage = "a B c d e f g a b c d e f g"
    (result,) = asked(place, "bert-reading", "--text", passage, "--pair", "z")
    answers = result["answers"]
    assert 1 < len(answers) <= 20
    for answer in answers:
        assert passage[answer["begin"] : answer["end"]] == answer["text"]
    shares = [answer["probability"] for answer in answers]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)
    results = asked(place, "bert-reading", place / "questions" / "dev.json")
    assert [result["number"] for result in results] == [f"dev {number}" for number in range(6)]
    arguments = ("--text", passage, "--pair", "z", "--top", "2", "--device", "cpu")
    done = here("predict", place / "bert-reading", *arguments, cwd=place)
    assert done.out.splitlines()[0] == "z"
    assert len(done.out.splitlines()) == 3


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("bert-reading", ["--text", "a"], "no question about the text"),
        ("bert-ner", ["--text", "a", "--pair", "b"], "entities are found in single texts"),
        ("bert-classify", ["none.tsv"], "there is no such file"),
        ("bert-reading", ["vocab.txt"], "is not JSON"),
        ("bert-classify", [], "texts.txt"),
        ("bert-ner", [], "texts.txt"),
        ("bert-reading", [], "questions.json"),
    ],
)
def test_unanswerable_inputs_are_reported(
    place: Path, name: str, arguments: list[str], message: str
) -> None:
    run = place / name
    done = here("predict", run, *arguments, "--device", "cpu", cwd=place, code=2)
    assert message in done.message


def test_unreadable_files_and_rows_can_be_skipped(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.tsv"
    path.write_text("id\ttext_a\n1\ta x\n2\n")
    run = place / "bert-classify"
    arguments = ("predict", run, path, tmp_path / "none.txt", "--device", "cpu")
    done = here(*arguments, cwd=place, code=2)
    assert "line 3: has 1 columns instead of 2" in done.message
    assert "--skip-corrupt N" in done.message
    done = here(*arguments, "--skip-corrupt", "1", cwd=place)
    assert len(done.out.splitlines()) == 1
    done = here(*arguments, "--json", cwd=place, code=2)
    errors = json.loads(done.out)["errors"]
    assert [error["file"] for error in errors] == [str(path), str(tmp_path / "none.txt")]


def test_vocabulary_comes_from_the_run_or_an_option(place: Path, tmp_path: Path) -> None:
    arguments = ("predict", place / "bert-classify", "--text", "a", "--device", "cpu")
    done = here(*arguments, cwd=tmp_path)
    used = f"using {place / 'vocab.txt'}"
    assert f"model.vocabulary: 'vocab.txt' does not exist here; {used}" in done.err
    assert "data.path" not in done.err
    (place / "vocab.txt").rename(tmp_path / "other.txt")
    try:
        done = here(*arguments, cwd=tmp_path, code=2)
        assert "there is no such vocabulary" in done.message
        elsewhere = ("--set", f"model.vocabulary={tmp_path / 'other.txt'}")
        assert here(*arguments, *elsewhere, cwd=tmp_path).out
    finally:
        (tmp_path / "other.txt").rename(place / "vocab.txt")
