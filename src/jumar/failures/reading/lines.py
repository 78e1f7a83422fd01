"""Splits a stream of any encoding into lines of limited length."""

import codecs
import re
from collections.abc import Callable, Iterator
from typing import IO, Final, NamedTuple

PIECE: Final = 64 * 1024
HEAD: Final = 4096
MAX_LENGTH: Final = 4096
"""Maximum characters of a line; a log that is one line of 2 GB is read in pieces."""

_ESCAPED_BREAK: Final = re.compile(
    r"\\n(?=Traceback \(most|\[E[Rr][Rr][Oo][Rr]\]|\[PID|\s+\S|E[A-Z0-9]\d{4}[: ]|"
    r"[\w.]{1,60}(?:Error|Exception): )"
)
"""An escaped line break, followed by text that shows that a log is quoted."""


class Line(NamedTuple):
    """A line, or the text between two carriage returns, as written by progress bars."""

    number: int
    text: str


class NotText(ValueError):
    """A stream is not text."""


class TooLarge(ValueError):
    """A compressed file expands more than logs do."""


def lines_of(stream: IO[bytes], max_bytes: int) -> Iterator[Line]:
    """Yield the lines of a stream, each truncated to `MAX_LENGTH` characters.

    Args:
        stream: The bytes.
        max_bytes: Maximum number of bytes to read.

    Raises:
        NotText: The stream begins with bytes that no log begins with.
        TooLarge: The stream is longer; the lines up to the limit have been yielded.
    """
    start = stream.read(HEAD)
    if not is_text(start):
        raise NotText("not text")
    decode = _decoder(start)
    number, bytes_read = 1, 0
    for piece in _pieces(start, stream):
        text = decode(piece)
        for part in text.replace("\r\n", "\n").rstrip("\n").split("\r"):
            if part:
                yield Line(number, part[:MAX_LENGTH])
        number += text.count("\n")
        bytes_read += len(piece)
        if bytes_read > max_bytes:
            raise TooLarge(
                f"only its first {max_bytes >> 20} MiB were read: it unpacks to much more"
            )


def unescaped(text: str) -> list[str]:
    r"""Split a log that is quoted in one line, with `\n` between its lines."""
    return _ESCAPED_BREAK.split(text) if "\\n" in text else [text]


def _pieces(start: bytes, stream: IO[bytes]) -> Iterator[bytes]:
    """Yield lines as bytes; a line longer than `PIECE` is split into pieces."""
    *lines, remainder = start.split(b"\n")
    yield from (piece + b"\n" for piece in lines)
    piece = remainder + stream.readline(PIECE)
    while piece:
        yield piece
        piece = stream.readline(PIECE)


def is_text(start: bytes) -> bool:
    """Return whether a file with this start may be a log: few null bytes, unless it is UTF-16."""
    is_utf16 = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return is_utf16 or start.count(0) * 50 <= len(start)


class _Utf16Decoder:
    """Decodes UTF-16, as PowerShell writes it, even if a line ends within a character."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")

    def __call__(self, piece: bytes) -> str:
        return self._decoder.decode(piece)


def _decoder(start: bytes) -> Callable[[bytes], str]:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _Utf16Decoder()
    return _decoded


def _decoded(piece: bytes) -> str:
    for encoding in ("utf-8", "gb18030"):
        try:
            return piece.decode(encoding)
        except UnicodeDecodeError:
            continue
    return piece.decode("utf-8", "replace")
