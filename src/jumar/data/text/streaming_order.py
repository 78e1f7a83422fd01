"""Instances of one chunk of a corpus, all at once, as arrays, with their own random streams.

Draws have the original's distributions, from a generator keyed by seed, chunk and duplicate, so
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
from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.segmenting import CONTINUES_WORD
from jumar.data.text.vocabulary import Vocabulary

_STREAM = 3
"""First word of the entropy, apart from those of `data/loading/sampler.py`."""
_AT_ONCE = 1024
"""Number of instances drawn together; another number would give different instances."""
_OTHER_DOCUMENT_TRIES = 10
_LAST = np.uint32(2**32 - 1)

Spans = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class FlatDocuments:
    """The documents of a chunk end to end.

    Attributes:
        pieces: Ids, with the marks of `segmenting`.
        sentences: First piece of each sentence, and the end of the last.
        documents: First sentence of each document, and the end of the last.
    """

    pieces: Numbers
    sentences: list[int]
    documents: list[int]


def flattened(documents: list[Document]) -> FlatDocuments:
    """Documents end to end."""
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
    """The instances of a chunk, each with the key by which the set is sorted.

    Args:
        text: The documents of the chunk.
        vocabulary: Their pieces.
        options: As for the original.
        chunk: Number of the chunk; with the seed and `duplicate` it determines all draws.
        duplicate: Which of the `dupe_factor` passes over the chunk.
    """
    generator = np.random.default_rng((_STREAM, options.random_seed, chunk, duplicate))
    draws = random.Random(int(generator.integers(2**63)))
    cut = _pairs(text, options, draws) if options.next_sentence else _segments(text, options, draws)
    spans = np.fromiter(chain.from_iterable(cut), np.int64).reshape(-1, 5)
    masking = VectorMasking(vocabulary, options)
    for begin in range(0, len(spans), _AT_ONCE):
        some = spans[begin : begin + _AT_ONCE]
        keys = generator.integers(0, 2**64, len(some), dtype=np.uint64)
        _truncate(some, options.most_pieces, generator)
        ids, lengths, firsts = _gathered(text.pieces, some, vocabulary, options)
        yield masking(ids, lengths, firsts, some[:, 4] == 1, generator), keys


def _pairs(
    text: FlatDocuments, options: PretrainingOptions, draws: random.Random
) -> Iterator[tuple[int, int, int, int, int]]:
    """Start and end of both segments, and whether the second is from elsewhere."""
    sentences, most = text.sentences, options.most_pieces
    uniform = draws.random
    documents = len(text.documents) - 1
    for number in range(documents):
        at, last = text.documents[number], text.documents[number + 1]
        target = _drawn_length(options, most, draws)
        while at < last:
            start = sentences[at]
            end = min(bisect_left(sentences, start + target, at + 1, last), last)
            count = end - at
            middle = at + 1 + (int(uniform() * (count - 1)) if count > 1 else 0)
            half = sentences[middle]
            if count > 1 and uniform() >= 0.5:
                yield start, half, half, sentences[end], 0
                at = end
                continue
            other = number
            for _ in range(_OTHER_DOCUMENT_TRIES):
                other = int(uniform() * documents)
                if other != number:
                    break
            first, beyond = text.documents[other], text.documents[other + 1]
            first += int(uniform() * (beyond - first))
            begin = sentences[first]
            wanted = begin + target - (half - start)
            stop = min(bisect_left(sentences, wanted, first + 1, beyond), beyond)
            yield start, half, begin, sentences[stop], 1
            at = middle


def _segments(
    text: FlatDocuments, options: PretrainingOptions, draws: random.Random
) -> Iterator[tuple[int, int, int, int, int]]:
    """Start and end of single segments, in the same format."""
    sentences, most = text.sentences, options.most_pieces
    for at, last in zip(text.documents, text.documents[1:], strict=False):
        target = _drawn_length(options, most, draws)
        while at < last:
            start = sentences[at]
            at = min(bisect_left(sentences, start + target, at + 1, last), last)
            yield start, sentences[at], 0, 0, 0


def _drawn_length(options: PretrainingOptions, most: int, draws: random.Random) -> int:
    if draws.random() >= options.short_seq_prob:
        return most
    return 2 + int(draws.random() * (most - 1))


def _truncate(spans: Spans, most: int, generator: np.random.Generator) -> None:
    """Move begins and ends until both segments fit; see `original_order.truncate`.

    Pieces are removed from the longer segment until both are equally long, then alternately, the
    second first.
    """
    first, second = spans[:, 1] - spans[:, 0], spans[:, 3] - spans[:, 2]
    excess = np.maximum(first + second - most, 0)
    lead = first - second
    turns = np.maximum(excess - np.abs(lead), 0)
    ahead = excess - turns
    for column, removed in (
        (0, np.where(lead > 0, ahead, 0) + turns // 2),
        (2, np.where(lead > 0, 0, ahead) + turns - turns // 2),
    ):
        in_front = generator.binomial(removed, 0.5)
        spans[:, column] += in_front
        spans[:, column + 1] -= removed - in_front


def _gathered(
    pieces: Numbers, spans: Spans, vocabulary: Vocabulary, options: PretrainingOptions
) -> tuple[Numbers, Numbers, Numbers]:
    """The pieces of each instance with [CLS] and [SEP], its length, and that of its first part."""
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
        options: How many pieces are masked, and whether whole words are.
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
        """The instances with masks; `ids` may hold the marks of `segmenting`."""
        options = self._options
        rows, width = len(ids), options.max_predictions_per_seq
        candidates = np.arange(ids.shape[1]) < lengths[:, None]
        candidates &= (ids != self._special[0]) & (ids != self._special[1])
        wanted = np.rint(lengths * options.masked_lm_prob).astype(np.int64).clip(1, width)
        if options.whole_word_mask:
            chosen = self._whole_words(ids, candidates, wanted, generator)
            ids = ids & (CONTINUES_WORD - 1)
        else:
            chosen = _smallest(_order_keys(candidates, generator), wanted)
        row, column = np.nonzero(chosen)
        counts = chosen.sum(axis=1)
        place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        positions = np.zeros((rows, width), dtype=np.int32)
        labels = np.zeros((rows, width), dtype=np.int32)
        positions[row, place] = column
        labels[row, place] = ids[row, column]
        fate = generator.random(len(row), np.float32)
        words = generator.integers(0, len(self._continuing), len(row), dtype=np.int32)
        kept = np.where(fate < 0.9, labels[row, place], words)
        ids[row, column] = np.where(fate < 0.8, self._mask, kept)
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
        wanted: NDArray[np.int64],
        generator: np.random.Generator,
    ) -> NDArray[np.bool_]:
        """Words in random order, each that still fits, until enough are masked."""
        continuing = self._continuing[ids & (CONTINUES_WORD - 1)] | (ids >= CONTINUES_WORD)
        starts = candidates & ~continuing
        starts[np.arange(len(ids)), candidates.argmax(axis=1)] = True
        word = np.where(candidates, np.cumsum(starts, axis=1) - 1, -1)
        rows, length = ids.shape
        offsets = np.arange(rows)[:, None] * (length + 1)
        sizes = np.bincount((word + 1 + offsets).reshape(-1), minlength=rows * (length + 1))
        sizes = sizes.reshape(rows, length + 1)[:, 1:]
        order = np.argsort(_order_keys(sizes > 0, generator), axis=1)
        taken = np.zeros((rows, length + 1), dtype=np.bool_)
        room, every = wanted.copy(), np.arange(rows)
        for rank in range(int((sizes > 0).sum(axis=1).max(initial=0))):
            each = order[:, rank]
            size = sizes[every, each]
            fits = (size > 0) & (size <= room)
            taken[every, each] = fits
            room -= size * fits
            if not room.any():
                break
        return taken[every[:, None], word]


def _order_keys(wanted: NDArray[np.bool_], generator: np.random.Generator) -> NDArray[np.uint32]:
    """Sort keys that put the wanted places of each row in random order, before all others.

    No two wanted ones are equal, as each ends with its column: the order of equal keys depends on
    the processor.
    """
    columns = np.arange(wanted.shape[1], dtype=np.uint32)
    bits = int(columns[-1]).bit_length()
    keys = generator.integers(0, 2**31, wanted.shape, dtype=np.uint32)
    return np.where(wanted, keys >> bits << bits | columns, _LAST)


def _smallest(keys: NDArray[np.uint32], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Marks the `wanted` places of each row with the smallest keys, as far as there are any."""
    most = min(int(wanted.max()), keys.shape[1])
    smallest = np.argpartition(keys, most - 1, axis=1)[:, :most]
    rows = np.arange(len(keys))[:, None]
    ranked = np.take_along_axis(smallest, np.argsort(keys[rows, smallest], axis=1), axis=1)
    chosen = np.zeros(keys.shape, dtype=np.bool_)
    chosen[rows, ranked] = (np.arange(most) < wanted[:, None]) & (keys[rows, ranked] < _LAST)
    return chosen
