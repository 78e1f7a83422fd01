"""Layers of databases: nodes of backward found by sequence numbers."""

from collections.abc import Sequence

import polars as pl

from jumar.profiling.reading.databases.module_calls import layers_of

NODE = "autograd::engine::evaluate_function: AddmmBackward0"
Row = tuple[int, int, int, str, int | None, int | None]
"""Thread, start, end, name, sequence number, and thread of the forward pass."""

MODULES: Sequence[Row] = (
    (1, 0, 100, "nn.Module: Net_0", None, None),
    (1, 10, 40, "nn.Module: Linear_0", None, None),
    (1, 50, 90, "nn.Module: Linear_1", None, None),
)


def layer(rows: Sequence[Row], thread: int, moment: int) -> str | None:
    names = sorted({row[3] for row in rows})
    schema = ("globalTid", "startNs", "endNs", "name", "sequenceNumber", "fwdThreadId")
    numbered = [(*row[:3], names.index(row[3]), *row[4:]) for row in rows]
    table = pl.DataFrame(numbered, schema=dict.fromkeys(schema, pl.Int64), orient="row")
    layers = layers_of(lambda _, columns: table.select(list(columns)), dict(enumerate(names)))
    return layers.at(pl.Series([thread]), pl.Series([moment]))[0]


BACKWARD: Sequence[Row] = (
    (1, 12, 13, "aten::linear", 7, 0),
    (1, 55, 56, "aten::addmm", 7, 0),
    (1, 60, 61, "aten::relu", -1, 0),
    (2, 200, 240, NODE, -1, 0),
    (2, 205, 220, "AddmmBackward0", 7, 1),
    (2, 300, 340, NODE, -1, 0),
    (2, 305, 320, "AddmmBackward0", 8, 1),
)


def test_all_of_a_node_has_the_layer_of_the_last_op_with_its_number() -> None:
    rows = [*MODULES, *BACKWARD]
    assert [layer(rows, 2, at) for at in (199, 200, 210, 239, 240)] == [
        None,
        *["Net_0.Linear_1"] * 3,
        None,
    ]
    assert layer(rows, 2, 310) is None
    assert layer(rows, 1, 60) == "Net_0.Linear_1"


def test_number_that_two_threads_used_leads_nowhere() -> None:
    rows = [*MODULES, *BACKWARD, (3, 12, 13, "aten::addmm", 7, 0)]
    assert layer(rows, 2, 210) is None


def test_calls_without_a_time_are_left_out() -> None:
    assert layer([*MODULES, (1, 50, None, "nn.Module: X_0", None, None)], 1, 60) == "Net_0.Linear_1"  # type: ignore[list-item]
    assert layer(BACKWARD, 2, 210) is None
