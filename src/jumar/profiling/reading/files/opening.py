"""Opens files; detects compression, encoding and header from their first bytes."""

import codecs
import csv
import gzip
import tempfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Final, cast

HEAD: Final = 256 * 1024
"""Number of bytes read to recognise a file; the header of op_summary has some 2 KB."""

SQLITE: Final = b"SQLite format 3\x00"
GZIP: Final = b"\x1f\x8b"
ZIP: Final = b"PK\x03\x04"
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def head_of(path: Path) -> bytes:
    """The first `HEAD` bytes, decompressed if the file is gzip; fewer if it is damaged or short."""
    with path.open("rb") as file:
        start = file.read(HEAD)
    if not start.startswith(GZIP):
        return start
    pieces: list[bytes] = []
    # `read` would return nothing from a damaged or truncated file.
    with suppress(OSError, EOFError, ValueError, zlib.error), gzip.open(path, "rb") as unpacked:
        while (remaining := HEAD - sum(map(len, pieces))) and (piece := unpacked.read1(remaining)):
            pieces.append(piece)
    return b"".join(pieces)


@contextmanager
def opened(path: Path) -> Generator[BinaryIO, None, None]:
    """Open a file for binary reading, decompressed if it is gzip."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
        file.seek(0)
        if packed:
            with gzip.open(file, "rb") as unpacked:
                yield unpacked  # pyright: ignore[reportReturnType]
        else:
            yield file


def encoding_of(head: bytes) -> str:
    """Detect a file's encoding from its first bytes: BOM or zero bytes, else UTF-8 or GB 18030."""
    for bom, name in _BOMS:
        if head.startswith(bom):
            return name
    if head[1:64:2].count(0) > 16:
        return "utf-16-le"
    if head[0:64:2].count(0) > 16:
        return "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        try:
            codecs.getincrementaldecoder("gb18030")().decode(head)
        except UnicodeDecodeError:
            return "utf-8"
        return "gb18030"
    return "utf-8"


def text_of(head: bytes) -> str:
    """The first bytes as text; invalid bytes are replaced."""
    name = encoding_of(head)
    return codecs.getincrementaldecoder(name)(errors="replace").decode(head).lstrip("\ufeff")


def header_of(text: str) -> list[str]:
    """The names in the first line of a CSV file; empty if that line is implausibly long."""
    line, end, _ = text.partition("\n")
    if not end and len(text) > HEAD // 8:
        return []
    try:
        return next(csv.reader([line.rstrip("\r")]), [])
    except csv.Error:
        return []


@contextmanager
def as_utf8(path: Path) -> Generator[tuple[Path, str], None, None]:
    """The file itself if it is UTF-8, else a temporary UTF-8 copy.

    Yields:
        The file, and why it could not be decompressed to the end; empty if it could.
    """
    head = head_of(path)
    encoding = encoding_of(head)
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
    if encoding == "utf-8" and not packed:
        yield path, ""
        return
    problem = ""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    with tempfile.NamedTemporaryFile("wb", suffix=".csv") as copy, opened(path) as source:
        try:
            # `read1` returns all data before the end of a truncated gzip file; `read` would raise.
            while chunk := cast("BufferedReader", source).read1(1 << 20):
                copy.write(decoder.decode(chunk).encode("utf-8", "replace"))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            problem = f"cannot be decompressed to the end: {error}"
        copy.write(decoder.decode(b"", final=True).encode("utf-8", "replace"))
        copy.flush()
        yield Path(copy.name), problem
