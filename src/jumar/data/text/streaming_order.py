"""Makes the instances of a chunk of a corpus as arrays, with a random stream for each chunk.

Draws have the original's distributions, from a generator seeded by seed, chunk and duplicate, so
chunks can be processed in any order, by any process. The second segment of an unrelated pair is
from another document of the same chunk.
"""

import random
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, chain

import numpy as np
from numpy.typing import NDArray

from jumar.data.text.documents import Document
from jumar.data.text.instance_batch import InstanceBatch, Numbers
from jumar.data.text.pretraining_options import OTHER_DOCUMENT_TRIES, PretrainingOptions
from jumar.data.text.segmenting import CONTINUES_WORD
from jumar.data.text.vocabulary import Vocabulary

_STREAM = 3
"""First entropy word, different from those of `data/loading/sampler.py`."""
_BATCH_INSTANCES = 1024
"""Number of instances drawn together; any other number would lead to different instances."""
_LAST = np.uint32(2**32 - 1)

Spans = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class FlatDocuments:
    """The concatenated documents of a chunk.

    Attributes:
        pieces: Ids, with the marks of `segmenting`.
        sentences: First piece of each sentence, and the end of the last one.
        documents: First sentence of each document, and the end of the last one.
    """

    pieces: Numbers
    sentences: list[int]
    documents: list[int]


def flattened(documents: list[Document]) -> FlatDocuments:
    """Concatenate documents."""
    sentences = list(chain.from_iterable(documents))
    return FlatDocuments(
        pieces=np.fromiter(chain.from_iterable(sentences), np.int32, sum(map(len, sentences))),
        sentences=list(accumulate(map(len, sentences), initial=0)),
        documents=list(accumulate(map(len, documents), initial=0)),
    )


def streaming_instances(
    text: FlatDocuments,
    vocabulary: Vocabulary,
    options: PretrainingOptions,
    *,
    chunk: int,
    duplicate: int,
) -> Iterator[tuple[InstanceBatch, NDArray[np.uint64]]]:
    """Yield batches of the instances of a chunk, with the keys by which the set is sorted.

    Args:
        text: The documents of the chunk.
        vocabulary: The vocabulary of their pieces.
        options: The options of the original.
        chunk: Index of the chunk, which determines all draws together with seed and `duplicate`.
        duplicate: Index of the pass over the chunk, below `dupe_factor`.
    """
    generator = np.random.default_rng((_STREAM, options.random_seed, chunk, duplicate))
    draws = random.Random(int(generator.integers(2**63)))
    segments = (
        _pairs(text, options, draws) if options.next_sentence else _segments(text, options, draws)
    )
    spans = np.fromiter(chain.from_iterable(segments), np.int64).reshape(-1, 5)
    masking = VectorMasking(vocabulary, options)
    for start in range(0, len(spans), _BATCH_INSTANCES):
        batch_spans = spans[start : start + _BATCH_INSTANCES]
        keys = generator.integers(0, 2**64, len(batch_spans), dtype=np.uint64)
        _truncate(batch_spans, options.max_pieces, generator)
        ids, lengths, firsts = _gathered(text.pieces, batch_spans, vocabulary, options)
        yield masking(ids, lengths, firsts, batch_spans[:, 4] == 1, generator), keys


