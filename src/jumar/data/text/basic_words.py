"""BERT's basic tokenization: splits a text into words, with their positions.

Source: google-research/bert, tokenization.py. Control characters are removed, whitespace of all
scripts becomes a space, Chinese characters and punctuation are separate words; for lower case,
accents are also removed. With two exceptions, the result depends only on the character, so a text
is translated with one table, 10 to 40 times as fast as character by character:

- The lower case of a capital sigma is different at the end of a word.
- A few marks other than accents are swapped with their neighbours by decomposition.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
_SIGMA = "Σ"
_DEPENDENT = re.compile(
    "[Σ\u1715\u1734\u1b44\u1baa\u1bf2\u1bf3\u302e\u302f\ua953\ua9c0\U000111c0\U00011235"
    "\U0001134d\U000116b6\U0001193d\U00016ff0\U00016ff1\U0001d15e-\U0001d172\U0001d1bb-\U0001d1c0]"
)
"""Characters whose translation depends on their neighbours; see above."""


class Word(NamedTuple):
    """A word and the positions of its characters in the text."""

    text: str
    positions: list[int]
    """For each character of the word, the index of its origin in the text."""


def is_chinese(character: str) -> bool:
    """Return whether BERT splits around a character: Chinese, but not Japanese or Korean ones."""
    code = ord(character)
    return code >= 0x3400 and any(first <= code <= last for first, last in _CJK)


class _Table(dict[int, str]):
    """The translation of each character, computed on first use."""

    def __init__(self, rules: "BasicWords") -> None:
        super().__init__()
        self._rules = rules

    def __missing__(self, code: int) -> str:
        self[code] = result = self._rules.translation(chr(code))
        return result


@dataclass(frozen=True)
class BasicWords:
    """Splits texts into words.

    Attributes:
        lower_case: Whether words are converted to lower case.
        strip_accents: Whether accents are removed; in the original, only with lower case.
        split_chinese: Whether each Chinese character is a word.
    """

    lower_case: bool = True
    strip_accents: bool = True
    split_chinese: bool = True

    def __reduce__(self) -> tuple[type["BasicWords"], tuple[bool, bool, bool]]:
        # Without the tables, which each process fills.
        return type(self), (self.lower_case, self.strip_accents, self.split_chinese)

    def __call__(self, text: str) -> list[str]:
        """Split a text into words."""
        if _DEPENDENT.search(text):
            text = self._joined_exactly(text)
        return text.translate(self._table).split()

    def lines(self, text: str) -> list[str]:
        """Translate a text of several lines; `split` then splits each line into words."""
        if _DEPENDENT.search(text):
            return [" ".join(self(line)) for line in text.split("\n")]
        return text.translate(self._line_table).split("\n")

    def placed(self, text: str) -> list[Word]:
        """Split a text into words with the positions of their characters."""
        sigmas = self._sigmas(text) if self.lower_case and _SIGMA in text else {}
        words: list[Word] = []
        letters: list[str] = []
        positions: list[int] = []
        for position, character in enumerate(text):
            for letter in sigmas.get(position, self._table[ord(character)]):
                if not letter.isspace():
                    letters.append(letter)
                    positions.append(position)
                elif letters:
                    words.append(Word("".join(letters), positions))
                    letters, positions = [], []
        if letters:
            words.append(Word("".join(letters), positions))
        return words

    def translation(self, character: str) -> str:
        """Return the translation of a character, in which spaces separate words."""
        if _is_dropped(character):
            return ""
        if character in "\t\n\r" or unicodedata.category(character) == "Zs":
            return " "
        text = self._with_spaces(character)
        return f" {text} " if self.split_chinese and is_chinese(character) else text

    def _with_spaces(self, character: str) -> str:
        folded = self._folded(character)
        return "".join(f" {letter} " if _is_punctuation(letter) else letter for letter in folded)

    def _folded(self, word: str) -> str:
        if self.lower_case:
            word = word.lower()
        if not self.strip_accents:
            return word
        decomposed = unicodedata.normalize("NFD", word)
        return "".join(letter for letter in decomposed if unicodedata.category(letter) != "Mn")

    def _joined_exactly(self, text: str) -> str:
        """Return the text with whole words folded."""
        return " ".join(map(self._folded, text.translate(self._cleaning).split()))

    def _sigmas(self, text: str) -> dict[int, str]:
        """Return the replacement of each capital sigma, by position."""
        replacements: dict[int, str] = {}
        for word in _WordsWithPunctuation(False, False, self.split_chinese).placed(text):
            for index, (letter, position) in enumerate(zip(word.text, word.positions, strict=True)):
                if letter == _SIGMA:
                    replacements[position] = word.text.lower()[len(word.text[:index].lower())]
        return replacements

    @cached_property
    def _table(self) -> _Table:
        return _Table(self)

    @cached_property
    def _line_table(self) -> _Table:
        table = _Table(self)
        table[ord("\n")] = "\n"
        return table

    @cached_property
    def _cleaning(self) -> _Table:
        return _Table(_WordsWithPunctuation(False, False, self.split_chinese))


class _WordsWithPunctuation(BasicWords):
    """Splits texts into words without separating punctuation, as when the original folds them."""

    def _with_spaces(self, character: str) -> str:
        return character


def _is_dropped(character: str) -> bool:
    if character in "\t\n\r":
        return False
    return character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf")


def _is_punctuation(character: str) -> bool:
    # ASCII symbols are not punctuation in Unicode, but are for BERT.
    is_symbol = character.isascii() and character.isprintable() and not character.isalnum()
    return (is_symbol and character != " ") or unicodedata.category(character).startswith("P")
