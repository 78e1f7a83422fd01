"""Texts cut into words: the fast way, line by line, and with the places of the characters."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.text.basic_words import BasicWords

TRICKY = st.text(
    st.one_of(
        st.sampled_from("aB \n\t.中Σσςé\u0301\u302e\u3000\u2028\xad\ue000İ豈\U0002b820-_'"),
        st.characters(exclude_categories=["Cs"]),
    )
)


@given(TRICKY, st.booleans(), st.booleans(), st.booleans())
def test_words_are_the_same_with_and_without_places(
    text: str, lower: bool, accents: bool, chinese: bool
) -> None:
    words = BasicWords(lower, accents, chinese)
    placed = words.placed(text)
    # Marks that decomposition moves may stand in another order.
    assert [sorted(word.text) for word in placed] == [sorted(word) for word in words(text)]
    places = [place for word in placed for place in word.places]
    assert places == sorted(places)
    assert all(place < len(text) for place in places)


@given(TRICKY)
def test_lines_at_once_are_the_lines_one_by_one(text: str) -> None:
    words = BasicWords()
    assert [line.split() for line in words.lines(text)] == [
        words(line) for line in text.split("\n")
    ]


@given(TRICKY)
def test_words_hold_neither_blanks_nor_accents(text: str) -> None:
    for word in BasicWords()(text):
        assert word
        assert not any(letter.isspace() or unicodedata.category(letter) == "Mn" for letter in word)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ΟΔΟΣ ΟΔΟΣ.", ["οδος", "οδος", "."]),
        ("ΣΑΣ Σ", ["σας", "σ"]),
        ("a\ue000b", ["a\ue000b"]),
        ("x\U0002b820y", ["x", "\U0002b820", "y"]),
        ("豈", [unicodedata.normalize("NFD", "豈")]),
        ("don't", ["don", "'", "t"]),
    ],
)
def test_where_other_libraries_differ_from_the_original(text: str, expected: list[str]) -> None:
    words = BasicWords()
    assert words(text) == expected
    assert [word.text for word in words.placed(text)] == expected


def test_cased_words_keep_their_accents() -> None:
    assert BasicWords(False, False)("Café ΣΑΣ") == ["Café", "ΣΑΣ"]
    assert BasicWords(False, True)("Café") == ["Cafe"]
    assert BasicWords(True, False)("CAFÉ") == ["café"]


def test_places_are_those_of_the_text() -> None:
    text = "  Ça\u0301 中文, ok"
    assert [
        "".join(text[place] for place in word.places) for word in BasicWords().placed(text)
    ] == ["Ça", "中", "文", ",", "ok"]
