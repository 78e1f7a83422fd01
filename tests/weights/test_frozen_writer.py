"""Constants of a frozen graph are replaced by those of the same shape and element type alone."""

from pathlib import Path

import numpy as np
import pytest

from jumar.ground.errors import UserError
from jumar.weights.frozen_graph import FrozenConstants, read_constants
from jumar.weights.frozen_writer import with_constants, write_frozen
from tests.weights.test_frozen_graph import FLOATS, delimited, node, number, shape


@pytest.fixture
def graph() -> FrozenConstants:
    return FrozenConstants(node("c", number(1, 1) + shape(2, 3) + delimited(5, FLOATS)), "a.pb")


def test_replaced_constant_is_read_back(graph: FrozenConstants, tmp_path: Path) -> None:
    value = np.arange(6, dtype="<f4").reshape(2, 3)
    write_frozen(tmp_path / "b.pb", graph, {"c": value})
    assert np.array_equal(read_constants(tmp_path / "b.pb")["c"], value)


@pytest.mark.parametrize(
    "value", [np.zeros((3, 2), "<f4"), np.zeros((2, 3), "<f8"), np.zeros((2, 3), "<i4")]
)
def test_other_shape_or_element_type_is_refused_before_anything_is_written(
    graph: FrozenConstants, tmp_path: Path, value: np.ndarray
) -> None:
    with pytest.raises(ValueError, match="'c' is float32 2x3 and cannot hold"):
        write_frozen(tmp_path / "b.pb", graph, {"c": value})
    assert not (tmp_path / "b.pb").exists()


def test_everything_but_the_values_is_kept_byte_for_byte(tmp_path: Path) -> None:
    """Also the bytes between the nodes, and within a node on both sides of its value."""

    def constant(name: str, tensor: bytes) -> bytes:
        dtype = delimited(5, delimited(1, b"dtype") + delimited(2, number(6, 1)))
        value = delimited(5, delimited(1, b"value") + delimited(2, delimited(8, tensor)))
        inside = delimited(1, name.encode()) + delimited(2, b"Const") + delimited(3, b"^x") + dtype
        return delimited(1, inside + value + delimited(4, b"/gpu:0"))

    def tensor(values: np.ndarray) -> bytes:
        return number(1, 1) + shape(*values.shape) + delimited(4, values.tobytes())

    old, new = np.arange(300, dtype="<f4"), -np.arange(300, dtype="<f4")
    other = constant("other", tensor(old[:2]))
    begin, middle, end = delimited(2, b""), node("x", b"", op=b"Add"), delimited(4, number(1, 9))
    whole = [begin, constant("c", tensor(old)), middle, other, end]
    graph = FrozenConstants(b"".join(whole), "a.pb")
    assert b"".join(with_constants(graph, {})) == b"".join(whole)
    whole[1] = constant("c", tensor(new))
    assert b"".join(with_constants(graph, {"c": new})) == b"".join(whole)
    # Values that are not contiguous, and a scalar.
    wide = np.repeat(new, 2)[::2]
    write_frozen(tmp_path / "b.pb", graph, {"c": wide})
    assert (tmp_path / "b.pb").read_bytes() == b"".join(whole)
    scalar = FrozenConstants(node("s", number(1, 1) + shape() + delimited(5, FLOATS[:4])), "a.pb")
    assert b"".join(with_constants(scalar, {"s": np.array(2.5, "<f4")})) == node(
        "s", number(1, 1) + shape() + delimited(4, np.array(2.5, "<f4").tobytes())
    )


def test_existing_file_and_an_unknown_name_are_refused(
    graph: FrozenConstants, tmp_path: Path
) -> None:
    (tmp_path / "b.pb").write_bytes(b"mine")
    with pytest.raises(UserError) as caught:
        write_frozen(tmp_path / "b.pb", graph, {})
    assert str(caught.value) == (
        f"--out: '{tmp_path / 'b.pb'}' already exists\n  Choose another file name."
    )
    assert (tmp_path / "b.pb").read_bytes() == b"mine"
    with pytest.raises(UserError, match="there is no constant 'd'"):
        write_frozen(tmp_path / "c.pb", graph, {"d": np.zeros(1, "<f4")})
    assert [path.name for path in tmp_path.iterdir()] == ["b.pb"]
    doubles = FrozenConstants(node("c", number(1, 2) + shape(2)), "a.pb")
    with pytest.raises(ValueError, match=r"^'c' is float64 2 and cannot hold float64 2$"):
        list(with_constants(doubles, {"c": np.zeros(2, "<f8")}))
