"""Constants of a frozen graph are replaced by those of the same shape and element type alone."""

from pathlib import Path

import numpy as np
import pytest

from jumar.weights.frozen_graph import FrozenConstants, read_constants
from jumar.weights.frozen_writer import write_frozen
from tests.weights.test_frozen_graph import FLOATS, delimited, node, number, shape


@pytest.fixture
def graph() -> FrozenConstants:
    return FrozenConstants(node("c", number(1, 1) + shape(2, 3) + delimited(5, FLOATS)), "a.pb")


def test_a_replaced_constant_is_read_back(graph: FrozenConstants, tmp_path: Path) -> None:
    value = np.arange(6, dtype="<f4").reshape(2, 3)
    write_frozen(tmp_path / "b.pb", graph, {"c": value})
    assert np.array_equal(read_constants(tmp_path / "b.pb")["c"], value)


@pytest.mark.parametrize(
    "value", [np.zeros((3, 2), "<f4"), np.zeros((2, 3), "<f8"), np.zeros((2, 3), "<i4")]
)
def test_another_shape_or_element_type_is_refused_before_anything_is_written(
    graph: FrozenConstants, tmp_path: Path, value: np.ndarray
) -> None:
    with pytest.raises(ValueError, match="'c' is float32 2x3 and cannot hold"):
        write_frozen(tmp_path / "b.pb", graph, {"c": value})
    assert not (tmp_path / "b.pb").exists()
