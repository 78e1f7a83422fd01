"""Writes pre-training data of any size: by chunks, in several processes, sorted on disk.

1. For every chunk of the corpus, a file of records is written, in which each pass over the chunk is
   sorted by the random keys of its instances.
2. Every shard is merged from its range of keys in all these files, a part at a time.

Each process needs memory for a pass over a chunk or a part of a shard. Files are renamed when
complete, so after an interruption, the next call resumes with the existing files.
"""

import json
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from jumar.data.records.offset_files import OffsetFiles
from jumar.data.records.tfrecord import framed_payload
from jumar.data.text.documents import Chunk, Document, chunk_documents, chunks_of
from jumar.data.text.estimate import announced
from jumar.data.text.instance_batch import payloads
from jumar.data.text.original_writer import counted_pieces
from jumar.data.text.pretraining_files import (
    PretrainingRequest,
    WrittenPretraining,
    check_found,
    check_request,
    discard,
    facts_of,
    finish,
    ignored,
    locked_folder,
    shard_names,
)
from jumar.data.text.segmenting import open_segmenter
from jumar.data.text.streaming_order import flattened, streaming_instances
from jumar.ground.errors import UserError
from jumar.ground.files import write_text, written_beside
from jumar.ground.paths import exists, make_folder
from jumar.ground.processes import begin_worker, process_context
from jumar.ground.text import counted

PLAN = "plan.json"
PART_BYTES = 32 * 2**20
"""Size of the records of a shard that are sorted in memory at a time."""
_ALL_KEYS = 2**64
Job = TypeVar("Job")


def write_streaming(request: PretrainingRequest) -> WrittenPretraining:
    """Write the instances of any corpus in limited memory; the same bytes for any `workers`.

    After Ctrl-C, a kill or a full disk, the same request resumes where it stopped; after an error
    in the texts, no files are left.

    Raises:
        UserError: See `check_request`, `check_found`, `chunks_of` and `chunk_documents`; or an
            unfinished call had other options, or a process died.
    """
    check_request(request)
    open_segmenter(request.options.segmenter)
    facts = facts_of(request, "streaming") | {"versions": {"numpy": np.__version__}}
    chunks = chunks_of(request.files, request.chunk_bytes)
    with locked_folder(request.destination) as working_folder:
        resumed = _claim(working_folder, facts, request)
        try:
            if not resumed:
                announced(request, partial(_records, request), processes=request.workers)
            silent_request = replace(request, progress=ignored, notice=ignored)
            result = _run(
                _Work(silent_request, working_folder, tuple(chunks)), request, resumed=resumed
            )
            finish(working_folder, request, facts, result)
        except KeyboardInterrupt:
            request.notice("stopped; the same command resumes from here")
            raise
        except BrokenProcessPool as error:
            raise UserError(
                "a process died, perhaps for lack of memory",
                where=f"--workers {request.workers}",
                todo="Run the same command with fewer processes: it resumes from here.",
            ) from error
        except UserError as error:
            # Work can be resumed after a full disk, but not after an error in the texts.
            if not any(chunk_files(working_folder)) or _is_about_texts(error, request):
                discard(working_folder)
            raise
    return result


def chunk_files(working_folder: Path) -> Iterator[Path]:
    """Find the finished chunks in a working folder."""
    return (working_folder / "chunks").glob("*.json")


def _is_about_texts(error: UserError, request: PretrainingRequest) -> bool:
    return any(error.where.startswith(str(path)) for path in request.files)


def _claim(working_folder: Path, facts: dict[str, Any], request: PretrainingRequest) -> bool:
    """Record the plan of the working folder; return whether an earlier call had the same plan."""
    plan_path = working_folder / PLAN
    expected_plan = json.loads(json.dumps(facts))
    if not exists(plan_path):
        write_text(plan_path, json.dumps(facts, indent=1, ensure_ascii=False))
        return False
    existing_plan = json.loads(plan_path.read_text(encoding="utf-8"))
    if existing_plan != expected_plan:
        differing = [
            name for name in expected_plan if existing_plan.get(name) != expected_plan[name]
        ]
        raise UserError(
            f"an unfinished run differs from this one in: {', '.join(differing) or 'options'}",
            where=str(request.destination),
            todo=f"Repeat that command to resume it, or start over: rm -r {working_folder}",
        )
    return True


@dataclass(frozen=True)
class ChunkFacts:
    """Statistics of a finished chunk.

    Attributes:
        documents: Number of documents with text.
        pieces: Number of their word pieces.
        unknown: Number of pieces that are [UNK].
        runs: Number of instances of each pass over the chunk.
        bytes: Total size of the records.
    """

    documents: int
    pieces: int
    unknown: int
    runs: list[int]
    bytes: int


