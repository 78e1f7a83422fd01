"""Encodes and decodes tf.Example messages without protobuf.

Example {1: Features {1: map<string, Feature>}}, where a Feature is one of 1 bytes list, 2 float
list (fixed 32 bit), 3 integer list (varint), each with the repeated field 1. Numbers may be
packed, unpacked or both, as in protobuf; TensorFlow's parser rejects the mixture.
Sources: TensorFlow, core/example/{example,feature}.proto, and protobuf's encoding guide.
"""

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from jumar.data.records.wire import (
    DELIMITED,
    FIXED32,
    VARINT,
    delimited,
    encode_varint,
    fields,
    varint,
)

_UINT64 = 2**64
_KEY_TAG = 1 << 3 | DELIMITED


@dataclass(frozen=True)
class BytesFeature:
    """A feature that is a list of byte strings."""

    values: tuple[bytes, ...]
    field: ClassVar[int] = 1


@dataclass(frozen=True)
class FloatFeature:
    """A feature that is a list of float32 numbers."""

    values: tuple[float, ...]
    field: ClassVar[int] = 2


@dataclass(frozen=True)
class IntegerFeature:
    """A feature that is a list of int64 numbers."""

    values: tuple[int, ...]
    field: ClassVar[int] = 3


Feature = BytesFeature | FloatFeature | IntegerFeature


def decode_example(data: bytes, keys: Collection[bytes] | None = None) -> dict[str, Feature]:
    """Decode the features of a serialized tf.Example.

    If a key occurs twice, the last one counts; a feature that is not a list counts as missing.

    Args:
        data: The message.
        keys: The keys to decode, in UTF-8; None for all. Others are skipped, which is several times
            faster for three of fifteen features.

    Raises:
        ValueError: The bytes are not such a message; the message states the position.
    """
    features: dict[str, Feature] = {}
    for field, begin, end in _delimited_fields(data, 0, len(data)):
        if field == 1:
            for inner_field, wire, start, stop in fields(data, begin, end):
                if inner_field == 1 and wire == DELIMITED:
                    _decode_entry(data, start, stop, keys, features)
    return features


def encode_example(features: Mapping[str, Feature]) -> bytes:
    """Serialize features as a tf.Example, in the order of the mapping, with packed numbers.

    Raises:
        ValueError: A number does not fit into float32 or int64; the message states the key.
    """
    entries: list[bytes] = []
    for key, feature in features.items():
        try:
            content = _encode_list(feature)
        except (OverflowError, struct.error) as error:
            raise ValueError(f"feature '{key}': {error}") from error
        name = key.encode("utf-8")
        entries.append(delimited(1, delimited(1, name) + delimited(2, content)))
    return delimited(1, b"".join(entries))


def _decode_entry(
    data: bytes, begin: int, end: int, keys: Collection[bytes] | None, features: dict[str, Feature]
) -> None:
    key, spans = _split_entry(data, begin, end)
    if keys is not None and key not in keys:
        return
    try:
        name = key.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"a key is not UTF-8, in the entry at byte {begin}") from error
    feature = _decode_feature(data, spans)
    if feature is None:
        features.pop(name, None)
    else:
        features[name] = feature


def _split_entry(data: bytes, begin: int, end: int) -> tuple[bytes, Sequence[tuple[int, int]]]:
    """Return the key of a map entry, and the positions of its value's parts."""
    if end - begin > 1 and data[begin] == _KEY_TAG and data[begin + 1] < 128:
        # Key, then value, as by all writers; the general loop below takes twice as long.
        value = begin + 2 + data[begin + 1]
        single = _single_field(data, value, end)
        if single is not None and single[0] == 2:
            return data[begin + 2 : value], ((single[1], end),)
    key = b""
    spans: list[tuple[int, int]] = []
    for field, wire, start, stop in fields(data, begin, end):
        if wire == DELIMITED and field == 1:
            key = data[start:stop]
        elif wire == DELIMITED and field == 2:
            spans.append((start, stop))
    return key, spans


