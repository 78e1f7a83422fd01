"""The first bytes of a file: which encoding, which header, which kind of file."""

import codecs
import csv
import gzip
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

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
    """The first bytes, unpacked where the file is gzip; empty where that fails."""
    with path.open("rb") as file:
        start = file.read(HEAD)
    if not start.startswith(GZIP):
        return start
    try:
        with gzip.open(path, "rb") as unpacked:
            return unpacked.read(HEAD)
    except (OSError, EOFError, ValueError):
        return b""


@contextmanager
def opened(path: Path) -> Generator[BinaryIO, None, None]:
    """The bytes of a file, unpacked where it is gzip."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
        file.seek(0)
        if packed:
            with gzip.open(file, "rb") as unpacked:
                yield unpacked  # pyright: ignore[reportReturnType]
        else:
            yield file


def encoding_of(head: bytes) -> str:
    """The encoding that the first bytes speak for: by mark, by zeros, else UTF-8 or GBK."""
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
    """The first bytes as text; what is no text is replaced."""
    name = encoding_of(head)
    return codecs.getincrementaldecoder(name)(errors="replace").decode(head).lstrip("\ufeff")


def header_of(text: str) -> list[str]:
    """The names in the first line of a CSV file; empty where it has none of a sane length."""
    line, end, _ = text.partition("\n")
    if not end and len(text) > HEAD // 8:
        return []
    try:
        return next(csv.reader([line.rstrip("\r")]), [])
    except csv.Error:
        return []


@contextmanager
def as_utf8(path: Path) -> Generator[Path, None, None]:
    """The file itself where it is UTF-8, else a copy in UTF-8 that is gone afterwards."""
    head = head_of(path)
    name = encoding_of(head)
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
    if name == "utf-8" and not packed:
        yield path
        return
    decoder = codecs.getincrementaldecoder(name)(errors="replace")
    with tempfile.NamedTemporaryFile("wb", suffix=".csv") as copy, opened(path) as source:
        while chunk := source.read(1 << 20):
            copy.write(decoder.decode(chunk).encode("utf-8", "replace"))
        copy.write(decoder.decode(b"", final=True).encode("utf-8", "replace"))
        copy.flush()
        yield Path(copy.name)
