"""Finds Chinese words, so that masks cover whole words.

BERT's Chinese pieces are single characters, which do not show word boundaries. A segmenter finds
the words; each character that continues a word is marked in its id, for masking, which removes the
marks. Source: the NEZHA paper (arXiv 1909.00204) masks words found by Jieba.
"""

import logging
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Literal

from jumar.data.text.basic_words import is_chinese
from jumar.data.text.tokenizer import Tokenizer
from jumar.ground.errors import UserError

SegmenterName = Literal["none", "spaces", "jieba"]
Segmenter = Callable[[str], list[str]]
"""Splits a line into words, whose concatenation is the line."""

CONTINUES_WORD = 1 << 24
"""Flag in the id of a piece that continues a word without `##`."""


def open_segmenter(name: SegmenterName) -> Segmenter | None:
    """Open a segmenter by name; return None for `none`.

    Raises:
        UserError: It is not installed.
    """
    if name == "none":
        return None
    if name == "spaces":
        return _as_one_word
    try:
        jieba: Any = import_module("jieba")
    except ModuleNotFoundError as error:
        raise UserError(
            "the word segmenter jieba is not installed",
            where="--segmenter jieba",
            todo="pip install jieba; or separate the words of the text by spaces and use "
            "--segmenter spaces.",
        ) from error
    jieba.setLogLevel(logging.WARNING)
    return jieba.lcut


def marked_lines(tokenizer: Tokenizer, segmenter: Segmenter, text: str) -> Iterator[list[int]]:
    """Yield the ids of each line, marked where a Chinese character continues a word."""
    for line in text.split("\n"):
        starts: set[int] = set()
        position = 0
        for word in segmenter(line):
            starts.add(position)
            position += len(word)
        ids: list[int] = []
        previous_end = -1
        for token in tokenizer.tokens(line):
            chinese = is_chinese(line[token.start])
            continues = chinese and previous_end == token.start and token.start not in starts
            ids.append(token.number | CONTINUES_WORD if continues else token.number)
            previous_end = token.end if chinese else -1
        yield ids


def _as_one_word(line: str) -> list[str]:
    """Return the line, so that each run of Chinese characters is one word."""
    return [line]
