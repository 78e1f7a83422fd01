"""Lines of a stream, whatever its encoding and however long they are."""

import codecs
import re
from collections.abc import Callable, Iterator
from typing import IO, Final, NamedTuple

PIECE: Final = 64 * 1024
HEAD: Final = 4096
LONGEST: Final = 4096
"""Maximum characters of a line; a log that is one line of 2 GB is read in pieces."""

_ESCAPED_BREAK: Final = re.compile(
    r"\\n(?=Traceback \(most|\[E[Rr][Rr][Oo][Rr]\]|\[PID|\s+\S|E[A-Z0-9]\d{4}[: ]|"
    r"[\w.]{1,60}(?:Error|Exception): )"
)
"""A written-out line break, where what follows shows that a log is quoted."""


class Line(NamedTuple):
    """A line, or the text between two carriage returns, as written by progress bars."""

    number: int
    text: str


class NotText(ValueError):
    """A stream is not text."""


class TooLarge(ValueError):
    """A compressed file expands more than logs do."""


def lines_of(stream: IO[bytes], most: int) -> Iterator[Line]:
    """The lines, each truncated to `LONGEST` characters.

    Args:
        stream: The bytes.
        most: Number of bytes to read.

    Raises:
        NotText: It begins with bytes that no log begins with.
        TooLarge: There is more; the lines up to there have been yielded.
    """
    start = stream.read(HEAD)
    if not is_text(start):
        raise NotText("not text")
    decode = _decoder(start)
    number, read = 1, 0
    for piece in _pieces(start, stream):
        text = decode(piece)
        for part in text.replace("\r\n", "\n").rstrip("\n").split("\r"):
            if part:
                yield Line(number, part[:LONGEST])
        number += text.count("\n")
        read += len(piece)
        if read > most:
            raise TooLarge(f"only its first {most >> 20} MiB were read: it unpacks to much more")


def unescaped(text: str) -> list[str]:
    r"""The lines of a log that is quoted in one line, with `\n` between them."""
    return _ESCAPED_BREAK.split(text) if "\\n" in text else [text]


def _pieces(start: bytes, stream: IO[bytes]) -> Iterator[bytes]:
    """Lines as bytes; one longer than `PIECE` comes in pieces."""
    *lines, remainder = start.split(b"\n")
    yield from (piece + b"\n" for piece in lines)
    piece = remainder + stream.readline(PIECE)
    while piece:
        yield piece
        piece = stream.readline(PIECE)


def is_text(start: bytes) -> bool:
    """Whether a file with this start may be a log: few bytes are null, unless it is UTF-16."""
    wide = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return wide or start.count(0) * 50 <= len(start)


class _Wide:
    """UTF-16, as PowerShell writes it; a line may end within a character."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")

    def __call__(self, piece: bytes) -> str:
        return self._decoder.decode(piece)


def _decoder(start: bytes) -> Callable[[bytes], str]:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _Wide()
    return _decoded


def _decoded(piece: bytes) -> str:
    try:
        return piece.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        return piece.decode("gb18030")
    except UnicodeDecodeError:
        return piece.decode("utf-8", "replace")
