"""The first bytes of a file: encoding, header and kind."""

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
"""Bytes that decide what a file is. Headers of op_summary have some 2 KB."""

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
    """The first bytes, decompressed if the file is gzip; as many as possible."""
    with path.open("rb") as file:
        start = file.read(HEAD)
    if not start.startswith(GZIP):
        return start
    pieces: list[bytes] = []
    # A damaged or cut file still has a head, which `read` would not give.
    with suppress(OSError, EOFError, ValueError, zlib.error), gzip.open(path, "rb") as unpacked:
        while (missing := HEAD - sum(map(len, pieces))) and (piece := unpacked.read1(missing)):
            pieces.append(piece)
    return b"".join(pieces)


@contextmanager
def opened(path: Path) -> Generator[BinaryIO, None, None]:
    """The bytes of a file, decompressed if it is gzip."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
        file.seek(0)
        if packed:
            with gzip.open(file, "rb") as unpacked:
                yield unpacked  # pyright: ignore[reportReturnType]
        else:
            yield file


def encoding_of(head: bytes) -> str:
    """The encoding that the first bytes suggest: by mark, by zeros, else UTF-8 or GBK."""
    for mark, name in _BOMS:
        if head.startswith(mark):
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
    """The names in the first line of a CSV file; empty if its length is not plausible."""
    line, end, _ = text.partition("\n")
    if not end and len(text) > HEAD // 8:
        return []
    try:
        return next(csv.reader([line.rstrip("\r")]), [])
    except csv.Error:
        return []


@contextmanager
def as_utf8(path: Path) -> Generator[tuple[Path, str], None, None]:
    """The file itself if it is UTF-8, else a UTF-8 copy that is removed afterwards.

    Yields:
        The file, and why a packed one could not be unpacked to its end; empty if it could.
    """
    head = head_of(path)
    name = encoding_of(head)
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
    if name == "utf-8" and not packed:
        yield path, ""
        return
    problem = ""
    decoder = codecs.getincrementaldecoder(name)(errors="replace")
    with tempfile.NamedTemporaryFile("wb", suffix=".csv") as copy, opened(path) as source:
        try:
            # A packed file that is cut gives what came before the cut in pieces, not in blocks.
            while chunk := cast("BufferedReader", source).read1(1 << 20):
                copy.write(decoder.decode(chunk).encode("utf-8", "replace"))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            problem = f"it cannot be unpacked to its end: {error}"
        copy.write(decoder.decode(b"", final=True).encode("utf-8", "replace"))
        copy.flush()
        yield Path(copy.name), problem
