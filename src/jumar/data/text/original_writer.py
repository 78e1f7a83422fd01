"""Writes pre-training data in the original's order: the same records as the original script.

Documents are kept in memory as ids; instances are sorted on disk.
"""

import os
import shutil
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from jumar.data.records.tfrecord import framed_payload
from jumar.data.text.documents import Document, read_documents
from jumar.data.text.estimate import announced
from jumar.data.text.instance_batch import batch_of, payloads
from jumar.data.text.original_order import Draws, Instance, original_instances
from jumar.data.text.pretraining_files import (
    PretrainingRequest,
    WrittenPretraining,
    check_found,
    check_request,
    discard,
    facts_of,
    finish,
    locked_folder,
    shard_names,
)
from jumar.data.text.segmenting import CONTINUES_WORD, open_segmenter
from jumar.ground.errors import UserError
from jumar.ground.machine import memory_bytes
from jumar.ground.text import size_text

_BATCH_INSTANCES = 1024
_BYTES_PER_PIECE = 9
"""Memory of a piece: a reference has 8 bytes; the integer objects are shared."""


def write_original(request: PretrainingRequest) -> WrittenPretraining:
    """Write the same instances as google-research/bert's script makes of the files.

    As there, instance `i` is in shard `i` modulo the number of shards, and a document continues in
    the next file if no blank line ends it. After an error or Ctrl-C, no files are left.

    Raises:
        UserError: See `check_request`, `check_found` and `read_documents`; or the disk or memory is
            too small, or an option does not exist in the original.
    """
    if not request.options.next_sentence:
        raise UserError(
            "the original's instances are always pairs of segments",
            where="--no-next-sentence",
            todo="Choose --order streaming.",
        )
    check_request(request)
    vocabulary, single_pass = request.tokenizer.vocabulary, replace(request.options, dupe_factor=1)
    estimate = announced(
        request,
        lambda documents: payloads(
            batch_of(
                list(original_instances(documents, vocabulary, single_pass, Draws(0))), single_pass
            )
        ),
    )
    _check_memory(estimate.pieces)
    facts = facts_of(request, "original")
    with locked_folder(request.destination) as working_folder:
        try:
            _clear(working_folder)
            result = _write(request, working_folder, int(estimate.instances))
            finish(working_folder, request, facts, result)
        finally:
            discard(working_folder)
    return result


def _clear(working_folder: Path) -> None:
    for leftover in working_folder.iterdir():
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


def _write(
    request: PretrainingRequest, working_folder: Path, expected_count: int
) -> WrittenPretraining:
    vocabulary = request.tokenizer.vocabulary
    documents = _documents(request)
    pieces, unknown = counted_pieces(documents, vocabulary.id_of("[UNK]"))
    check_found(pieces, unknown, request)
    draws = Draws(request.options.random_seed)
    instances = original_instances(documents, vocabulary, request.options, draws)
    ends = array("Q", [0])
    with (working_folder / "instances").open("w+b", buffering=2**20) as instances_file:
        for payload in _payloads(request, instances, expected_count):
            instances_file.write(payload)
            ends.append(ends[-1] + len(payload))
        instances_file.flush()
        order = list(range(len(ends) - 1))
        draws.shuffle(order)
        folder = working_folder / "shards"
        folder.mkdir()
        size = 0
        for number, name in enumerate(shard_names(request.shards)):
            size += _write_shard(
                folder / name, instances_file, ends, order[number :: request.shards]
            )
    return WrittenPretraining(
        documents=len(documents),
        pieces=pieces,
        unknown=unknown,
        instances=len(order),
        bytes=size,
    )


def _documents(request: PretrainingRequest) -> list[Document]:
    segmenter = open_segmenter(request.options.segmenter)
    documents = read_documents(request.tokenizer, request.files, segmenter)
    return [document for document in documents if document]


def counted_pieces(documents: Iterable[Document], unknown: int) -> tuple[int, int]:
    """Return the number of word pieces in documents, and the number of unknown ones."""
    pieces = unknowns = 0
    for sentence in chain.from_iterable(documents):
        pieces += len(sentence)
        unknowns += sentence.count(unknown) + sentence.count(unknown | CONTINUES_WORD)
    return pieces, unknowns


def _payloads(
    request: PretrainingRequest, instances: Iterator[Instance], expected_count: int
) -> Iterator[bytes]:
    done = 0
    while batch := list(islice(instances, _BATCH_INSTANCES)):
        yield from payloads(batch_of(batch, request.options))
        done += len(batch)
        request.progress(done, max(done, expected_count))


def _write_shard(
    path: Path, instances_file: BinaryIO, ends: "array[int]", instances: Sequence[int]
) -> int:
    descriptor, written_bytes = instances_file.fileno(), 0
    with path.open("xb", buffering=2**20) as shard:
        for number in instances:
            begin = ends[number]
            payload = os.pread(descriptor, ends[number + 1] - begin, begin)
            written_bytes += shard.write(framed_payload(payload))
    return written_bytes


def _check_memory(pieces: float) -> None:
    needed_bytes, free_bytes = pieces * _BYTES_PER_PIECE, memory_bytes()[0]
    if needed_bytes > free_bytes:
        raise UserError(
            f"the documents need about {size_text(needed_bytes)} of memory in the original's "
            f"order, but only {size_text(free_bytes)} is free",
            where="--order original",
            todo="--order streaming uses little memory for texts of any size.",
        )
