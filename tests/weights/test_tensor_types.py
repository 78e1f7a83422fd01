"""How TensorFlow numbers its element types and writes shapes."""

import numpy as np
import pytest

from jumar.data.records.wire import delimited, encode_varint
from jumar.weights import tensor_types
from jumar.weights.tensor_types import ELEMENT_TYPES, TensorEntry, decode_shape, element_type


def test_element_types_match_tensorflows_types_proto() -> None:
    result = {each.number: (each.name, each.stored.str) for each in ELEMENT_TYPES.values()}
    assert result == {
        1: ("float32", "<f4"),
        2: ("float64", "<f8"),
        3: ("int32", "<i4"),
        4: ("uint8", "|u1"),
        5: ("int16", "<i2"),
        6: ("int8", "|i1"),
        7: ("string", "|O"),
        8: ("complex64", "<c8"),
        9: ("int64", "<i8"),
        10: ("bool", "|u1"),
        11: ("qint8", "|i1"),
        12: ("quint8", "|u1"),
        13: ("qint32", "<i4"),
        14: ("bfloat16", "<u2"),
        15: ("qint16", "<i2"),
        16: ("quint16", "<u2"),
        17: ("uint16", "<u2"),
        18: ("complex128", "<c16"),
        19: ("half", "<f2"),
        22: ("uint32", "<u4"),
        23: ("uint64", "<u8"),
    }
    assert {number: element_type(number) for number in ELEMENT_TYPES} == ELEMENT_TYPES
    assert [each.name for each in ELEMENT_TYPES.values() if each.is_string] == ["string"]
    not_numpy_s = ["string", "bool", "qint8", "quint8", "qint32", "bfloat16", "qint16", "quint16"]
    assert [each.name for each in ELEMENT_TYPES.values() if not each.in_numpy] == not_numpy_s
    with pytest.raises(ValueError, match=r"^the element type 20 is not supported$"):
        element_type(20)


@pytest.mark.parametrize(
    ("dtype", "each"),
    [
        *(("float32", 4), ("half", 2), ("bfloat16", 2), ("bool", 1), ("complex128", 16)),
        *(("float8_e4m3", 1), ("float8_e5m2", 1), ("string", 0), ("unheard of", 0)),
    ],
)
def test_tensor_size_is_elements_times_element_size(dtype: str, each: int) -> None:
    entry = TensorEntry(name="a", shape=(3, 5), dtype=dtype)
    assert (entry.elements, entry.bytes) == (15, 15 * each)
    assert TensorEntry(name="a", shape=(), dtype=dtype).bytes == each


def test_bfloat16_bits_become_the_upper_half_of_float32() -> None:
    stored = np.array([0x3F80, 0xC000, 0x7F80, 0x0001], "<u2")
    values = element_type(14).values(stored)
    assert values.dtype == np.float32
    assert values.tolist() == [1.0, -2.0, float("inf"), 2.0**-133]
    assert element_type(10).values(np.array([0, 1, 2], "u1")).tolist() == [False, True, True]
    assert element_type(4).values(np.array([0, 1, 2], "u1")).tolist() == [0, 1, 2]


def number(field: int, value: int) -> bytes:
    return encode_varint(field << 3) + encode_varint(value)


def shape(*sizes: int) -> bytes:
    return b"".join(delimited(2, number(1, size)) for size in sizes)


@pytest.mark.parametrize(
    ("content", "sizes"),
    [
        (b"", ()),
        (shape(3, 300, 7), (3, 300, 7)),
        (delimited(2, b"") + delimited(2, number(1, 4) + delimited(2, b"name")), (0, 4)),
        (number(3, 0) + shape(5), (5,)),
        (shape(2**63 - 1, 0), (2**63 - 1, 0)),
        (shape(*[1] * 32), (1,) * 32),
    ],
)
def test_shapes_are_parsed(content: bytes, sizes: tuple[int, ...]) -> None:
    """Between other bytes, so that the place counts."""
    assert decode_shape(b"\xff" * 3 + content + b"\xff", 3, 3 + len(content)) == sizes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (number(3, 1), "the number of axes is unknown"),
        (shape(2**63), "the size of an axis is negative or unknown"),
        (shape(*[1] * 33), "the shape has more than 32 axes"),
        (shape(2**32, 0, 2**31), "the shape 4294967296x0x2147483648 does not fit into memory"),
        (shape(2**62, 2), "the shape 4611686018427387904x2 does not fit into memory"),
    ],
)
def test_impossible_shapes_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        decode_shape(content, 0, len(content))


def test_shapes_and_names_are_formatted_as_text() -> None:
    assert tensor_types.shape_text((3, 300, 7)) == "3x300x7"
    assert tensor_types.shape_text([]) == "scalar"
    assert tensor_types.printable(b"a/b\xc3\xa4\xff") == "a/bä\\xff"
