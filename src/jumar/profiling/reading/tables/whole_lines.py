"""The lines of a CSV file with as many fields as its header, found before polars reads them.

Polars fills short lines with nulls and cuts long ones, without a word: of a line that lacks a field
in its middle every value after it belongs to another column, and of one cut in its middle the last
value is another number.
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

from jumar.profiling.reading.unreadable import Unreadable

_OTHERS: Final = bytes(byte for byte in range(256) if byte not in b',\n"\0')
_MOST_KNOWN: Final = 10_000
_CHUNK: Final = 1 << 18
_LAST: Final = 60
_MOST_JOINED: Final = 1000
"""The most lines that a quoted field may span; beyond that, its quote is a stray one."""
_FIELD: Final = re.compile(r'("[^"]*(?:""[^"]*)*"(?!")[^,]*|[^,"][^,]*|)(?:,|\Z)', re.DOTALL)


class Lines:
    """The line of a file that each row of a table came from.

    Args:
        path: What to read: the file itself, or a copy of its whole lines.
        numbers: Line numbers of the rows, from 1; None if every row is a line.
    """

    def __init__(self, path: Path, numbers: "array[int] | None" = None) -> None:
        self.path = path
        self._numbers = numbers

    def number(self, row: int) -> int:
        """The line of a row, both the first being the header's and counted from 1 and 0."""
        return row + 2 if self._numbers is None else self._numbers[row]


@contextmanager
def whole_lines(path: Path, unreadable: Unreadable) -> Generator[Lines, None, None]:
    """The file itself if all its lines are complete, else a copy of the complete ones.

    Args:
        path: The file, in UTF-8.
        unreadable: Counts every line that is left out; empty lines are not a loss.
    """
    with path.open("rb") as file:
        expected = len(_fields(file.readline(_CHUNK).decode("utf-8", "replace")) or ())
    if is_regular(path, expected):
        _check_end(_tail(path), unreadable)
        yield Lines(path)
        return
    numbers = array("q")
    with tempfile.NamedTemporaryFile("wb", suffix=".csv") as copy:
        for number, text in _records(path, unreadable):
            copy.write(text.encode("utf-8", "surrogateescape"))
            _check_end(text, unreadable)
            numbers.append(number)
        copy.flush()
        # The first record is the header.
        yield Lines(Path(copy.name), numbers[1:])


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, SEEK_END) - _LAST))
        return file.read().decode("utf-8", "replace")


def _check_end(text: str, unreadable: Unreadable) -> None:
    """Note a last line that ends without a line break: its last field may be cut."""
    if not text.endswith("\n"):
        field = text.rpartition(",")[2]
        unreadable.end(f"the last line has no line break, so its last field may be cut: '{field}'")


def is_regular(path: Path, expected: int) -> bool:
    """Whether every line has `expected` fields, and none a zero byte or a break within quotes.

    Only a line's commas, quotes and zero bytes matter. A million ops leave a few hundred different
    sequences of these, and each is looked at once.
    """
    regular: set[bytes] = set()
    last, rest = b"\n", b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            *marks, rest = (rest + chunk.translate(None, _OTHERS)).split(b"\n")
            fresh = set(marks) - regular
            if not all(_has_fields(line, expected) for line in fresh):
                return False
            regular = regular | fresh if len(regular) < _MOST_KNOWN else fresh
            last = chunk[-1:]
    return last == b"\n" or _has_fields(rest, expected)


def _has_fields(marks: bytes, expected: int) -> bool:
    """Whether a line reduced to its separators has this many fields, with closed quotes."""
    outside = marks.split(b'"')
    commas = sum(part.count(b",") for part in outside[::2])
    return len(outside) % 2 == 1 and commas == expected - 1 and b"\0" not in marks


def _records(path: Path, unreadable: Unreadable) -> Iterator[tuple[int, str]]:
    """The header and the whole records after it, each with the number of its first line."""
    expected = fewest = 0
    # No other character than a line feed ends a line for polars.
    with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        waiting: deque[tuple[int, str]] = deque()
        lines = enumerate(file, start=1)
        while waiting or (waiting := deque(islice(lines, 1))):
            number, text = waiting.popleft()
            if not text.strip():
                continue
            if not expected:
                names = _fields(text) or []
                expected, fewest = len(names), len(_without_empty_end(names))
                yield number, text
                continue
            reason = _fault(text, expected, fewest)
            if reason == _OPEN:
                joined = _joined(text, waiting, lines, expected, fewest)
                text, reason = joined or text, "" if joined else reason
            if reason:
                unreadable.line(number, reason)
            else:
                yield number, text


_OPEN: Final = "ends within quotes"


def _joined(
    text: str,
    waiting: deque[tuple[int, str]],
    lines: Iterator[tuple[int, str]],
    expected: int,
    fewest: int,
) -> str:
    """The record that starts with a line whose quotes are open; empty if there is none.

    A stray quote costs its own line: the lines after it stay in `waiting`.
    """
    for place in range(_MOST_JOINED):
        if place == len(waiting):
            waiting.extend(islice(lines, 1))
        if place == len(waiting):
            return ""
        text += waiting[place][1]
        reason = _fault(text, expected, fewest)
        if reason != _OPEN:
            if not reason:
                for _ in range(place + 1):
                    waiting.popleft()
            return "" if reason else text
    return ""


def _fault(text: str, expected: int, fewest: int) -> str:
    """Why a line is not a row; empty for one that is."""
    if "\0" in text:
        return "holds zero bytes"
    fields = _fields(text)
    if fields is None:
        return _OPEN
    if len(fields) < fewest:
        return f"has {len(fields)} of {expected} fields"
    if len(_without_empty_end(fields)) > expected:
        return f"has {len(fields)} fields instead of {expected}"
    return ""


def _without_empty_end(fields: list[str]) -> list[str]:
    while fields and not fields[-1].strip():
        fields = fields[:-1]
    return fields


def _fields(text: str) -> list[str] | None:
    """The fields of a record as in the file; None if a quote is not closed."""
    text = text.rstrip("\r\n")
    fields: list[str] = []
    at = 0
    while True:
        match = _FIELD.match(text, at)
        if match is None:
            return None
        fields.append(match[1])
        if match.end() == len(text) and not match[0].endswith(","):
            return fields
        at = match.end()
