"""tf.Example on the wire: round trip, every legal spelling, and malformed bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.records.example import (
    BytesFeature,
    FloatFeature,
    IntegerFeature,
    decode_example,
    encode_example,
)

FLOATS = st.floats(width=32, allow_nan=False)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
FEATURES = st.one_of(
    st.builds(BytesFeature, st.lists(st.binary(max_size=200), max_size=4).map(tuple)),
    st.builds(FloatFeature, st.lists(FLOATS, max_size=40).map(tuple)),
    st.builds(IntegerFeature, st.lists(INTEGERS, max_size=30).map(tuple)),
)
EXAMPLES = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=150), FEATURES)


def varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def entry(key: bytes, feature: bytes) -> bytes:
    return field(1, field(1, key) + field(2, feature))


def example(*entries: bytes) -> bytes:
    return field(1, b"".join(entries))


@given(EXAMPLES)
def test_encoding_and_decoding_round_trip(features) -> None:
    assert decode_example(encode_example(features)) == features


@given(features=EXAMPLES, wanted=st.data())
def test_only_requested_keys_are_decoded(features, wanted: st.DataObject) -> None:
    keys = wanted.draw(st.sets(st.sampled_from(sorted(features)))) if features else set()
    result = decode_example(encode_example(features), {key.encode() for key in keys})
    assert result == {key: features[key] for key in keys}


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused_with_an_offset(data: bytes) -> None:
    reason = ""
    try:
        decode_example(data)
    except ValueError as error:
        reason = str(error)
    assert not reason or "at byte" in reason


@given(features=EXAMPLES.filter(bool), where=st.data())
def test_truncated_message_is_refused(features, where: st.DataObject) -> None:
    data = encode_example(features)
    cut = where.draw(st.integers(1, len(data) - 1))
    with pytest.raises(ValueError, match="byte"):
        decode_example(data[:cut])


def test_numbers_may_be_packed_unpacked_or_both() -> None:
    one, two = b"\x00\x00\x80\x3f", b"\x00\x00\x00\x40"
    floats = field(1, one + two) + b"\x0d" + two + field(1, b"") + b"\x0d" + one
    integers = b"\x08\x07" + field(1, b"\x01\x02") + b"\x08" + varint(2**64 - 5)
    result = decode_example(example(entry(b"f", field(2, floats)), entry(b"i", field(3, integers))))
    assert result == {
        "f": FloatFeature((1.0, 2.0, 2.0, 1.0)),
        "i": IntegerFeature((7, 1, 2, -5)),
    }


def test_last_of_two_entries_with_the_same_key_wins() -> None:
    old, new = field(3, field(1, b"\x01")), field(1, field(1, b"new"))
    assert decode_example(example(entry(b"k", old), entry(b"k", new))) == {
        "k": BytesFeature((b"new",))
    }
    assert decode_example(example(entry(b"k", old), entry(b"k", b""))) == {}


def test_parts_of_a_value_are_merged_and_another_type_replaces_them() -> None:
    first, second = field(3, field(1, b"\x01")), field(3, field(1, b"\x02"))
    merged = field(1, field(1, b"k") + field(2, first) + field(2, second))
    replaced = field(1, field(1, b"k") + field(2, first + field(1, field(1, b"x"))))
    assert decode_example(field(1, merged)) == {"k": IntegerFeature((1, 2))}
    assert decode_example(field(1, replaced)) == {"k": BytesFeature((b"x",))}


def test_value_before_key_and_unknown_fields_are_legal() -> None:
    value = field(2, field(3, field(1, b"\x09")))
    unknown = field(9, b"abc") + b"\x50\x01" + b"\x59" + bytes(8) + b"\x65" + bytes(4)
    data = unknown + field(1, field(1, value + unknown + field(1, b"k"))) + unknown
    assert decode_example(data) == {"k": IntegerFeature((9,))}
    assert decode_example(data, {b"other"}) == {}


def test_entry_without_key_has_the_empty_key() -> None:
    assert decode_example(example(field(1, field(2, field(3, field(1, b"\x01")))))) == {
        "": IntegerFeature((1,))
    }


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x0a\x05abc", "ends beyond its message"),
        (b"\x0b\x01", "wire type 3 at byte 0"),
        (b"\x02\x00", "field number 0 at byte 0"),
        (b"\x0a" + b"\xff" * 11, "longer than 10 bytes at byte 1"),
        (b"\x0a\x80", "truncated at byte 1"),
        (example(entry(b"f", field(2, field(1, b"abc")))), "not a multiple of 4"),
        (example(entry(b"\xff", field(2, b""))), "not UTF-8"),
        (example(entry(b"i", field(3, field(1, b"\x80")))), "truncated"),
        (example(entry(b"k", field(1, b"\x0a\x7fx"))), "ends beyond its message"),
    ],
)
def test_malformed_bytes_are_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decode_example(data)


def test_deep_nesting_is_not_followed() -> None:
    data = b""
    for _ in range(5000):
        data = field(5, data)
    assert decode_example(example(entry(b"k", data))) == {}


@pytest.mark.parametrize(
    "feature", [IntegerFeature((2**63,)), IntegerFeature((-(2**63) - 1,)), FloatFeature((1e300,))]
)
def test_numbers_that_do_not_fit_are_refused_with_their_key(feature) -> None:
    with pytest.raises(ValueError, match="'my/key'"):
        encode_example({"my/key": feature})
