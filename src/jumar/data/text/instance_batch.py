"""Converts masked instances to arrays, and to the TFRecord payloads of google-research/bert.

Features: `input_ids`, `input_mask`, `segment_ids` (int64 [max_seq_length]), `masked_lm_positions`,
`masked_lm_ids` (int64 [max_predictions_per_seq]), `masked_lm_weights` (float of the same length),
`next_sentence_labels` (int64 [1]).
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from jumar.data.records.example import FloatFeature, IntegerFeature
from jumar.data.records.wire import delimited, encode_varint
from jumar.data.text.original_order import Instance
from jumar.data.text.pretraining_options import PretrainingOptions

Numbers = NDArray[np.int32]
_FLOATS, _INTEGERS = FloatFeature.field, IntegerFeature.field


@dataclass(frozen=True, kw_only=True)
class InstanceBatch:
    """N masked instances.

    Attributes:
        ids: Masked pieces, padded with 0, [N, max_seq_length].
        lengths: Number of pieces, [N].
        firsts: Number of pieces of the first segment, with [CLS] and [SEP], [N].
        positions: Positions of masked pieces, padded with 0, [N, max_predictions_per_seq].
        labels: Their true ids, padded with 0, [N, max_predictions_per_seq].
        counts: Number of masked pieces, [N].
        random_next: Whether the second segment is from elsewhere, [N].
    """

    ids: Numbers
    lengths: Numbers
    firsts: Numbers
    positions: Numbers
    labels: Numbers
    counts: Numbers
    random_next: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ids)


def batch_of(instances: Sequence[Instance], options: PretrainingOptions) -> InstanceBatch:
    """Convert individual instances to arrays."""

    def padded(rows: Sequence[list[int]], width: int) -> Numbers:
        return np.array([row + [0] * (width - len(row)) for row in rows], dtype=np.int32)

    def numbers(values: Iterator[int]) -> Numbers:
        return np.fromiter(values, np.int32, len(instances))

    return InstanceBatch(
        ids=padded([instance.ids for instance in instances], options.max_seq_length),
        lengths=numbers(len(instance.ids) for instance in instances),
        firsts=numbers(instance.first + 2 for instance in instances),
        positions=padded(
            [instance.positions for instance in instances], options.max_predictions_per_seq
        ),
        labels=padded([instance.labels for instance in instances], options.max_predictions_per_seq),
        counts=numbers(len(instance.labels) for instance in instances),
        random_next=np.array([instance.is_random_next for instance in instances], dtype=np.bool_),
    )


def payloads(batch: InstanceBatch) -> Iterator[bytes]:
    """Yield each instance as a serialized tf.Example.

    All numbers of a batch are encoded together, and the bytes around them are cached by length,
    which is a hundred times as fast as number by number.
    """
    length, width = batch.ids.shape[1], batch.positions.shape[1]
    rows = (_varints(batch.ids), _varints(batch.positions), _varints(batch.labels))
    instances = zip(
        *rows,
        batch.lengths.tolist(),
        batch.firsts.tolist(),
        batch.counts.tolist(),
        batch.random_next.tolist(),
        strict=True,
    )
    for ids, positions, labels, pieces, first, count, is_random in instances:
        entries = (
            _before("input_ids", len(ids)),
            ids,
            _segments(length, pieces, first),
            _before("masked_lm_positions", len(positions)),
            positions,
            _before("masked_lm_ids", len(labels)),
            labels,
            _weights_and_label(width, count, is_random),
        )
        yield b"".join((_opening(sum(map(len, entries))), *entries))


def _varints(numbers: Numbers) -> Iterator[bytes]:
    """Yield the bytes of each row: numbers from 0 to 2**21 - 1 as varints."""
    flat, width = numbers.reshape(-1), numbers.shape[1]
    if flat.max(initial=0) <= 0x7F:
        encoded = flat.astype(np.uint8).tobytes()
        for start in range(0, len(encoded), width):
            yield encoded[start : start + width]
        return
    sizes = 1 + (flat > 0x7F).astype(np.int64) + (flat > 0x3FFF)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    content = np.empty(int(ends[-1]), np.uint8)
    content[starts] = (flat & 0x7F) | (sizes > 1) << 7
    (longer,) = np.nonzero(sizes > 1)
    content[starts[longer] + 1] = (flat[longer] >> 7 & 0x7F) | (sizes[longer] > 2) << 7
    (longest,) = np.nonzero(sizes > 2)
    content[starts[longest] + 2] = flat[longest] >> 14
    encoded = content.tobytes()
    start = 0
    for end in ends[width - 1 :: width].tolist():
        yield encoded[start:end]
        start = end


@cache
def _opening(length: int) -> bytes:
    """Return the bytes before all features of an example."""
    return b"\n" + encode_varint(length)


@cache
def _before(name: str, length: int) -> bytes:
    """Return the bytes before packed integers of `length` bytes."""
    entry = _entry(name, bytes(length))
    return entry[: len(entry) - length]


def _entry(name: str, packed: bytes, kind: int = _INTEGERS) -> bytes:
    feature = delimited(kind, delimited(1, packed))
    return delimited(1, delimited(1, name.encode()) + delimited(2, feature))


@cache
def _mask(length: int, pieces: int) -> bytes:
    return _entry("input_mask", b"\1" * pieces + bytes(length - pieces))


def _segments(length: int, pieces: int, first: int) -> bytes:
    """Return the entries `input_mask` and `segment_ids`, with one byte per number."""
    segments = bytes(first) + b"\1" * (pieces - first) + bytes(length - pieces)
    return _mask(length, pieces) + _before("segment_ids", length) + segments


@cache
def _weights_and_label(width: int, count: int, is_random: bool) -> bytes:
    """Return the entries `masked_lm_weights` and `next_sentence_labels`."""
    weights = struct.pack(f"<{width}f", *(float(index < count) for index in range(width)))
    return _entry("masked_lm_weights", weights, _FLOATS) + _entry(
        "next_sentence_labels", bytes((is_random,))
    )
