"""Frozen graphs: TensorFlow's own files, every way to write a constant, and damage."""

import contextlib
import json
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.data.records.wire import delimited, encode_varint
from jumar.ground.errors import UserError
from jumar.weights.frozen_graph import FrozenConstants, read_constants


def number(field: int, value: int) -> bytes:
    return encode_varint(field << 3) + encode_varint(value % 2**64)


def shape(*sizes: int) -> bytes:
    return delimited(2, b"".join(delimited(2, number(1, size)) for size in sizes))


def node(name: str, tensor: bytes, op: bytes = b"Const") -> bytes:
    value = delimited(1, b"value") + delimited(2, delimited(8, tensor))
    attributes = delimited(5, delimited(1, b"dtype") + delimited(2, number(6, 1)))
    attributes += delimited(5, value)
    return delimited(1, delimited(1, name.encode()) + delimited(2, op) + attributes)


def constant(tensor: bytes) -> np.ndarray:
    return FrozenConstants(node("c", tensor), "a.pb")["c"]


FLOATS = struct.pack("<6f", 1.5, -2, 3, 0, 5, 6)


@pytest.mark.parametrize("name", ["DS_CNN_S", "DS_CNN_M", "DS_CNN_L", "LSTM_S", "CRNN_S"])
def test_the_published_graphs_have_the_constants_that_tensorflow_sees(
    shared: Path, name: str
) -> None:
    folder = shared / "data" / "pretrained" / "ml-kws"
    stored = json.loads((folder / "expected_tf1.15.json").read_text())["models"]
    expected = {name: tuple(sizes) for name, sizes in stored[f"{name}.pb"]["weights"].items()}
    constants = read_constants(folder / f"{name}.pb")
    assert {key: constants[key].shape for key in expected} == expected
    assert all(constants.entry(key).shape == sizes for key, sizes in expected.items())
    assert all(np.isfinite(constants[key]).all() for key in expected if key.endswith("weights"))


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        pytest.param(
            number(1, 1) + shape(2, 3) + delimited(4, FLOATS),
            np.array([[1.5, -2, 3], [0, 5, 6]], np.float32),
            id="raw bytes",
        ),
        pytest.param(
            number(1, 1) + shape(2, 3) + delimited(5, FLOATS),
            np.array([[1.5, -2, 3], [0, 5, 6]], np.float32),
            id="packed floats",
        ),
        pytest.param(
            number(1, 1) + shape(2) + b"\x2d" + FLOATS[:4] + b"\x2d" + FLOATS[4:8],
            np.array([1.5, -2], np.float32),
            id="floats one by one",
        ),
        pytest.param(
            number(1, 1) + shape(2, 2) + delimited(5, FLOATS[:4]),
            np.full((2, 2), 1.5, np.float32),
            id="one float for all",
        ),
        pytest.param(
            number(1, 1) + shape(5) + delimited(5, FLOATS[:8]),
            np.array([1.5, -2, -2, -2, -2], np.float32),
            id="the last float for the rest",
        ),
        pytest.param(number(1, 1) + shape(3), np.zeros(3, np.float32), id="no number is zero"),
        pytest.param(number(1, 1) + shape(0, 3), np.zeros((0, 3), np.float32), id="no element"),
        pytest.param(
            number(1, 3) + shape() + number(7, -7), np.array(-7, np.int32), id="a negative number"
        ),
        pytest.param(
            number(1, 9) + shape(2) + number(10, -(2**63)) + number(10, 5),
            np.array([-(2**63), 5], np.int64),
            id="int64",
        ),
        pytest.param(
            number(1, 19) + shape(2) + delimited(13, encode_varint(0x3C00) + encode_varint(0xC000)),
            np.array([1, -2], np.float16),
            id="half",
        ),
        pytest.param(
            number(1, 14) + shape(2) + delimited(13, encode_varint(0x3F80) + encode_varint(0xC000)),
            np.array([1, -2], np.float32),
            id="bfloat16",
        ),
        pytest.param(
            number(1, 10) + shape(3) + number(11, 1) + number(11, 0) + number(11, 1),
            np.array([True, False, True]),
            id="bool",
        ),
        pytest.param(
            number(1, 8) + shape(1) + delimited(9, FLOATS[:8]),
            np.array([1.5 - 2j], np.complex64),
            id="complex",
        ),
    ],
)
def test_each_way_to_write_a_constant_is_read(tensor: bytes, expected: np.ndarray) -> None:
    values = constant(tensor)
    assert values.dtype == expected.dtype
    assert values.shape == expected.shape
    np.testing.assert_array_equal(values, expected)