def _decode_feature(data: bytes, spans: Sequence[tuple[int, int]]) -> Feature | None:
    # A list of another type replaces earlier lists; one of the same type extends them.
    kind = 0
    lists: list[tuple[int, int]] = []
    for begin, end in spans:
        for field, start, stop in _delimited_fields(data, begin, end):
            if field in (1, 2, 3):
                if field != kind:
                    kind, lists = field, []
                lists.append((start, stop))
    if kind == 1:
        return BytesFeature(
            tuple(
                data[start:stop]
                for begin, end in lists
                for field, start, stop in _delimited_fields(data, begin, end)
                if field == 1
            )
        )
    if kind == 2:
        return FloatFeature(_floats(data, lists))
    if kind == 3:
        return IntegerFeature(_integers(data, lists))
    return None


def _floats(data: bytes, lists: list[tuple[int, int]]) -> tuple[float, ...]:
    values: list[float] = []
    for start, stop in _number_spans(data, lists, FIXED32):
        if (stop - start) % 4:
            raise ValueError(
                f"packed floats of {stop - start} bytes, not a multiple of 4, at byte {start}"
            )
        values.extend(struct.unpack_from(f"<{(stop - start) // 4}f", data, start))
    return tuple(values)


def _integers(data: bytes, lists: list[tuple[int, int]]) -> tuple[int, ...]:
    values: list[int] = []
    for start, stop in _number_spans(data, lists, VARINT):
        if data[start:stop].isascii():  # only numbers below 128, such as masks: one byte each
            values.extend(data[start:stop])
            continue
        while start < stop:
            value, start = varint(data, start, stop)
            value %= _UINT64
            values.append(value - _UINT64 if value >= _UINT64 // 2 else value)
    return tuple(values)


def _number_spans(
    data: bytes, lists: list[tuple[int, int]], unpacked_type: int
) -> list[tuple[int, int]]:
    """Return the positions of a list's numbers: packed runs, and fields of an unpacked type."""
    spans: list[tuple[int, int]] = []
    for begin, end in lists:
        single = _single_field(data, begin, end)
        if single is not None and single[0] == 1:
            spans.append((single[1], end))
            continue
        spans.extend(
            (start, stop)
            for field, wire, start, stop in fields(data, begin, end)
            if field == 1 and wire in (DELIMITED, unpacked_type)
        )
    return spans


def _single_field(data: bytes, position: int, end: int) -> tuple[int, int] | None:
    """Return field number and start of the content if a message is one length-delimited field."""
    if position + 1 < end:
        tag = data[position]
        if tag < 128 and tag & 7 == DELIMITED:
            length, start = varint(data, position + 1, end)
            if start + length == end and tag >> 3:
                return tag >> 3, start
    return None


def _delimited_fields(data: bytes, begin: int, end: int) -> Sequence[tuple[int, int, int]]:
    """Return field number, start and end of each length-delimited field of a message."""
    single = _single_field(data, begin, end)
    if single is not None:
        return ((*single, end),)
    return [
        (field, start, stop)
        for field, wire, start, stop in fields(data, begin, end)
        if wire == DELIMITED
    ]


def _encode_list(feature: Feature) -> bytes:
    if isinstance(feature, BytesFeature):
        content = b"".join(delimited(1, value) for value in feature.values)
    elif isinstance(feature, FloatFeature):
        packed = struct.pack(f"<{len(feature.values)}f", *feature.values)
        content = delimited(1, packed) if packed else b""
    else:
        for value in feature.values:
            if not -(_UINT64 // 2) <= value < _UINT64 // 2:
                raise OverflowError(f"{value} does not fit into 64 bits")
        packed = b"".join(encode_varint(value % _UINT64) for value in feature.values)
        content = delimited(1, packed) if packed else b""
    return delimited(feature.field, content)
