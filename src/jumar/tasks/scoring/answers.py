"""Exact match and F1 of answers as scored by CMRC 2018, in both common variants.

Sources: the official script (ymcui/cmrc2018, cmrc2018_evaluate.py), and Ascend's copy of it
(reading_evaluate.py of Bert-base_ID0060), whose range of Chinese characters starts with the digit 0
by mistake: it makes each Latin letter and digit a separate word, and jieba splits the rest. F1 is
computed from the longest common substring.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Literal

from jumar.tasks.scoring.rates import Rates

Variant = Literal["official", "ascend"]

_REMOVED = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_SINGLE = {"official": re.compile(r"[\u4e00-\u9fa5]"), "ascend": re.compile(r"[0-\u9fa5u\x04e]")}
_JIEBA = re.compile(r"[&#%.]+|\r\n|.", re.DOTALL)
"""Splits the remaining text in Ascend's variant like jieba: no letters, digits or Chinese.
Unlike jieba, whose model forms words, it splits Chinese characters after U+9FA5 one by one."""


@cache
def _latin_words() -> Callable[[str], list[str]]:
    """Return nltk's tokenizer of Latin text, which the official script uses."""
    # The import takes a second, and only reading comprehension needs it.
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer().tokenize


def exact_match(answers: Sequence[str], prediction: str) -> bool:
    """Whether a prediction is one of the answers, ignoring case and some punctuation."""
    return _plain(prediction) in map(_plain, answers)


def answer_f1(answers: Sequence[str], prediction: str, variant: Variant = "official") -> float:
    """Return the best F1, from 0 to 1, of a prediction with any of the answers."""
    predicted = segments(prediction, variant)
    return max(
        (
            Rates.of(_common_length(true, predicted), len(predicted), len(true)).f1
            for true in (segments(answer, variant) for answer in answers)
        ),
        default=0.0,
    )


def segments(text: str, variant: Variant) -> list[str]:
    """Split a text into words and single Chinese characters, removing some punctuation."""
    return list(_segments(_plain(text), variant))


def _segments(text: str, variant: Variant) -> Iterator[str]:
    single = _SINGLE[variant]
    tokenize = _latin_words() if variant == "official" else _JIEBA.findall
    begin = 0
    for match in single.finditer(text):
        yield from tokenize(text[begin : match.start()])
        yield match[0]
        begin = match.end()
    yield from tokenize(text[begin:])


def _plain(text: str) -> str:
    return "".join(letter for letter in text.lower().strip() if letter not in _REMOVED)


def _common_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common substring."""
    longest = 0
    previous_row = [0] * (len(second) + 1)
    for word in first:
        row = [0]
        for index, other_word in enumerate(second):
            row.append(previous_row[index] + 1 if word == other_word else 0)
        longest = max(longest, *row)
        previous_row = row
    return longest
