"""Sentences with labels in the layouts of the originals' data."""

import json
from pathlib import Path

import pytest

from jumar.data.text.numbered_lines import Skipping
from jumar.data.text.sentence_files import Sentence, SentenceData, read_sentences
from jumar.ground.errors import UserError


def read(
    path: Path,
    content: str,
    data: SentenceData | None = None,
    *,
    allowed: int = 0,
    labelled: bool = True,
) -> list[tuple[str, str | None, str]]:
    path.write_text(content, encoding="utf-8")
    skipping = Skipping(allowed, lambda _: None)
    return [
        sentence[:3]
        for sentence in read_sentences(path, data or SentenceData(), skipping, labelled=labelled)
    ]


def test_chnsenticorp_has_single_texts(tmp_path: Path) -> None:
    content = 'label\ttext_a\n1\t"很好\n0\t不 好\n\n'
    assert read(tmp_path / "a.tsv", content) == [('"很好', None, "1"), ("不 好", None, "0")]


def test_lcqmc_has_pairs(tmp_path: Path) -> None:
    content = "text_a\ttext_b\tlabel\n喜欢\t爱\t1\n"
    assert read(tmp_path / "a.tsv", content) == [("喜欢", "爱", "1")]


def test_xnli_names_one_label_in_two_ways(tmp_path: Path) -> None:
    train = "premise\thypo\tlabel\n你\t我\tcontradictory\n你\t他\tneutral\n"
    assert read(tmp_path / "multinli.train.zh.tsv", train) == [
        ("你", "我", "contradiction"),
        ("你", "他", "neutral"),
    ]


def test_xnli_for_evaluation_has_many_languages(tmp_path: Path) -> None:
    header = ["language", "gold_label", "sentence1_binary_parse", "sentence2_binary_parse"]
    header += ["sentence1_parse", "sentence2_parse", "sentence1", "sentence2", "promptID"]
    rows = [header]
    for language in ("ar", "zh"):
        rows.append([language, "entailment", "", "", "", "", f"{language} 1", f"{language} 2", "9"])
    content = "".join("\t".join(row) + "\n" for row in rows)
    assert read(tmp_path / "xnli.dev.tsv", content) == [("zh 1", "zh 2", "entailment")]
    arabic = SentenceData(language="ar")
    assert read(tmp_path / "xnli.dev.tsv", content, arabic) == [("ar 1", "ar 2", "entailment")]


def test_ocnli_is_json_lines_and_has_undecided_pairs(tmp_path: Path) -> None:
    rows = [
        {"level": "medium", "sentence1": "好", "sentence2": "很好", "label": "entailment", "id": 1},
        {"level": "easy", "sentence1": "不", "sentence2": "好", "label": "-", "id": 2},
    ]
    content = "".join(json.dumps(row) + "\n" for row in rows)
    assert read(tmp_path / "dev.json", content) == [("好", "很好", "entailment")]


def test_columns_of_any_name_can_be_chosen(tmp_path: Path) -> None:
    content = "好\tx\t3\n"
    data = SentenceData(columns=("text", "other", "stars"), label="stars", text_b="none")
    assert read(tmp_path / "a.tsv", content, data) == [("好", None, "3")]
    pair = SentenceData(columns=("text", "other", "stars"), label="stars", text_b="other")
    assert read(tmp_path / "a.tsv", content, pair) == [("好", "x", "3")]
    assert read(tmp_path / "a.jsonl", '{"text": "好", "label": 1}') == [("好", None, "1")]


def test_a_text_to_predict_needs_no_label(tmp_path: Path) -> None:
    assert read(tmp_path / "a.tsv", "text_a\n好\n", labelled=False) == [("好", None, "")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "label\ttext_a\n1\t好\n1\n", "a.tsv, line 3: has 1 columns instead of 2: 1"),
        ("a.tsv", "label\ttext_a\n1\t好\tx\n", "line 2: has 3 columns instead of 2"),
        ("a.tsv", "1\t好\n0\t坏\n", "none of the columns is known as text_a: 1, 好"),
        ("a.tsv", "text_a\n好\n", "none of the columns is known as label"),
        ("a.tsv", "label\ttext_a\n", "no rows after the header"),
        ("a.json", '{"text": "好", "label": 1}\n{"text"\n', "line 2: is not JSON"),
        ("a.json", "[1]\n", "line 1: is not a JSON object"),
        ("a.json", '{"text": "好", "label": 1}\n{"text": "x"}\n', "line 2: has no 'label'"),
    ],
)
def test_what_is_wrong_has_its_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(tmp_path / name, content)


def test_a_misspelt_column_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Did you mean 'stars'"):
        read(tmp_path / "a.tsv", "text\tstars\nx\t1\n", SentenceData(label="star"))


def test_bad_rows_can_be_skipped(tmp_path: Path) -> None:
    content = "label\ttext_a\n1\n0\t坏\n"
    assert read(tmp_path / "a.tsv", content, allowed=1) == [("坏", None, "0")]


def test_the_place_of_a_sentence_is_known(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("label\ttext_a\n\n1\tx\n")
    sentences = list(read_sentences(path, SentenceData(), Skipping(0, print)))
    assert sentences == [Sentence("x", None, "1", f"{path}, line 3")]
