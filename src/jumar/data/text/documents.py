"""Text corpora: finds their files, and reads documents as sentences of word pieces.

The format is google-research/bert's: one sentence per line, a blank line between documents.
"""

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from jumar.data.text.segmenting import Segmenter, marked_lines
from jumar.data.text.tokenizer import Tokenizer
from jumar.ground.errors import UserError
from jumar.ground.paths import (
    expanded,
    is_file,
    is_folder,
    missing,
    open_to_read,
    resolved,
    unreadable,
)

CHUNK_BYTES = 4 * 2**20
"""Bytes of text processed at a time; random next sentences are from the same chunk."""
MAX_LINE_BYTES = 16 * 2**20
_READ_BYTES = 2**18
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Span:
    """A part of a file, consisting of whole lines.

    Attributes:
        path: The file.
        begin: First byte.
        end: The byte after the last.
    """

    path: Path
    begin: int
    end: int


Chunk = Sequence[Span]
Document = list[list[int]]


def text_files(inputs: Sequence[str]) -> list[Path]:
    """Find the files of the inputs, in order.

    Args:
        inputs: Files, folders (all files below them, by name) and globs; each input may be several
            of them separated by commas.

    Raises:
        UserError: An input is missing, matches nothing, or is a folder without files.
    """
    files: list[Path] = []
    for text_input in inputs:
        whole_path = expanded(text_input)
        parts = (
            [text_input] if "," not in text_input or is_file(whole_path) else text_input.split(",")
        )
        for part in filter(None, parts):
            files.extend(_files_of(part))
    known_paths: set[Path] = set()
    for path in files:
        if resolved(path) in known_paths:
            raise UserError(
                "the file is listed twice, so its documents would count twice",
                where=str(path),
                todo="List it once; --dupe-factor sets how often each document is used.",
            )
        known_paths.add(resolved(path))
    return files


def _files_of(text_input: str) -> list[Path]:
    path = expanded(text_input)
    if is_file(path):
        return [path]
    if is_folder(path):
        files = sorted(
            match
            for match in path.rglob("*")
            if not any(part.startswith(".") for part in match.relative_to(path).parts)
            and is_file(match)
        )
        if not files:
            raise UserError("the folder has no files", where=str(path))
        return files
    if _PATTERN.search(text_input):
        files = sorted(
            Path(match)
            for match in glob.glob(str(path), recursive=True)  # noqa: PTH207 - an absolute pattern
            if is_file(Path(match))
        )
        if not files:
            raise UserError("no file matches this pattern", where=text_input)
        return files
    raise missing(path, "text file")


def chunks_of(files: Sequence[Path], chunk_bytes: int = CHUNK_BYTES) -> list[Chunk]:
    """Cut the files between documents into chunks of about the same size.

    The boundaries depend only on the files. Small files share a chunk; a document that is
    longer than a chunk is cut between two of its sentences.

    Raises:
        UserError: A file cannot be read, or has a line of more than 16 MiB.
    """
    chunks: list[Chunk] = []
    spans: list[Span] = []
    remaining = chunk_bytes
    for path in files:
        try:
            with open_to_read(path) as file:
                size, begin = os.fstat(file.fileno()).st_size, 0
                while begin < size:
                    end = (
                        size
                        if size - begin <= remaining
                        else _cut(path, file, begin + remaining, size)
                    )
                    spans.append(Span(path, begin, end))
                    remaining -= end - begin
                    begin = end
                    if remaining <= 0:
                        chunks.append(tuple(spans))
                        spans, remaining = [], chunk_bytes
        except OSError as error:
            raise unreadable(path, error) from error
    if spans:
        chunks.append(tuple(spans))
    return chunks


def _cut(path: Path, file: BinaryIO, position: int, size: int) -> int:
    """Return the position after the next blank line, or after the next line if none is near."""
    after_line = 0
    file.seek(position)
    block, start = b"", position
    while start + len(block) < size:
        block += file.read(_READ_BYTES)
        if match := _BLANK_LINE.search(block):
            return start + match.end()
        if not after_line and b"\n" in block:
            after_line = start + block.index(b"\n") + 1
        if after_line and len(block) > CHUNK_BYTES // 4:
            return after_line
        if len(block) > MAX_LINE_BYTES:
            raise UserError(
                f"a line of more than {MAX_LINE_BYTES >> 20} MiB",
                where=f"{path}, byte {start}",
                todo="Write one sentence per line, and a blank line between documents.",
            )
    return size


def chunk_documents(
    tokenizer: Tokenizer, chunk: Chunk, segmenter: Segmenter | None = None
) -> list[Document]:
    """Read the documents of a chunk; no document spans two files.

    Raises:
        UserError: Text is not UTF-8.
    """
    documents: list[Document] = []
    for span in chunk:
        with open_to_read(span.path) as file:
            file.seek(span.begin)
            data = file.read(span.end - span.begin)
        documents.append([])
        _add_sentences(documents, tokenizer, decoded(data, span.path, span.begin), segmenter)
    return [document for document in documents if document]


def read_documents(
    tokenizer: Tokenizer, files: Sequence[Path], segmenter: Segmenter | None = None
) -> list[Document]:
    """Read the documents of files like the original; some may be empty.

    A document continues in the next file if there is no blank line between them.

    Raises:
        UserError: A file cannot be read or is not UTF-8.
    """
    documents: list[Document] = [[]]
    for path in files:
        try:
            with open_to_read(path) as file:
                begin = 0
                while lines := file.readlines(_READ_BYTES):
                    data = b"".join(lines)
                    _add_sentences(documents, tokenizer, decoded(data, path, begin), segmenter)
                    begin += len(data)
        except OSError as error:
            raise unreadable(path, error) from error
    return documents


def _add_sentences(
    documents: list[Document], tokenizer: Tokenizer, text: str, segmenter: Segmenter | None
) -> None:
    text = text.removesuffix("\n")
    sentences = (
        tokenizer.lines(text) if segmenter is None else marked_lines(tokenizer, segmenter, text)
    )
    for line, sentence in zip(text.split("\n"), sentences, strict=True):
        if sentence:
            documents[-1].append(sentence)
        elif not line.strip():
            documents.append([])


def decoded(data: bytes, path: Path, begin: int) -> str:
    """Decode a part of a file as UTF-8.

    Args:
        data: The bytes.
        path: The file, for the message.
        begin: Position of the bytes in it.

    Raises:
        UserError: They are not UTF-8; the message states the line.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        with open_to_read(path) as file:
            lines_before = sum(
                file.read(min(_READ_BYTES, begin - offset)).count(b"\n")
                for offset in range(0, begin, _READ_BYTES)
            )
        number = lines_before + data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"is not UTF-8 text: {error.reason} at byte {begin + error.start}",
            where=f"{path}, line {number}",
            todo="Convert the file, for instance: iconv -f GB18030 -t UTF-8 FILE",
        ) from error