def test_strings_are_bytes() -> None:
    values = constant(number(1, 7) + shape(2) + delimited(8, b"a\xff") + delimited(8, b""))
    assert values.tolist() == [b"a\xff", b""]
    assert constant(number(1, 7) + shape(2)).tolist() == [b"", b""]


def test_other_nodes_and_constants_without_numbers_are_passed_over() -> None:
    variant = node("handle", number(1, 21) + shape())
    data = variant + node("x", b"", op=b"Placeholder") + node("c", number(1, 1) + shape())
    assert list(FrozenConstants(data, "a.pb")) == ["c"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "holds no constants", id="empty"),
        pytest.param(node("x", b"", op=b"Add"), "holds no constants", id="unfrozen"),
        pytest.param(b"\x08\x01", "SavedModel", id="SavedModel"),
        pytest.param(node("c", number(1, 1))[:-3], "ends beyond its message", id="cut"),
        pytest.param(
            node("c", number(1, 1)) * 2, "two constants are called 'c'", id="a name twice"
        ),
        pytest.param(node("c", number(1, 1) + shape(-1)), "constant 'c'", id="a negative size"),
        pytest.param(node("c", number(1, 1) + shape(2**40, 2**40)), "no memory", id="absurd"),
        pytest.param(node("c", number(1, 1) + shape(*[1] * 99)), "axes", id="99 axes"),
        pytest.param(node("c", number(1, 1) + delimited(2, number(3, 1))), "unknown", id="rank"),
    ],
)
def test_what_is_no_frozen_graph_is_refused_by_name(data: bytes, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        FrozenConstants(data, "some.pb")
    assert "some.pb" in str(caught.value)


@pytest.mark.parametrize(
    "tensor",
    [
        number(1, 1) + shape(2**32) + delimited(5, FLOATS[:4]),
        number(1, 1) + shape(2**32) + delimited(5, FLOATS),
        number(1, 1) + shape(2**32) + delimited(4, FLOATS),
        number(1, 1) + shape(2) + delimited(5, FLOATS),
        number(1, 1) + shape(2) + delimited(5, FLOATS[:5]),
        number(1, 7) + shape(2**32),
    ],
)
def test_a_shape_that_the_bytes_do_not_bear_out_costs_no_memory(tensor: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(UserError, match="constant 'c'"):
        constant(tensor)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_an_unknown_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "a.pb").write_bytes(node("conv/weights", number(1, 1)))
    constants = read_constants(tmp_path / "a.pb")
    with pytest.raises(UserError, match="conv/weights"):
        constants.entry("conv/weight")
    with pytest.raises(UserError, match="there is no such file"):
        read_constants(tmp_path / "none.pb")


@settings(max_examples=150)
@given(st.data())
def test_damage_is_an_error_that_a_user_can_read(data: st.DataObject) -> None:
    whole = node("a", number(1, 1) + shape(2, 3) + delimited(4, FLOATS))
    whole += node("b", number(1, 9) + shape(2) + number(10, 5))
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    with contextlib.suppress(UserError):
        constants = FrozenConstants(bytes(damaged[:cut]), "a.pb")
        for name in constants:
            assert constants[name].shape == constants.entry(name).shape
