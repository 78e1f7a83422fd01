"""Sentences with labels in the layouts of the originals' data."""

import json
from pathlib import Path
from typing import Any

import pytest

from jumar.data.text.numbered_lines import Skipping
from jumar.data.text.sentence_files import (
    Sentence,
    SentenceData,
    read_plain,
    read_sentences,
)
from jumar.ground.errors import UserError
from jumar.settings import describe


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


def test_xnli_has_two_names_for_one_label(tmp_path: Path) -> None:
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


def test_text_to_predict_needs_no_label(tmp_path: Path) -> None:
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
def test_errors_name_their_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(tmp_path / name, content)


def test_misspelt_column_suggests_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Did you mean 'stars'"):
        read(tmp_path / "a.tsv", "text\tstars\nx\t1\n", SentenceData(label="star"))


def test_bad_rows_can_be_skipped(tmp_path: Path) -> None:
    content = "label\ttext_a\n1\n0\t坏\n"
    assert read(tmp_path / "a.tsv", content, allowed=1) == [("坏", None, "0")]


def test_sentence_has_its_location(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("label\ttext_a\n\n1\tx\n")
    sentences = list(read_sentences(path, SentenceData(), Skipping(0, print)))
    assert sentences == [Sentence("x", None, "1", f"{path}, line 3")]


def test_settings_have_their_defaults_and_limits() -> None:
    rows = {row.path: (row.value, row.unit, row.allowed) for row in describe(SentenceData())}
    assert (
        rows
        | {
            "text_a": ("", "", ""),
            "text_b": ("", "", ""),
            "label": ("", "", ""),
            "columns": ((), "", ""),
            "language": ("zh", "", ""),
            "sampling": ("natural", "", "natural, balanced"),
            "val_fraction": (0.0, "", "0 to 0.9"),
        }
        == rows
    )
    SentenceData(folds=2, labels=("a", "b")).check()
    with pytest.raises(UserError, match="lists a label twice"):
        SentenceData(labels=("a", "a")).check()
    with pytest.raises(UserError, match="there is no fold 2 of 2 folds"):
        SentenceData(folds=2, fold=2).check()


def test_errors_have_the_full_message(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"

    def refused(content: str, name: str = "a.tsv", **settings: Any) -> str:
        with pytest.raises(UserError) as error:
            read(tmp_path / name, content, SentenceData(**settings))
        return str(error.value)

    assert refused("label\ttext_a\n1\n") == (
        f"{path}, line 2: has 1 columns instead of 2: 1\n"
        "  Columns, separated by tabs: label, text_a. To skip N such samples: data.skip_corrupt=N"
    )
    assert refused("x\ty\n1\t2\n") == (
        f"{path}, line 2: none of the columns is known as text_a: x, y\n"
        "  Specify it: data.text_a=..., or data.columns=... for a file without a header."
    )
    assert refused("text\ty\n1\t2\n") == (
        f"{path}, line 2: none of the columns is known as label: text, y\n"
        "  Specify it: data.label=..., or data.columns=... for a file without a header."
    )
    assert refused("text\tstars\n1\t2\n", label="zzz") == (
        f"{path}, line 2: there is no column 'zzz' (data.label)\n  Existing columns: text, stars."
    )
    assert refused("text\tstars\n1\t2\n", text_b="star", label="stars") == (
        f"{path}, line 2: there is no column 'star' (data.text_b)\n"
        "  Did you mean 'stars'? Existing columns: text, stars."
    )
    assert refused("text\tstars\n\n", label="stars") == (
        f"{path}: there are no rows after the header"
    )
    lines = tmp_path / "a.jsonl"
    assert refused('{"text": "x", "label": 0}\n\n[1]\n', "a.jsonl") == (
        f"{lines}, line 3: is not a JSON object\n"
        "  Expected: one object per line. To skip N such samples: data.skip_corrupt=N"
    )
    assert refused('{"text": "x", "label": 0}\n{"text": null, "label": 0}\n', "a.jsonl") == (
        f"{lines}, line 2: has no 'text'\n  To skip N such samples: data.skip_corrupt=N"
    )


def test_bad_rows_are_skipped_and_the_rest_is_read(tmp_path: Path) -> None:
    content = '{"text": "a", "label": 0}\n\n[1]\n{"te\n{"label": 1}\n{"text": "b", "label": 1}\n'
    assert read(tmp_path / "a.json", content, allowed=3) == [("a", None, "0"), ("b", None, "1")]
    with pytest.raises(UserError, match="line 5"):
        read(tmp_path / "a.json", content, allowed=2)


def test_known_columns_are_searched_in_order(tmp_path: Path) -> None:
    content = "query\ttext\tsentence1\tquestion2\ttext_b\tgold_label\tlabel\na\tb\tc\td\te\tf\tg\n"
    assert read(tmp_path / "a.tsv", content) == [("c", "e", "g")]
    assert read(tmp_path / "a.tsv", content, SentenceData(text_b="none")) == [("c", None, "g")]
    assert read(tmp_path / "a.tsv", content, SentenceData(text_a="query", label="text")) == [
        ("a", "e", "b")
    ]
    # Without labels a column of that name is of no interest.
    assert read(tmp_path / "a.tsv", content, labelled=False) == [("c", "e", "")]


def test_plain_texts_are_one_per_line_and_a_tab_makes_a_pair(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n\n \ntwo\tb\tc\nthree\t\n")
    assert read_plain(path) == [
        Sentence("one", None, "", f"{path}, line 1"),
        Sentence("two", "b\tc", "", f"{path}, line 4"),
        Sentence("three", "", "", f"{path}, line 5"),
    ]
