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

from jumar.data.records.wire import delimited, encode_varint, fields
from jumar.ground.errors import UserError
from jumar.weights.frozen_graph import LARGEST_MESSAGE, FrozenConstants, read_constants


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
def test_published_graphs_have_the_constants_that_tensorflow_sees(shared: Path, name: str) -> None:
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
def test_every_constant_encoding_is_read(tensor: bytes, expected: np.ndarray) -> None:
    values = constant(tensor)
    assert values.dtype == expected.dtype
    assert values.shape == expected.shape
    np.testing.assert_array_equal(values, expected)


def test_strings_are_bytes() -> None:
    values = constant(number(1, 7) + shape(2) + delimited(8, b"a\xff") + delimited(8, b""))
    assert values.tolist() == [b"a\xff", b""]
    assert constant(number(1, 7) + shape(2)).tolist() == [b"", b""]


def test_other_nodes_and_non_numeric_constants_are_skipped() -> None:
    variant = node("handle", number(1, 21) + shape())
    data = variant + node("x", b"", op=b"Placeholder") + node("c", number(1, 1) + shape())
    assert list(FrozenConstants(data, "a.pb")) == ["c"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "contains no constants", id="empty"),
        pytest.param(node("x", b"", op=b"Add"), "contains no constants", id="unfrozen"),
        pytest.param(b"\x08\x01", "SavedModel", id="SavedModel"),
        pytest.param(node("c", number(1, 1))[:-3], "ends beyond its message", id="cut"),
        pytest.param(
            node("c", number(1, 1)) * 2, "two constants are called 'c'", id="a name twice"
        ),
        pytest.param(node("c", number(1, 1) + shape(-1)), "constant 'c'", id="a negative size"),
        pytest.param(node("c", number(1, 1) + shape(2**40, 2**40)), "fit into memory", id="absurd"),
        pytest.param(node("c", number(1, 1) + shape(*[1] * 99)), "axes", id="99 axes"),
        pytest.param(node("c", number(1, 1) + delimited(2, number(3, 1))), "unknown", id="rank"),
    ],
)
def test_non_frozen_graph_is_refused_by_name(data: bytes, message: str) -> None:
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
def test_shape_not_backed_by_bytes_allocates_no_memory(tensor: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(UserError, match="constant 'c'"):
        constant(tensor)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_unknown_name_suggests_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "a.pb").write_bytes(node("conv/weights", number(1, 1)))
    constants = read_constants(tmp_path / "a.pb")
    with pytest.raises(UserError, match="conv/weights"):
        constants.entry("conv/weight")
    with pytest.raises(UserError, match="there is no such file"):
        read_constants(tmp_path / "none.pb")


@settings(max_examples=150)
@given(st.data())
def test_damage_is_a_readable_user_error(data: st.DataObject) -> None:
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


def ints(field: int, *values: int) -> bytes:
    return b"".join(number(field, value) for value in values)


@pytest.mark.parametrize(
    ("kind", "listed", "expected"),
    [
        (2, delimited(6, struct.pack("<2d", 1.25, -3)), np.array([1.25, -3], np.float64)),
        (
            2,
            b"\x31" + struct.pack("<d", 1.25) + b"\x31" + struct.pack("<d", 3),
            np.array([1.25, 3]),
        ),
        (3, ints(7, 5, -6), np.array([5, -6], np.int32)),
        (4, ints(7, 5, 250), np.array([5, 250], np.uint8)),
        (5, ints(7, 5, -300), np.array([5, -300], np.int16)),
        (6, ints(7, 5, -6), np.array([5, -6], np.int8)),
        (9, delimited(10, encode_varint(300) + encode_varint(2**64 - 1)), np.array([300, -1])),
        (11, ints(7, 5, -6), np.array([5, -6], np.int8)),
        (12, ints(7, 5, 250), np.array([5, 250], np.uint8)),
        (13, ints(7, 5, -6), np.array([5, -6], np.int32)),
        (15, ints(7, 5, -300), np.array([5, -300], np.int16)),
        (16, ints(7, 5, 65000), np.array([5, 65000], np.uint16)),
        (17, ints(7, 5, 65000), np.array([5, 65000], np.uint16)),
        (18, delimited(12, struct.pack("<4d", 1, 2, 3, -4)), np.array([1 + 2j, 3 - 4j])),
        (22, ints(16, 5, 2**32 - 1), np.array([5, 2**32 - 1], np.uint32)),
        (23, ints(17, 5, 2**64 - 1), np.array([5, 2**64 - 1], np.uint64)),
    ],
)
def test_each_element_type_is_read_from_its_own_list(
    kind: int, listed: bytes, expected: np.ndarray
) -> None:
    own = next(fields(listed, 0, len(listed)))[0]
    # Lists of other types beside it are not its numbers.
    beside = b"".join(number(field, 77) for field in (7, 10, 11, 13, 16, 17) if field != own)
    values = constant(number(1, kind) + shape(2) + beside + listed)
    assert values.dtype == expected.dtype
    assert values.tolist() == expected.tolist()


def test_values_are_read_only_views_and_short_lists_repeat_the_last_number() -> None:
    raw = constant(number(1, 1) + shape(2, 3) + delimited(4, FLOATS))
    repeated = constant(number(1, 9) + shape(2, 2) + number(10, 7))
    assert not raw.flags.writeable
    assert not repeated.flags.writeable
    assert repeated.strides == (0, 0)
    several = constant(number(1, 9) + shape(2, 3) + ints(10, 7, 8))
    assert several.tolist() == [[7, 8, 8], [8, 8, 8]]
    empty = constant(number(1, 9) + shape(0))
    assert (empty.shape, empty.dtype) == ((0,), np.int64)


