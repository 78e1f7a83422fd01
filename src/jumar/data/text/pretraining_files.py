"""The request and the output folder of pre-training data, common to both orders."""

import hashlib
import json
import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jumar.data.records.record_shards import check_shards
from jumar.data.samples import Notice
from jumar.data.text.documents import CHUNK_BYTES
from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.tokenizer import Tokenizer
from jumar.ground.errors import UserError
from jumar.ground.files import folder_locked, write_text
from jumar.ground.paths import (
    exists,
    expanded,
    is_folder,
    make_folder,
    resolved,
    unwritable,
)

MANIFEST = "pretraining.json"
MAX_PIECES = 1 << 21
Progress = Callable[[int, int], None]


def ignored(*_: object) -> None:
    """Ignore progress and notices."""


@dataclass(frozen=True, kw_only=True)
class PretrainingRequest:
    """A request to write pre-training data.

    Attributes:
        files: Texts, in order.
        tokenizer: Splits texts into pieces.
        options: How to make instances.
        destination: A folder that does not exist yet.
        shards: Number of TFRecord files.
        workers: Number of processes.
        chunk_bytes: Size of the text processed at a time, in streaming order.
        progress: Called with the amount of work done and the total.
        notice: Called with lines for the user.
    """

    files: Sequence[Path]
    tokenizer: Tokenizer
    options: PretrainingOptions
    destination: Path
    shards: int = 8
    workers: int = 1
    chunk_bytes: int = CHUNK_BYTES
    progress: Progress = field(default=ignored, compare=False)
    notice: Notice = field(default=ignored, compare=False)


@dataclass(frozen=True, kw_only=True)
class WrittenPretraining:
    """Totals of written pre-training data.

    Attributes:
        documents: Number of documents with at least one piece.
        pieces: Number of their word pieces.
        unknown: Number of pieces that are [UNK].
        instances: Number of instances in all shards.
        bytes: Total size of the shards.
    """

    documents: int
    pieces: int
    unknown: int
    instances: int
    bytes: int


def check_outside_inputs(inputs: Sequence[str], destination: Path) -> None:
    """Reject writing into an input folder, since the next call would read the records as texts.

    Raises:
        UserError: The destination is an input, or inside one.
    """
    target = resolved(destination)
    for text_input in inputs:
        folder = resolved(expanded(text_input))
        if is_folder(folder) and (folder == target or folder in target.parents):
            raise UserError(
                f"is inside the input folder {text_input}",
                where=str(destination),
                todo=f"Choose a folder outside it, for instance {folder}-pretraining.",
            )


def check_request(request: PretrainingRequest) -> None:
    """Reject impossible requests before reading the texts.

    Raises:
        UserError: The destination exists or contains a text, or a number is out of range.
    """
    check_shards(request.shards)
    vocabulary = request.tokenizer.vocabulary
    if len(vocabulary) > MAX_PIECES:
        raise UserError(
            f"{len(vocabulary)} word pieces",
            where=vocabulary.where,
            todo=f"At most {MAX_PIECES} are supported.",
        )
    target = resolved(request.destination)
    for path in request.files:
        if target == resolved(path) or target in resolved(path).parents:
            raise UserError(
                f"would overwrite the text {path}",
                where=str(request.destination),
                todo="Choose another folder.",
            )
    if exists(request.destination):
        raise UserError(
            "already exists",
            where=str(request.destination),
            todo="Remove it, or choose another folder.",
        )


def shard_names(shards: int) -> list[str]:
    """Return the file names of a set."""
    return [f"pretraining-{number:05}-of-{shards:05}.tfrecord" for number in range(shards)]


def facts_of(request: PretrainingRequest, order: str) -> dict[str, Any]:
    """Return everything that determines the output, for JSON."""
    vocabulary, words = request.tokenizer.vocabulary, request.tokenizer.rules.words
    texts = [(str(path.absolute()), path.stat()) for path in request.files]
    return {
        "format": 1,
        "order": order,
        "options": asdict(request.options),
        "shards": request.shards,
        "chunk_bytes": request.chunk_bytes,
        "vocabulary": {
            "pieces": len(vocabulary),
            "sha256": hashlib.sha256("\n".join(vocabulary.pieces).encode()).hexdigest(),
            "lower_case": words.lower_case,
            "strip_accents": words.strip_accents,
            "split_chinese": words.split_chinese,
            "longest_word": request.tokenizer.rules.longest_word,
        },
        "texts": [[path, status.st_size, status.st_mtime_ns] for path, status in texts],
    }


@contextmanager
def locked_folder(destination: Path) -> Generator[Path]:
    """Yield a hidden folder next to the destination, locked by one process at a time.

    It is kept after the block, so that a later call can resume from it.
    """
    folder = working_folder_of(destination)
    make_folder(folder)
    try:
        with folder_locked(folder, "another process is writing this folder", destination):
            yield folder
    except BrokenPipeError:
        raise  # the reader of standard output has closed it
    except OSError as error:
        raise unwritable(destination, error) from error


def working_folder_of(destination: Path) -> Path:
    """Return the hidden folder in which a destination is prepared."""
    absolute = destination.absolute()
    return absolute.with_name(f".{absolute.name[:60]}.unfinished")


def finish(
    working_folder: Path,
    request: PretrainingRequest,
    facts: dict[str, Any],
    written: WrittenPretraining,
) -> None:
    """Write the manifest, and move the finished folder `shards` to the destination."""
    texts = [name for name, _, _ in facts["texts"]]
    manifest = {**facts, "texts": texts, "written": asdict(written)}
    shards = working_folder / "shards"
    write_text(shards / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
    if exists(request.destination):
        raise UserError("was created by another process", where=str(request.destination))
    shards.rename(request.destination.absolute())
    discard(working_folder)


def discard(working_folder: Path) -> None:
    """Remove a working folder."""
    with suppress(OSError):
        shutil.rmtree(working_folder)


def check_found(pieces: int, unknown: int, request: PretrainingRequest) -> None:
    """Reject texts without documents, or without known pieces.

    Raises:
        UserError: There is no usable text.
    """
    where = ", ".join(map(str, request.files[:3])) + ("" if len(request.files) < 4 else ", ...")
    if not pieces:
        raise UserError(
            "there is no text",
            where=where,
            todo="Expected: one sentence per line, and a blank line between documents.",
        )
    if pieces == unknown:
        raise UserError(
            "no word consists of pieces of the vocabulary",
            where=where,
            todo=f"Is {request.tokenizer.vocabulary.where} for this language?",
        )
