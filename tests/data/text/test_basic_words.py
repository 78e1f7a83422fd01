"""Texts cut into words: the fast way, line by line, and with the places of the characters."""

import pickle
import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.text.basic_words import BasicWords, Word, is_chinese

TRICKY = st.text(
    st.one_of(
        st.sampled_from("aB \n\t.中Σσςé\u0301\u302e\u3000\u2028\xad\ue000İ豈\U0002b820-_'"),
        st.characters(exclude_categories=["Cs"]),
    )
)


@given(TRICKY, st.booleans(), st.booleans(), st.booleans())
def test_words_are_the_same_with_and_without_offsets(
    text: str, lower: bool, accents: bool, chinese: bool
) -> None:
    words = BasicWords(lower, accents, chinese)
    placed = words.placed(text)
    # Marks that decomposition moves may be in another order.
    assert [sorted(word.text) for word in placed] == [sorted(word) for word in words(text)]
    places = [place for word in placed for place in word.positions]
    assert places == sorted(places)
    assert all(place < len(text) for place in places)


@given(TRICKY)
def test_lines_in_bulk_equal_lines_one_by_one(text: str) -> None:
    words = BasicWords()
    assert [line.split() for line in words.lines(text)] == [
        words(line) for line in text.split("\n")
    ]


@given(TRICKY)
def test_words_contain_neither_blanks_nor_accents(text: str) -> None:
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
def test_known_differences_of_other_libraries_follow_the_original(
    text: str, expected: list[str]
) -> None:
    words = BasicWords()
    assert words(text) == expected
    assert [word.text for word in words.placed(text)] == expected


def test_cased_words_keep_their_accents() -> None:
    assert BasicWords(False, False)("Café ΣΑΣ") == ["Café", "ΣΑΣ"]
    assert BasicWords(False, True)("Café") == ["Cafe"]
    assert BasicWords(True, False)("CAFÉ") == ["café"]


def test_offsets_refer_to_the_text() -> None:
    text = "  Ça\u0301 中文, ok"
    assert [
        "".join(text[place] for place in word.positions) for word in BasicWords().placed(text)
    ] == ["Ça", "中", "文", ",", "ok"]


def test_chinese_character_ranges_match_the_original() -> None:
    """`_is_chinese_char` of google-research/bert."""
    blocks = [
        *[(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)],
        *[(0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0x2F800, 0x2FA1F)],
    ]
    inside = {code for first, last in blocks for code in (first, first + 1, last - 1, last)}
    outside = {code for first, last in blocks for code in (first - 1, last + 1)} - inside
    outside |= {0, 0x41, 0x3042, 0xAC00}
    assert all(is_chinese(chr(code)) for code in inside)
    assert not any(is_chinese(chr(code)) for code in outside)


def test_punctuation_is_split_and_control_characters_removed() -> None:
    words = BasicWords()
    assert words == BasicWords(lower_case=True, strip_accents=True, split_chinese=True)
    for mark in string.punctuation + "\u00b7\u2019\u3002\uff01":
        assert words(f"a{mark}b") == ["a", mark, "b"], mark
    for letter in "09azAZ\u00b5\u00d7\u20ac":
        assert len(words(f"a{letter}b")) == 1, letter
    for dropped in "\x00\x01\x1f\x7f\x85\xad\u200b\u200d\ufffd":
        assert words(f"a{dropped}b") == ["ab"], dropped
    for blank in "\t\n\r \xa0\u2003\u3000":
        assert words(f"a{blank}b") == ["a", "b"], blank
    assert words.lines("a.b\nc\rd") == ["a . b", "c d"]


def test_words_have_offsets_for_each_character() -> None:
    assert BasicWords().placed("\u00c7a, \u4e2d\xadx") == [
        Word("ca", [0, 1]),
        Word(",", [2]),
        Word("\u4e2d", [4]),
        Word("x", [6]),
    ]
    assert BasicWords(split_chinese=False).placed("\u4e2d\u6587x") == [
        Word("\u4e2d\u6587x", [0, 1, 2])
    ]
    # A final sigma is recognised in the text, after any character.
    assert BasicWords().placed("a \u0391\u03a3 \u03a3\u0391\u03a3!") == [
        Word("a", [0]),
        Word("\u03b1\u03c2", [2, 3]),
        Word("\u03c3\u03b1\u03c2", [5, 6, 7]),
        Word("!", [8]),
    ]
    assert BasicWords(False, False).placed("\u0391\u03a3") == [Word("\u0391\u03a3", [0, 1])]


def test_pickled_splitter_omits_its_cache() -> None:
    words = BasicWords(True, False, True)
    size = len(pickle.dumps(words))
    words("".join(map(chr, range(0x4E00, 0x4F00))))
    words.lines("a\u03a3\nb")
    assert len(pickle.dumps(words)) == size
    assert pickle.loads(pickle.dumps(words)) == words
    assert pickle.loads(pickle.dumps(BasicWords(False, True, False))) == BasicWords(
        False, True, False
    )
