"""Drops the lines of a CSV file with more or fewer fields than its header, before polars reads it.

Polars silently pads short lines with nulls and truncates long ones. But if a field in the middle
of a line is missing, all values after it are in the wrong column; and if a line is cut off, its
last value is wrong.
"""

import re
import tempfile
from array import array
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from os import SEEK_END
from pathlib import Path
from typing import Final

from jumar.profiling.reading.unreadable import WITHOUT_BREAK, Unreadable

_IRRELEVANT_BYTES: Final = bytes(byte for byte in range(256) if byte not in b',\n"\0')
_MAX_PATTERNS: Final = 10_000
_CHUNK: Final = 1 << 18
_TAIL_BYTES: Final = 1 << 16
_CUT_VALUE: Final = re.compile(r"N/?|-?\d+\.")
"""Beginnings of `N/A` and of decimal numbers that are not values themselves."""
_MAX_LINES_IN_FIELD: Final = 1000
"""Maximum number of lines in a quoted field; beyond that, the quote is considered stray."""
_FIELD: Final = re.compile(r'("[^"]*(?:""[^"]*)*"(?!")[^,]*|[^,"][^,]*|)(?:,|\Z)', re.DOTALL)


class Lines:
    """Maps the rows of a table to the lines of the original file.

    Args:
        path: The file to read: the original, or a copy of its complete lines.
        numbers: Line numbers of the rows, from 1; None if every line is a row.
    """

    def __init__(self, path: Path, numbers: "array[int] | None" = None) -> None:
        self.path = path
        self._numbers = numbers

    def number(self, row: int) -> int:
        """The line number, from 1, of a row, counted from 0 after the header."""
        return row + 2 if self._numbers is None else self._numbers[row]


@contextmanager
def whole_lines(path: Path, unreadable: Unreadable) -> Generator[Lines, None, None]:
    """Yield the file itself if all its lines are complete, else a copy of the complete ones.

    Args:
        path: The file, in UTF-8.
        unreadable: Counts the dropped lines, except empty ones.
    """
    with path.open("rb") as file:
        expected = len(_fields(file.readline(_CHUNK).decode("utf-8", "replace")) or ())
    if is_regular(path, expected):
        _check_end(path, unreadable)
        yield Lines(path)
        return
    numbers = array("q")
    with tempfile.NamedTemporaryFile("wb", suffix=".csv") as copy:
        for number, text in _records(path, unreadable):
            copy.write(text.encode("utf-8", "surrogateescape"))
            numbers.append(number)
        _check_end(path, unreadable)
        copy.flush()
        # The first record is the header.
        yield Lines(Path(copy.name), numbers[1:])


def _check_end(path: Path, unreadable: Unreadable) -> None:
    """Note if the last line has no line break, since its last field may be cut off."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, SEEK_END) - _TAIL_BYTES))
        *lines_before, last = file.read().decode("utf-8", "replace").split("\n")
    if not last.strip():
        return
    field = last.rpartition(",")[2]
    previous = lines_before[-1].rpartition(",")[2].strip() if lines_before else ""
    if _CUT_VALUE.fullmatch(field) or (previous and not field.strip()):
        unreadable.note_end(f"the last line is cut off in its last field: '{field}'")
    else:
        unreadable.note_end(f"{WITHOUT_BREAK}, so its last field may be cut off: '{field[-60:]}'")


def is_regular(path: Path, expected: int) -> bool:
    """Whether every line has `expected` fields, no zero bytes and no line breaks in quotes.

    Only commas, quotes and zero bytes matter. The lines of a million ops have only a few hundred
    different sequences of these, and each sequence is checked once.
    """
    seen: set[bytes] = set()
    last_byte, partial = b"\n", b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            *patterns, partial = (partial + chunk.translate(None, _IRRELEVANT_BYTES)).split(b"\n")
            new = set(patterns) - seen
            if not all(_has_fields(line, expected) for line in new):
                return False
            seen = seen | new if len(seen) < _MAX_PATTERNS else new
            last_byte = chunk[-1:]
    return last_byte == b"\n" or _has_fields(partial, expected)


def _has_fields(separators: bytes, expected: int) -> bool:
    """Whether a line, reduced to its separators, has this many fields and closed quotes."""
    pieces = separators.split(b'"')
    commas = sum(piece.count(b",") for piece in pieces[::2])
    return len(pieces) % 2 == 1 and commas == expected - 1 and b"\0" not in separators


def _records(path: Path, unreadable: Unreadable) -> Iterator[tuple[int, str]]:
    """The header and the complete records, each with the number of its first line."""
    expected = min_fields = last_dropped = 0
    # For polars, only a line feed ends a line.
    with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        pending: deque[tuple[int, str]] = deque()
        lines = enumerate(file, start=1)
        while pending or (pending := deque(islice(lines, 1))):
            number, text = pending.popleft()
            if not text.strip():
                continue
            if not expected:
                names = _fields(text) or []
                expected, min_fields = len(names), len(_without_trailing_empty(names))
                yield number, text
                continue
            reason = _defect(text, expected, min_fields)
            if reason == _OPEN_QUOTE:
                record = _multiline_record(text, pending, lines, expected, min_fields)
                text, reason = record or text, "" if record else reason
            # A file that ends in the middle has too few fields in its last line, not too many.
            is_cut = reason and not reason.endswith(f"instead of {expected}")
            last_dropped = number if is_cut else 0
            if reason:
                unreadable.count_line(number, reason)
            else:
                yield number, text
    if last_dropped:
        unreadable.note_end(f"the last line, {last_dropped}, is incomplete")


_OPEN_QUOTE: Final = "ends inside quotes"


def _multiline_record(
    text: str,
    pending: deque[tuple[int, str]],
    lines: Iterator[tuple[int, str]],
    expected: int,
    min_fields: int,
) -> str:
    """The multi-line record that starts with a line with an open quote; empty if there is none.

    A stray quote costs only its own line: the lines after it stay in `pending`.
    """
    for index in range(_MAX_LINES_IN_FIELD):
        if index == len(pending):
            pending.extend(islice(lines, 1))
        if index == len(pending):
            return ""
        text += pending[index][1]
        reason = _defect(text, expected, min_fields)
        if reason != _OPEN_QUOTE:
            if not reason:
                for _ in range(index + 1):
                    pending.popleft()
            return "" if reason else text
    return ""


def _defect(text: str, expected: int, min_fields: int) -> str:
    """Describe the defect of a line; empty if there is none."""
    if "\0" in text:
        return "contains zero bytes"
    fields = _fields(text)
    if fields is None:
        return _OPEN_QUOTE
    if len(fields) < min_fields:
        return f"has {len(fields)} of {expected} fields"
    if len(_without_trailing_empty(fields)) > expected:
        return f"has {len(fields)} fields instead of {expected}"
    return ""


def _without_trailing_empty(fields: list[str]) -> list[str]:
    while fields and not fields[-1].strip():
        fields = fields[:-1]
    return fields


def _fields(text: str) -> list[str] | None:
    """The raw fields of a record; None if a quote is not closed."""
    text = text.rstrip("\r\n")
    fields: list[str] = []
    position = 0
    while True:
        match = _FIELD.match(text, position)
        if match is None:
            return None
        fields.append(match[1])
        if match.end() == len(text) and not match[0].endswith(","):
            return fields
        position = match.end()
