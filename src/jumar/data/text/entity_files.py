"""Reads sentences with a tag for each token, from files with one token and tag per line.

A blank line ends a sentence. Columns are separated by spaces or tabs; if there are more than two,
the first is the token and the last the tag, as in CoNLL's files. Tags are `O`, or B, I, M, E or S
with a hyphen and a type (BIO, BMES, BIOES).
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from jumar.data.text.numbered_lines import Skipping, excerpt, line_of, numbered_lines
from jumar.ground.errors import UserError

SUFFIXES = (".txt", ".tsv", ".conll", ".bio", ".bmes", ".char")
_BLANKS = re.compile(r"[ \t]+")
_TAG = re.compile(r"O|[BIMES]-\S+")
_DOCUMENT = "-DOCSTART-"


class TaggedSentence(NamedTuple):
    """Tokens with their tags, and the line of the first token."""

    tokens: Sequence[str]
    tags: Sequence[str]
    line: int


def read_tagged(path: Path, skipping: Skipping) -> Iterator[TaggedSentence]:
    """Read the sentences of a file.

    Args:
        path: The file.
        skipping: Counter of malformed sentences, which are left out completely.

    Raises:
        UserError: The file cannot be read, or more sentences are malformed than are tolerated.
    """
    lines: list[tuple[int, str]] = []
    for number, line in numbered_lines(path):
        # Other whitespace may be a token.
        text = line.strip(" \t")
        if text and not text.startswith(_DOCUMENT):
            lines.append((number, text))
        elif lines:
            yield from _sentence(path, lines, skipping)
            lines = []
    if lines:
        yield from _sentence(path, lines, skipping)


def _sentence(
    path: Path, lines: Sequence[tuple[int, str]], skipping: Skipping
) -> Iterator[TaggedSentence]:
    tokens: list[str] = []
    tags: list[str] = []
    for number, line in lines:
        columns = _BLANKS.split(line)
        message = ""
        if len(columns) < 2:
            message = f"has one column instead of a token and its tag: {excerpt(line)}"
        elif not _TAG.fullmatch(columns[-1]):
            message = f"'{excerpt(columns[-1])}' is not a tag"
        if message:
            advice = "A tag is O, or B-, I-, M-, E- or S- and a type, such as B-PER."
            skipping.fault(UserError(message, where=line_of(path, number), todo=advice))
            return
        tokens.append(columns[0])
        tags.append(columns[-1])
    yield TaggedSentence(tokens, tags, lines[0][0])
