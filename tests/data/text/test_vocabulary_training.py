"""Vocabularies made from texts."""

from pathlib import Path

import pytest

from jumar.data.text.basic_words import BasicWords
from jumar.data.text.tokenizer import Tokenizer, TokenizerRules
from jumar.data.text.vocabulary import SPECIAL, Vocabulary
from jumar.data.text.vocabulary_training import train_vocabulary
from jumar.ground.errors import UserError

LOWER = BasicWords()


def text(folder: Path, content: str | bytes, name: str = "text.txt") -> list[Path]:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [path]


def test_frequent_words_become_pieces_after_the_special_ones(tmp_path: Path) -> None:
    files = text(tmp_path, "The walking talking cat, the walked talked cat.\n" * 20)
    pieces = train_vocabulary(files, size=70, words=LOWER)
    assert tuple(pieces[:5]) == SPECIAL
    assert {"the", "cat", ",", "."} <= set(pieces)
    assert "The" not in pieces
    assert len(pieces) == len(set(pieces)) <= 70
    tokenizer = Tokenizer(Vocabulary(pieces))
    assert pieces.index("[UNK]") not in tokenizer.ids("the cat walked, talking.")


def test_the_same_texts_give_the_same_vocabulary(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [shared / "data" / "nlp-zh" / "pretrain" / "zhwiki-simplified.txt"]
    pieces = train_vocabulary(files, size=4000, words=LOWER)
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    assert train_vocabulary(files, size=4000, words=LOWER) == pieces
    assert len(pieces) == 4000
    tokenizer = Tokenizer(Vocabulary(pieces))
    ids = tokenizer.ids(files[0].read_text(encoding="utf-8"))
    # Half of the pieces may be characters, and some are rarer than the first 1997.
    assert ids.count(pieces.index("[UNK]")) / len(ids) < 0.05


def test_case_decides_what_words_are(tmp_path: Path) -> None:
    files = text(tmp_path, "Café CAFÉ\n" * 5)
    assert "cafe" in train_vocabulary(files, size=60, words=LOWER)
    cased = train_vocabulary(files, size=60, words=BasicWords(False, False))
    assert {"Café", "CAFÉ"} <= set(cased)
    rules = TokenizerRules(words=BasicWords(False, False))
    assert len(Tokenizer(Vocabulary(cased), rules).ids("Café CAFÉ")) == 2


def test_a_small_size_is_kept_and_the_most_frequent_characters_are_in_it(tmp_path: Path) -> None:
    files = text(tmp_path, "aaab aab abc zq\n" * 5)
    pieces = train_vocabulary(files, size=12, words=LOWER)
    assert len(pieces) <= 12
    assert "a" in pieces
    assert "z" not in pieces


@pytest.mark.parametrize(
    ("content", "size", "what"),
    [
        ("", 100, "there is no text"),
        (" \n\u200b\n", 100, "there is no text"),
        (b"a\nb \xff\n", 100, "line 2: is not UTF-8"),
        ("a\n", 9, "--size: 9"),
        ("a\n", 1 << 21, "--size: 2097152"),
        ("x" * 200 + "\n", 100, "there is no text"),
    ],
)
def test_what_makes_no_vocabulary_is_an_error(
    tmp_path: Path, content: str | bytes, size: int, what: str
) -> None:
    with pytest.raises(UserError) as error:
        train_vocabulary(text(tmp_path, content), size=size, words=LOWER)
    assert what in str(error.value)


def test_progress_ends_at_all_bytes(tmp_path: Path) -> None:
    files = text(tmp_path, "a b\n") + text(tmp_path, "c d e\n", "other.txt")
    seen: list[tuple[int, int]] = []
    train_vocabulary(
        files, size=50, words=LOWER, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(4, 10), (10, 10)]