def _pairs(
    text: FlatDocuments, options: PretrainingOptions, draws: random.Random
) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield start and end of both segments, and whether the second is from elsewhere."""
    sentences, max_pieces = text.sentences, options.max_pieces
    uniform = draws.random
    documents = len(text.documents) - 1
    for number in range(documents):
        position, last = text.documents[number], text.documents[number + 1]
        target = _drawn_length(options, max_pieces, draws)
        while position < last:
            start = sentences[position]
            end = min(bisect_left(sentences, start + target, position + 1, last), last)
            count = end - position
            middle = position + 1 + (int(uniform() * (count - 1)) if count > 1 else 0)
            first_end = sentences[middle]
            if count > 1 and uniform() >= 0.5:
                yield start, first_end, first_end, sentences[end], 0
                position = end
                continue
            other_number = number
            for _ in range(OTHER_DOCUMENT_TRIES):
                other_number = int(uniform() * documents)
                if other_number != number:
                    break
            first, other_end = text.documents[other_number], text.documents[other_number + 1]
            first += int(uniform() * (other_end - first))
            begin = sentences[first]
            target_end = begin + target - (first_end - start)
            stop = min(bisect_left(sentences, target_end, first + 1, other_end), other_end)
            yield start, first_end, begin, sentences[stop], 1
            position = middle


def _segments(
    text: FlatDocuments, options: PretrainingOptions, draws: random.Random
) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield start and end of single segments, in the same format as `_pairs`."""
    sentences, max_pieces = text.sentences, options.max_pieces
    for position, last in zip(text.documents, text.documents[1:], strict=False):
        target = _drawn_length(options, max_pieces, draws)
        while position < last:
            start = sentences[position]
            position = min(bisect_left(sentences, start + target, position + 1, last), last)
            yield start, sentences[position], 0, 0, 0


def _drawn_length(options: PretrainingOptions, max_pieces: int, draws: random.Random) -> int:
    if draws.random() >= options.short_seq_prob:
        return max_pieces
    return 2 + int(draws.random() * (max_pieces - 1))