def test_names_are_in_graph_order() -> None:
    data = b"".join(
        node(name, number(1, 9) + shape(value) + number(10, value))
        for name, value in (("z", 3), ("a", 5), ("m", 7))
    )
    # The library and the versions of a graph are between its nodes.
    data = delimited(2, b"") + data + delimited(4, number(1, 21))
    constants = FrozenConstants(data, "a.pb")
    assert constants.names() == list(constants) == ["z", "a", "m"]
    assert len(constants) == 3
    assert {name: constants.read(name).tolist() for name in constants} == {
        "z": [3] * 3,
        "a": [5] * 5,
        "m": [7] * 7,
    }
    entry = constants.entry("m")
    assert (entry.name, entry.shape, entry.dtype) == ("m", (7,), "int64")


COPY = "Copy it again, or use the .pb file that freeze_graph wrote."
NO_GRAPH = "a.pb: is not a frozen TensorFlow graph: "
DAMAGED = "The file is damaged: copy or download it again."


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"\x08\x01",
            f"{NO_GRAPH}it is a SavedModel, whose weights are the checkpoint variables/variables "
            f"beside it\n  {COPY}",
        ),
        (
            node("c", number(1, 1)) * 2,
            f"{NO_GRAPH}two constants are called 'c'\n  {COPY}",
        ),
        (
            delimited(1, delimited(1, b"c") + delimited(2, b"Const")),
            f"{NO_GRAPH}the constant 'c' has no value\n  {COPY}",
        ),
        (
            # A value that holds no tensor, and a tensor that is not called value.
            delimited(
                1,
                delimited(1, b"c")
                + delimited(2, b"Const")
                + delimited(5, delimited(1, b"value") + delimited(2, number(6, 1)))
                + delimited(5, delimited(1, b"other") + delimited(2, delimited(8, number(1, 1)))),
            ),
            f"{NO_GRAPH}the constant 'c' has no value\n  {COPY}",
        ),
        (
            node("c", number(1, 1) + delimited(2, number(3, 1))),
            f"{NO_GRAPH}constant 'c': the number of axes is unknown\n  {COPY}",
        ),
        (
            b"",
            "a.pb: contains no constants\n  The weights of a frozen graph are Const nodes; those "
            "of a .meta file or an unfrozen .pb are in a checkpoint beside it.",
        ),
    ],
)
def test_non_frozen_graph_has_the_full_message(data: bytes, message: str) -> None:
    with pytest.raises(UserError) as caught:
        FrozenConstants(data, "a.pb")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        (shape(3) + delimited(4, FLOATS), "it has 24 bytes, but the shape 3 needs 12"),
        (shape(2, 2) + delimited(5, FLOATS), "it has 6 values, too many for 2x2"),
        (shape(2) + delimited(5, FLOATS[:6]), "its list has 6 bytes, which is not a multiple of 4"),
        (
            shape(2**26 + 1) + delimited(5, FLOATS[:4]),
            "the shape 67108865 is too large for a repeated value",
        ),
    ],
)
def test_mismatched_values_are_reported_with_the_constant(tensor: bytes, reason: str) -> None:
    with pytest.raises(UserError) as caught:
        constant(number(1, 1) + tensor)
    assert str(caught.value) == f"a.pb, constant 'c': cannot be read: {reason}\n  {DAMAGED}"


def test_repeated_values_are_limited_to_a_quarter_of_a_gibibyte() -> None:
    values = constant(number(1, 1) + shape(2**26) + delimited(5, FLOATS[:4]))
    assert (values.shape, values[-1]) == ((2**26,), 1.5)


def test_missing_name_is_reported_with_the_nearest_if_any() -> None:
    constants = FrozenConstants(node("conv/weights", number(1, 1)), "a.pb")
    for name, hint in (("conv/weigths", "\n  Did you mean 'conv/weights'?"), ("x", "")):
        with pytest.raises(UserError) as caught:
            constants.read(name)
        assert str(caught.value) == f"a.pb: there is no constant '{name}'{hint}"


def test_file_longer_than_a_message_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long.pb"
    with path.open("wb") as file:
        file.truncate(2_147_483_648)
    with pytest.raises(UserError) as caught:
        read_constants(path)
    assert str(caught.value) == (
        f"{path}: is not a graph: 2147483648 bytes exceed the limit of a protobuf message"
    )
    assert LARGEST_MESSAGE == 2_147_483_648
    with pytest.raises(UserError, match="it is a folder, not a file"):
        read_constants(tmp_path)


def test_fields_with_other_wire_types_are_ignored() -> None:
    """A number where a name belongs, text where a number belongs: fields nobody knows."""
    noise = number(2, 3) + number(5, 1)
    tensor = delimited(1, b"\x09") + number(1, 9) + number(2, 3) + shape(2) + ints(10, 4, 5)
    tensor += number(4, 9) + b"\x55\1\0\0\0"
    value = number(1, 5) + delimited(1, b"value") + number(2, 7)
    value += delimited(2, number(8, 3) + delimited(8, tensor))
    inside = noise + delimited(1, b"c") + delimited(2, b"Const") + delimited(5, value)
    constants = FrozenConstants(number(9, 1) + delimited(1, inside), "a.pb")
    assert constants["c"].tolist() == [4, 5]
    texts = number(8, 1) + delimited(8, b"ab") + delimited(8, b"c")
    assert constant(number(1, 7) + shape(2) + texts).tolist() == [b"ab", b"c"]