@dataclass(frozen=True)
class _Work:
    """The work, which all processes share."""

    request: PretrainingRequest
    folder: Path
    chunks: Sequence[Chunk]

    def records_of(self, chunk: int) -> Path:
        return self.folder / "chunks" / f"{chunk:06}.records"

    def facts_of(self, chunk: int) -> Path:
        return self.folder / "chunks" / f"{chunk:06}.json"

    def index_of(self, chunk: int) -> Path:
        """Return the file of keys and end positions of the records, [2, instances]."""
        return self.folder / "chunks" / f"{chunk:06}.npy"

    def shard(self, number: int) -> Path:
        return self.folder / "shards" / shard_names(self.request.shards)[number]


def _run(work: _Work, request: PretrainingRequest, *, resumed: bool) -> WrittenPretraining:
    for name in ("chunks", "shards"):
        make_folder(work.folder / name)
        for leftover in (work.folder / name).glob(".*"):
            leftover.unlink()  # of a killed process
    sizes = [sum(span.end - span.begin for span in chunk) for chunk in work.chunks]
    missing_chunks = [number for number in range(len(sizes)) if not exists(work.facts_of(number))]
    missing_shards = [number for number in range(request.shards) if not exists(work.shard(number))]
    if resumed:
        request.notice(
            f"resuming: {len(sizes) - len(missing_chunks)} of {counted(len(sizes), 'chunk')} and "
            f"{request.shards - len(missing_shards)} of {counted(request.shards, 'shard')} exist"
        )
    total = 2 * sum(sizes)
    done = sum(sizes) - sum(sizes[number] for number in missing_chunks)
    request.progress(done, total)
    for number in _in_parallel(_make_chunk, missing_chunks, work):
        done += sizes[number]
        request.progress(done, total)
    facts = [_read_facts(work.facts_of(number)) for number in range(len(sizes))]
    pieces = sum(chunk_facts.pieces for chunk_facts in facts)
    unknown = sum(chunk_facts.unknown for chunk_facts in facts)
    check_found(pieces, unknown, request)
    done = total - total // 2 // request.shards * len(missing_shards)
    request.progress(done, total)
    for _ in _in_parallel(_make_shard, missing_shards, work):
        done += total // 2 // request.shards
        request.progress(done, total)
    return WrittenPretraining(
        documents=sum(chunk_facts.documents for chunk_facts in facts),
        pieces=pieces,
        unknown=unknown,
        instances=sum(sum(chunk_facts.runs) for chunk_facts in facts),
        bytes=sum(work.shard(number).stat().st_size for number in range(request.shards)),
    )


def _read_facts(path: Path) -> ChunkFacts:
    return ChunkFacts(**json.loads(path.read_text(encoding="utf-8")))


_work: _Work | None = None


def _start_process(work: _Work) -> None:
    global _work  # noqa: PLW0603 - the only way to keep state in a pool's process
    _work = work
    begin_worker()


def _call(task: Callable[[_Work, int], int], number: int) -> int:
    assert _work is not None
    return task(_work, number)


def _in_parallel(
    task: Callable[[_Work, int], int], numbers: Iterable[int], work: _Work
) -> Iterator[int]:
    """Process chunks or shards in parallel, and yield each one's number when it is done."""
    if work.request.workers == 1:
        yield from (task(work, number) for number in numbers)
        return
    children_before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(work.request.workers, process_context(), _start_process, (work,))
    pending, running = iter(numbers), set[Future[int]]()
    try:
        while True:
            free_count = 2 * work.request.workers - len(running)
            running |= {pool.submit(_call, task, number) for number in islice(pending, free_count)}
            if not running:
                break
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in finished)
        pool.shutdown()
    except BaseException:
        for process in set(multiprocessing.active_children()) - children_before:
            process.terminate()
        pool.shutdown(cancel_futures=True)
        raise


