"""Layers, including their sublayers."""

from typing import Any

import pytest

from jumar.profiling.views.view import VIEWS, Impossible, Options
from tests.profiling.generated import profile_of


def _op(module: str | None, length: int) -> dict[str, Any]:
    return {"rank": 0, "step": 1, "name": "a", "module": module, "duration_ns": length * 1000}


def _rows(*ops: dict[str, Any]) -> list[tuple[Any, ...]]:
    return VIEWS["layers"].make(profile_of(list(ops)), Options()).rows()


def test_layer_includes_those_inside_and_equal_ones_are_added_up() -> None:
    ops = [
        _op("Net_0", 10),
        _op("Net_0.Block_0.Linear_0", 100),
        _op("Net_0.Block_0.Linear_1", 100),
        _op("Net_0.Block_1.Linear_2", 150),
        _op("Net_0.Block_1", 40),
        _op(None, 600),
    ]
    columns = VIEWS["layers"].make(profile_of(ops), Options()).columns
    assert columns == ["layer", "layers", "count", "total_ms", "own_ms", "share_%"]
    assert _rows(*ops) == [
        ("Net", 1, 5, 0.4, 0.01, 40.0),
        ("Net.Block", 2, 4, 0.39, 0.04, 39.0),
        ("Net.Block.Linear", 3, 3, 0.35, 0.35, 35.0),
    ]


def test_numbers_of_lists_and_scopes_of_graphs_are_merged() -> None:
    ops = [
        _op("model.layers.0.fc1", 4),
        _op("model.layers.11.fc1", 3),
        _op("bert/layer_0/conv1-Conv2d.x", 2),
        _op("bert/layer_1/conv1-Conv2d.x", 1),
        _op("_2", 1),
    ]
    assert [row[:3] for row in _rows(*ops)] == [
        ("model", 1, 2),
        ("model.layers", 1, 2),
        ("model.layers.*", 2, 2),
        ("model.layers.*.fc1", 2, 2),
        ("bert", 1, 2),
        ("bert/layer", 2, 2),
        ("bert/layer/conv1-Conv2d.x", 2, 2),
        ("_2", 1, 1),
    ]


def test_profile_without_layers_says_how_to_record_them() -> None:
    with pytest.raises(Impossible, match="with_stack=True"):
        _rows(_op(None, 5))


def test_layers_beyond_a_depth_belong_to_the_last_one() -> None:
    rows = _rows(_op(".".join(["a"] * 300_000), 1), _op(".".join(["a"] * 32), 2))
    assert len(rows) == 32
    assert rows[-1] == (".".join(["a"] * 32), 1, 2, 0.003, 0.003, 100.0)
