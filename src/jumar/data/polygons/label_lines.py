"""Outlines of words in text files: ICDAR, MLT, SROIE, Total-Text, and any number of corners.

| form | line |
|---|---|
| `quadrilaterals` | `x1,y1,x2,y2,x3,y3,x4,y4,text` (ICDAR 2015, SROIE); commas may be in the text |
| `languages` | `x1,...,y4,Latin,text` (MLT) |
| `rectangles` | `left,top,right,bottom,text`, or with spaces and the text in quotes (ICDAR 2013) |
| `polygons` | an even number of at least six coordinates, optionally `####text` (CTW1500) |
| `total-text` | `x: [[...]], y: [[...]], ornt: [u'c'], transcriptions: [u'text']` |

The format is detected from the lines of all files together, since a single line is ambiguous: the
text may be a number.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from jumar.data.polygons.regions import DONT_CARE, Corners
from jumar.ground.text import counted

Form = Literal["quadrilaterals", "languages", "rectangles", "polygons", "total-text"]

_SCRIPTS = "Arabic Latin Chinese Japanese Korean Bangla Hindi Symbols Mixed None"
LANGUAGES = frozenset(_SCRIPTS.split())
"""MLT's names of languages and scripts."""

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_ARRAY = re.compile(r"\b([xy])\s*:\s*\[\[(.*?)\]\]", re.DOTALL)
_TOTAL_TEXT = re.compile(r"^\s*x\s*:\s*\[\[")
_WORDS = re.compile(r"transcriptions\s*:\s*\[\s*(.*?)\s*\]\s*$", re.DOTALL)
_MAX_NUMBERS = 400


class Outline(NamedTuple):
    """One parsed line of a file.

    Attributes:
        line: The line number, from 1.
        corners: The corners as stored in the file.
        text: The transcription.
    """

    line: int
    corners: Corners
    text: str


class BadLine(NamedTuple):
    """A line that does not match the format, with the reason."""

    line: int
    reason: str


def form_of(texts: Iterable[str]) -> Form:
    """Detect the format of a set of label files; `quadrilaterals` if ambiguous.

    Args:
        texts: The contents of all files, or of sufficiently many.
    """
    lines = [line for text in texts for _, line in _lines(text)]
    if sum(map(bool, map(_TOTAL_TEXT.match, lines))) * 2 > len(lines):
        return "total-text"
    parts = [_parts(line) for line in lines]
    numbers = [_leading_numbers(row) for row in parts]
    marked_count = sum(line.count("####") > 0 for line in lines)
    has_no_text = all(count == len(row) for count, row in zip(numbers, parts, strict=True))
    uneven = any(count < 6 or count % 2 for count in numbers)
    if lines and (
        marked_count == len(lines) or (has_no_text and not uneven and set(numbers) != {8})
    ):
        return "polygons"
    if sum(4 <= count < 8 for count in numbers) > sum(count >= 8 for count in numbers):
        return "rectangles"
    long = [row for count, row in zip(numbers, parts, strict=True) if count >= 8]
    language_count = sum(len(row) >= 10 and row[8].strip() in LANGUAGES for row in long)
    return "languages" if long and language_count == len(long) else "quadrilaterals"


def outlines_of(text: str, form: Form) -> Iterator[Outline | BadLine]:
    """Yield the outlines of a file, and its invalid lines; empty lines are skipped."""
    for number, line in _lines(text):
        try:
            corners, word = _READERS[form](line)
        except ValueError as error:
            yield BadLine(number, str(error))
        else:
            yield Outline(number, corners, word)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    if _TOTAL_TEXT.match(text):
        yield from _records(text)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.strip("\r")


def _records(text: str) -> Iterator[tuple[int, str]]:
    """Yield the records of Total-Text, which may have several lines: numpy wraps long arrays."""
    record, first = "", 1
    for number, line in enumerate(text.split("\n"), start=1):
        if _TOTAL_TEXT.match(line) and record.strip():
            yield first, record
            record = ""
        if not record.strip():
            record, first = line, number
        else:
            record += " " + line
    if record.strip():
        yield first, record.rstrip("\r")


def _parts(line: str) -> list[str]:
    parts = line.split(",")
    if _leading_numbers(parts) < 4 and _leading_numbers(line.split()) >= 4:
        return line.split()
    return parts


def _leading_numbers(parts: Sequence[str]) -> int:
    count = 0
    for part in parts[:_MAX_NUMBERS]:
        if not _NUMBER.fullmatch(part):
            break
        count += 1
    return count


def _points(numbers: Sequence[str]) -> Corners:
    return np.array([float(number) for number in numbers], np.float64).reshape(-1, 2)


def _quadrilateral(line: str, extra: int = 0) -> tuple[Corners, str]:
    parts = line.split(",", 8 + extra)
    count = _leading_numbers(parts[:8])
    if count < 8:
        message = f"{counted(count, 'number')} instead of 8"
        raise ValueError(message + (" (left, top, right, bottom?)" if count == 4 else ""))
    if len(parts) < 8 + extra:
        raise ValueError("the language and the text are missing")
    return _points(parts[:8]), parts[8 + extra].strip() if len(parts) > 8 + extra else ""


def _with_language(line: str) -> tuple[Corners, str]:
    return _quadrilateral(line, extra=1)


def _rectangle(line: str) -> tuple[Corners, str]:
    fields = max(line.split(",", 4), line.split(None, 4), key=_leading_numbers)
    if (count := _leading_numbers(fields[:4])) < 4:
        raise ValueError(f"{counted(count, 'number')} instead of 4")
    left, top, right, bottom = map(float, fields[:4])
    corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float64)
    word = fields[4].strip() if len(fields) > 4 else ""
    return corners, word[1:-1] if len(word) > 1 and word[0] == word[-1] == '"' else word


def _polygon(line: str) -> tuple[Corners, str]:
    numbers, _, word = line.partition("####")
    parts = numbers.strip().rstrip(",").split(",")
    count = _leading_numbers(parts)
    if count != len(parts):
        raise ValueError(f"'{parts[count].strip()[:20]}' is not a coordinate")
    if count < 6 or count % 2:
        raise ValueError(f"{counted(count, 'number')} instead of 6, 8, 10, ... for the corners")
    return _points(parts), word.strip()


def _total_text(line: str) -> tuple[Corners, str]:
    axes = {name: values.replace(",", " ").split() for name, values in _ARRAY.findall(line)}
    if axes.keys() != {"x", "y"}:
        raise ValueError("not of the form x: [[...]], y: [[...]]")
    x, y = axes["x"], axes["y"]
    invalid_part = next((part for part in (*x, *y) if not _NUMBER.fullmatch(part)), None)
    if invalid_part is not None:
        raise ValueError(f"'{invalid_part[:20]}' is not a coordinate")
    if len(x) != len(y):
        raise ValueError(f"{len(x)} x but {len(y)} y")
    words = _WORDS.search(line)
    corners = np.array([x, y], dtype=object).astype(np.float64).T
    word = _unquoted(words[1]) if words else ""
    return np.ascontiguousarray(corners), DONT_CARE if word == "#" else word


def _unquoted(word: str) -> str:
    word = word.removeprefix("u")
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"" else word


_READERS = {
    "quadrilaterals": _quadrilateral,
    "languages": _with_language,
    "rectangles": _rectangle,
    "polygons": _polygon,
    "total-text": _total_text,
}
