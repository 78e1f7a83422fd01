"""Strings that google-research/bert's tokenization.py has cut, the hard ones among them."""

import json
from pathlib import Path
from typing import Any

import pytest

from jumar.data.text.tokenizer import Tokenizer, open_tokenizer


@pytest.fixture(scope="module")
def case(parity: Path) -> dict[str, Any]:
    return json.loads((parity / "nlp_tokenization.json").read_text(encoding="utf-8"))


def opened(shared: Path, **options: Any) -> Tokenizer:
    return open_tokenizer(shared / "data" / "nlp-zh" / "vocab.txt", **options)


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    return [tokenizer.vocabulary.pieces[number] for number in tokenizer.ids(text)]


@pytest.mark.parametrize("case_of_words", ["lower", "cased"])
def test_every_string_is_tokenized_as_in_the_original(
    shared: Path, case: dict[str, Any], case_of_words: str
) -> None:
    tokenizer = opened(shared, lower_case=case_of_words == "lower")
    assert len(case["strings"]) == 31
    for each in case["strings"]:
        text = each["text"]
        assert tokenizer.rules.words(text) == each[f"basic_{case_of_words}"], text
        assert pieces(tokenizer, text) == each[f"tokens_{case_of_words}"], text
        placed = tokenizer.tokens(text)
        assert [token.piece for token in placed] == each[f"tokens_{case_of_words}"], text
        assert all(0 <= token.start < token.end <= len(text) for token in placed), text
    if case_of_words == "lower":
        for each in case["strings"]:
            assert tokenizer.ids(each["text"]) == each["ids_lower"]


@pytest.mark.parametrize(
    ("original", "longest"), [("nezha", 200), ("bert_base_id0060", 100), ("nezha_large_mz", 100)]
)
def test_other_originals_differ_only_in_the_longest_word(
    shared: Path, case: dict[str, Any], original: str, longest: int
) -> None:
    tokenizer = opened(shared, longest_word=longest)
    others = case["differences_in_other_originals"][original]
    for each in case["strings"]:
        # The fixture has the first 40 characters of a text.
        differing = [other for other in others if each["text"][:40] == other["text"]]
        wanted = differing[0]["tokens"] if differing else each["tokens_lower"]
        assert pieces(tokenizer, each["text"]) == wanted
