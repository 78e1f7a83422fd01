"""Estimates the number of instances, space and time from a sample of the texts."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jumar.data.records.tfrecord import FOOTER_BYTES, HEADER_BYTES
from jumar.data.text.documents import Chunk, Document, Span, chunk_documents
from jumar.data.text.pretraining_files import PretrainingRequest
from jumar.data.text.segmenting import open_segmenter
from jumar.ground.machine import check_disk
from jumar.ground.text import size_text, time_text

_SAMPLE_BYTES = 2**18
_SAMPLE_FILES = 16


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Estimated totals for the texts.

    Attributes:
        instances: Number of instances.
        pieces: Number of word pieces.
    """

    instances: float
    pieces: float


def announced(
    request: PretrainingRequest,
    records: Callable[[list[Document]], Iterable[bytes]],
    *,
    processes: int = 1,
) -> Estimate:
    """Announce the expected number of instances, space and time, and return the estimate.

    Args:
        request: The request.
        records: Returns the records of some documents, each used once.
        processes: Number of processes.

    Raises:
        UserError: There is too little free space.
    """
    start_s = time.perf_counter()
    sample = sample_of(request.files)
    segmenter = open_segmenter(request.options.segmenter)
    documents = chunk_documents(request.tokenizer, sample, segmenter)
    if not documents:
        return Estimate(instances=0, pieces=0)
    read_s = time.perf_counter()
    sizes = [len(record) + HEADER_BYTES + FOOTER_BYTES for record in records(documents)]
    made_s = time.perf_counter()
    total = sum(path.stat().st_size for path in request.files)
    scale = total / sum(span.end - span.begin for span in sample)
    repeated = scale * request.options.dupe_factor
    estimate = Estimate(
        instances=len(sizes) * repeated,
        pieces=scale * sum(len(sentence) for document in documents for sentence in document),
    )
    output_bytes = sum(sizes) * repeated
    seconds = (scale * (read_s - start_s) + repeated * (made_s - read_s)) / processes
    request.notice(
        f"about {_rounded(estimate.instances)} instances, {size_text(output_bytes)} "
        f"({size_text(2 * output_bytes)} while writing), {time_text(seconds)}"
    )
    check_disk(2 * output_bytes, request.destination)
    return estimate


def sample_of(files: Sequence[Path]) -> Chunk:
    """Return the starts of up to 16 files, proportional to their sizes, since files may differ."""
    sampled_files = files[:: -(-len(files) // _SAMPLE_FILES)]
    sizes = [path.stat().st_size for path in sampled_files]
    spans: list[Span] = []
    for path, size in zip(sampled_files, sizes, strict=True):
        sample_bytes = _SAMPLE_BYTES * size // max(sum(sizes), 1)
        with path.open("rb") as file:
            lines = b"".join(file.readlines(max(sample_bytes, 1)))
        if lines:
            spans.append(Span(path, 0, len(lines)))
    return spans


def _rounded(number: float) -> str:
    """Format a number with two significant digits."""
    digits = len(str(int(number))) - 2
    return f"{round(number, -digits) if digits > 0 else int(number):,.0f}"