def _make_chunk(work: _Work, number: int) -> int:
    """Write the records of a chunk, their index, and finally its statistics."""
    request = work.request
    vocabulary, options = request.tokenizer.vocabulary, request.options
    documents = chunk_documents(
        request.tokenizer, work.chunks[number], open_segmenter(options.segmenter)
    )
    pieces, unknown = counted_pieces(documents, vocabulary.id_of("[UNK]"))
    text = flattened(documents)
    count = len(documents)
    del documents
    runs: list[int] = []
    keys: list[NDArray[np.uint64]] = []
    sizes: list[NDArray[np.uint64]] = []
    with (
        written_beside(work.records_of(number)) as temporary,
        temporary.open("wb", buffering=2**20) as file,
    ):
        for duplicate in range(options.dupe_factor if count else 0):
            records: list[bytes] = []
            key_parts: list[NDArray[np.uint64]] = []
            for batch, batch_keys in streaming_instances(
                text, vocabulary, options, chunk=number, duplicate=duplicate
            ):
                key_parts.append(batch_keys)
                records += map(framed_payload, payloads(batch))
            run_keys = np.concatenate(key_parts)
            order = np.argsort(run_keys, kind="stable")
            file.writelines(records[position] for position in order.tolist())
            runs.append(len(records))
            keys.append(run_keys[order])
            sizes.append(np.fromiter(map(len, records), np.uint64, len(records))[order])
    index = np.zeros((2, sum(runs)), dtype=np.uint64)
    if runs:
        index[0], index[1] = np.concatenate(keys), np.cumsum(np.concatenate(sizes))
    with written_beside(work.index_of(number)) as temporary, temporary.open("wb") as file:
        np.save(file, index)
    size = int(index[1, -1]) if runs else 0
    facts = ChunkFacts(count, pieces, unknown, runs, size)
    write_text(work.facts_of(number), json.dumps(vars(facts)))
    return number


def _make_shard(work: _Work, number: int) -> int:
    """Merge the records in a shard's range of keys from all chunks, a part at a time."""
    shards, chunks = work.request.shards, range(len(work.chunks))
    facts = [_read_facts(work.facts_of(chunk)) for chunk in chunks]
    # Memory-mapped, so that only the pages in use are read: the index of all records may be large.
    indexes = [
        np.load(work.index_of(chunk), mmap_mode="r" if facts[chunk].runs else None)
        for chunk in chunks
    ]
    files = OffsetFiles([work.records_of(chunk) for chunk in chunks])
    parts = max(1, sum(chunk_facts.bytes for chunk_facts in facts) // shards // PART_BYTES)
    with (
        written_beside(work.shard(number)) as temporary,
        temporary.open("wb", buffering=2**20) as out,
    ):
        for part in range(number * parts, (number + 1) * parts):
            # The first keys of this part and the next; the last part of all has no upper bound.
            low, high = (-(-_ALL_KEYS * edge // (shards * parts)) for edge in (part, part + 1))
            keys: list[NDArray[np.uint64]] = []
            sizes: list[NDArray[np.uint64]] = []
            blocks: list[bytes] = []
            for chunk in chunks:
                for first, last in _within(indexes[chunk][0], facts[chunk].runs, low, high):
                    ends = indexes[chunk][1]
                    start = int(ends[first - 1]) if first else 0
                    blocks.append(files.read(chunk, start, int(ends[last - 1]) - start))
                    keys.append(np.array(indexes[chunk][0][first:last]))
                    sizes.append(np.diff(ends[first:last], prepend=np.uint64(start)))
            if blocks:
                out.writelines(
                    _sorted(b"".join(blocks), np.concatenate(keys), np.concatenate(sizes))
                )
    return number


def _within(
    keys: NDArray[np.uint64], runs: Sequence[int], low: int, high: int
) -> Iterator[tuple[int, int]]:
    """Yield the first record in a range of keys and the one after the last, for each sorted run."""
    start = 0
    for length in runs:
        run = keys[start : start + length]
        first = int(np.searchsorted(run, np.uint64(low)))
        last = int(np.searchsorted(run, np.uint64(high))) if high < _ALL_KEYS else length
        if first < last:
            yield start + first, start + last
        start += length


def _sorted(
    block: bytes, keys: NDArray[np.uint64], sizes: NDArray[np.uint64]
) -> Iterator[memoryview]:
    """Yield records in the order of their keys, and then of the corpus."""
    ends = np.cumsum(sizes.astype(np.int64))
    view = memoryview(block)
    order = np.argsort(keys, kind="stable")
    starts = (ends - sizes.astype(np.int64))[order].tolist()
    for start, end in zip(starts, ends[order].tolist(), strict=True):
        yield view[start:end]


def _records(request: PretrainingRequest, documents: list[Document]) -> Iterator[bytes]:
    """Yield the records of documents that are used once."""
    for batch, _ in streaming_instances(
        flattened(documents), request.tokenizer.vocabulary, request.options, chunk=0, duplicate=0
    ):
        yield from payloads(batch)