def _truncate(spans: Spans, max_pieces: int, generator: np.random.Generator) -> None:
    """Move starts and ends until both segments fit; see `original_order.truncate`.

    Pieces are removed from the longer segment until both have equal length, then alternately,
    starting with the second.
    """
    first, second = spans[:, 1] - spans[:, 0], spans[:, 3] - spans[:, 2]
    excess = np.maximum(first + second - max_pieces, 0)
    lead = first - second
    alternating = np.maximum(excess - np.abs(lead), 0)
    from_longer = excess - alternating
    for column, removed_count in (
        (0, np.where(lead > 0, from_longer, 0) + alternating // 2),
        (2, np.where(lead > 0, 0, from_longer) + alternating - alternating // 2),
    ):
        removed_in_front = generator.binomial(removed_count, 0.5)
        spans[:, column] += removed_in_front
        spans[:, column + 1] -= removed_count - removed_in_front


def _gathered(
    pieces: Numbers, spans: Spans, vocabulary: Vocabulary, options: PretrainingOptions
) -> tuple[Numbers, Numbers, Numbers]:
    """Return the pieces of each instance with [CLS] and [SEP], and its total and first length."""
    first, second = (spans[:, 1] - spans[:, 0])[:, None], (spans[:, 3] - spans[:, 2])[:, None]
    columns = np.arange(options.max_seq_length)
    last = first + 1 + (second + 1) * (second > 0)
    source = np.where(
        columns <= first, columns + (spans[:, :1] - 1), columns + (spans[:, 2:3] - first - 2)
    )
    ids = pieces[np.clip(source, 0, len(pieces) - 1)]
    ids[columns > last] = 0
    ids[:, 0] = vocabulary.id_of("[CLS]")
    rows = np.arange(len(spans))[:, None]
    ids[rows, first + 1] = ids[rows, last] = vocabulary.id_of("[SEP]")
    return ids, (last[:, 0] + 1).astype(np.int32), (first[:, 0] + 2).astype(np.int32)


class VectorMasking:
    """Masks many instances at once, with the distributions of `original_order.Masking`.

    Args:
        vocabulary: Source of random words.
        options: Number of masked pieces, and whether to mask whole words.
    """

    def __init__(self, vocabulary: Vocabulary, options: PretrainingOptions) -> None:
        self._special = vocabulary.id_of("[CLS]"), vocabulary.id_of("[SEP]")
        self._mask = vocabulary.id_of("[MASK]")
        self._continuing = np.zeros(len(vocabulary), dtype=np.bool_)
        self._continuing[list(vocabulary.continuing)] = True
        self._options = options

    def __call__(
        self,
        ids: Numbers,
        lengths: Numbers,
        firsts: Numbers,
        random_next: NDArray[np.bool_],
        generator: np.random.Generator,
    ) -> InstanceBatch:
        """Return the instances with masks; `ids` may contain the marks of `segmenting`."""
        options = self._options
        rows, width = len(ids), options.max_predictions_per_seq
        candidates = np.arange(ids.shape[1]) < lengths[:, None]
        candidates &= (ids != self._special[0]) & (ids != self._special[1])
        masked_counts = np.rint(lengths * options.masked_lm_prob).astype(np.int64).clip(1, width)
        if options.whole_word_mask:
            is_masked = self._whole_words(ids, candidates, masked_counts, generator)
            ids = ids & (CONTINUES_WORD - 1)
        else:
            is_masked = _smallest(_order_keys(candidates, generator), masked_counts)
        row, column = np.nonzero(is_masked)
        counts = is_masked.sum(axis=1)
        slot = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        positions = np.zeros((rows, width), dtype=np.int32)
        labels = np.zeros((rows, width), dtype=np.int32)
        positions[row, slot] = column
        labels[row, slot] = ids[row, column]
        draw = generator.random(len(row), np.float32)
        words = generator.integers(0, len(self._continuing), len(row), dtype=np.int32)
        replacements = np.where(draw < 0.9, labels[row, slot], words)
        ids[row, column] = np.where(draw < 0.8, self._mask, replacements)
        return InstanceBatch(
            ids=ids,
            lengths=lengths,
            firsts=firsts,
            positions=positions,
            labels=labels,
            counts=counts.astype(np.int32),
            random_next=random_next,
        )

    def _whole_words(
        self,
        ids: Numbers,
        candidates: NDArray[np.bool_],
        masked_counts: NDArray[np.int64],
        generator: np.random.Generator,
    ) -> NDArray[np.bool_]:
        """Mask words in random order, each that still fits, until enough pieces are masked."""
        continuing = self._continuing[ids & (CONTINUES_WORD - 1)] | (ids >= CONTINUES_WORD)
        starts = candidates & ~continuing
        starts[np.arange(len(ids)), candidates.argmax(axis=1)] = True
        word = np.where(candidates, np.cumsum(starts, axis=1) - 1, -1)
        rows, length = ids.shape
        offsets = np.arange(rows)[:, None] * (length + 1)
        sizes = np.bincount((word + 1 + offsets).reshape(-1), minlength=rows * (length + 1))
        sizes = sizes.reshape(rows, length + 1)[:, 1:]
        order = np.argsort(_order_keys(sizes > 0, generator), axis=1)
        is_masked = np.zeros((rows, length + 1), dtype=np.bool_)
        remaining, row_numbers = masked_counts.copy(), np.arange(rows)
        for rank in range(int((sizes > 0).sum(axis=1).max(initial=0))):
            words = order[:, rank]
            size = sizes[row_numbers, words]
            fits = (size > 0) & (size <= remaining)
            is_masked[row_numbers, words] = fits
            remaining -= size * fits
            if not remaining.any():
                break
        return is_masked[row_numbers[:, None], word]


def _order_keys(
    is_candidate: NDArray[np.bool_], generator: np.random.Generator
) -> NDArray[np.uint32]:
    """Return sort keys that put the candidates of each row in random order, before all others.

    Keys of candidates are unique, since they include the column: the order of equal keys would
    depend on the processor.
    """
    columns = np.arange(is_candidate.shape[1], dtype=np.uint32)
    bits = int(columns[-1]).bit_length()
    keys = generator.integers(0, 2**31, is_candidate.shape, dtype=np.uint32)
    return np.where(is_candidate, keys >> bits << bits | columns, _LAST)


def _smallest(keys: NDArray[np.uint32], counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return where the `counts` smallest keys of candidates are in each row."""
    max_count = min(int(counts.max()), keys.shape[1])
    smallest = np.argpartition(keys, max_count - 1, axis=1)[:, :max_count]
    rows = np.arange(len(keys))[:, None]
    sorted_columns = np.take_along_axis(smallest, np.argsort(keys[rows, smallest], axis=1), axis=1)
    is_smallest = np.zeros(keys.shape, dtype=np.bool_)
    is_smallest[rows, sorted_columns] = (np.arange(max_count) < counts[:, None]) & (
        keys[rows, sorted_columns] < _LAST
    )
    return is_smallest
