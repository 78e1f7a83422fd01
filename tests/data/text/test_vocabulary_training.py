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


def test_same_texts_give_the_same_vocabulary(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [shared / "data" / "nlp-zh" / "pretrain" / "zhwiki-simplified.txt"]
    pieces = train_vocabulary(files, size=4000, words=LOWER)
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    assert train_vocabulary(files, size=4000, words=LOWER) == pieces
    assert len(pieces) == 4000
    tokenizer = Tokenizer(Vocabulary(pieces))
    ids = tokenizer.ids(files[0].read_text(encoding="utf-8"))
    # Half of the pieces may be characters, and some are rarer than the first 1997.
    assert ids.count(pieces.index("[UNK]")) / len(ids) < 0.05


def test_case_is_kept_or_folded_as_requested(tmp_path: Path) -> None:
    files = text(tmp_path, "Café CAFÉ\n" * 5)
    assert "cafe" in train_vocabulary(files, size=60, words=LOWER)
    cased = train_vocabulary(files, size=60, words=BasicWords(False, False))
    assert {"Café", "CAFÉ"} <= set(cased)
    rules = TokenizerRules(words=BasicWords(False, False))
    assert len(Tokenizer(Vocabulary(cased), rules).ids("Café CAFÉ")) == 2


def test_small_size_is_respected_and_has_the_most_frequent_characters(tmp_path: Path) -> None:
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
def test_texts_without_a_vocabulary_are_an_error(
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


@pytest.mark.parametrize(
    ("min_frequency", "merged"), [(1, ["aa", "aab", "ab"]), (2, ["aa", "aab"]), (3, [])]
)
def test_pieces_are_letters_by_frequency_followed_by_merges(
    tmp_path: Path, min_frequency: int, merged: list[str]
) -> None:
    # ##z is met 99 times, ##y not at all: a word of 101 letters is none. a, ##a and ##b are met
    # three times, b, c and z once, of which there is room for the first.
    files = text(tmp_path, f"aab aab ab b\nca {'z' * 100} {'y' * 101}\n")
    pieces = train_vocabulary(files, size=15, words=LOWER, min_frequency=min_frequency)
    assert pieces == [*SPECIAL, "a", "b", "##a", "##b", "##z", *merged]
    if min_frequency == 2:
        assert train_vocabulary(files, size=15, words=LOWER) == pieces
        assert train_vocabulary(files, size=11, words=LOWER) == [*SPECIAL, "##a", "##b", "##z"]


def test_sizes_and_frequencies_have_limits(tmp_path: Path) -> None:
    files = text(tmp_path, "ab ab\n") + text(tmp_path, "", "b") + text(tmp_path, "", "c")
    for size in (10, 1 << 20):
        assert train_vocabulary(files, size=size, words=LOWER)[:5] == list(SPECIAL)
    for size in (9, (1 << 20) + 1):
        with pytest.raises(UserError) as error:
            train_vocabulary(files, size=size, words=LOWER)
        assert str(error.value) == f"--size: {size}\n  Allowed: 10 to 1048576."
    assert train_vocabulary(files, size=20, words=LOWER, min_frequency=1)
    with pytest.raises(UserError) as error:
        train_vocabulary(files, size=20, words=LOWER, min_frequency=0)
    assert str(error.value) == "--min-frequency: 0\n  Allowed: 1 or more."
    empty = [*files[1:], *text(tmp_path, "", "d"), *text(tmp_path, "", "e")]
    with pytest.raises(UserError) as error:
        train_vocabulary(empty, size=20, words=LOWER)
    assert str(error.value) == (
        f"{tmp_path / 'b'}, {tmp_path / 'c'}, {tmp_path / 'd'}: there is no text"
    )
