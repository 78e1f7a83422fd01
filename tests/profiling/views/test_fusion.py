"""Ops that were fused, and chains of ops that could be."""

from typing import Any

import polars as pl
import pytest

from jumar.profiling.views.fusion import fused, fusion_candidates
from jumar.profiling.views.view import LEVEL_1, VIEWS, Impossible, Options
from tests.profiling.generated import profile_of

_US = 1000


def _ops(*told: tuple[str, int, int], stream: str = "1", **more: Any) -> list[dict[str, Any]]:
    """Ops by type, start and length; each consumes the previous one's output."""
    rows: list[dict[str, Any]] = []
    for kind, start, length in told:
        row = {"rank": 0, "stream": stream, "name": kind, "type": kind, "core": "AI_VECTOR_CORE"}
        row |= {"start_ns": start * _US, "duration_ns": length * _US}
        rows.append(row | {"input_shapes": "4;8,8", "output_shapes": "8,8"} | more)
    return rows


def _found(*ops: dict[str, Any]) -> list[tuple[Any, ...]]:
    table = VIEWS["fusion"].make(profile_of(ops), Options())
    assert table.columns == ["sequence", "length", "times", "total_ms", "gaps_ms", "saved_ms"]
    return table.rows()


def test_recurring_chain_saves_half_of_all_but_its_longest_op_plus_gaps() -> None:
    first = _ops(("Mul", 0, 30), ("Add", 31, 11), ("Sqrt", 50, 20), ("MatMul", 70, 5))
    # The second time its gaps are longer than fusing closes.
    second = _ops(("Mul", 100, 30), ("Add", 145, 11), ("Sqrt", 156, 20))
    # Of 61 us all but 30 are 31, of which half are 15.5.
    assert _found(*first, *second) == [("Mul > Add > Sqrt", 3, 2, 0.122, 0.019, 0.05)]


def test_chains_are_per_stream_and_sorted_by_saving() -> None:
    pair = [*_ops(("Mul", 0, 4), ("Add", 4, 4)), *_ops(("Conv", 8, 1)), *_ops(("Mul", 9, 4))]
    pair += _ops(("Add", 13, 4))
    other = [*_ops(("Exp", 1, 9), ("Neg", 10, 9), stream="2"), *_ops(("Conv", 19, 1), stream="2")]
    other += _ops(("Exp", 20, 9), ("Neg", 29, 9), stream="2")
    once = _ops(("Sin", 0, 90), ("Cos", 90, 90), stream="3")
    assert _found(*pair, *other, *once) == [
        ("Exp > Neg", 2, 2, 0.036, 0.0, 0.009),
        ("Mul > Add", 2, 2, 0.016, 0.0, 0.004),
    ]


def test_overlong_chain_is_split_after_five_ops() -> None:
    told = [("ABCDEFG"[place], 10 * place, 10) for place in range(7)]
    again = [(kind, 1000 + start, length) for kind, start, length in told]
    wall = _ops(("Conv", 500, 1))
    found = _found(*_ops(*told), *wall, *_ops(*again))
    # Half of four ops of 10 us, twice; and of one.
    assert found == [
        ("A > B > C > D > E", 5, 2, 0.1, 0.0, 0.04),
        ("F > G", 2, 2, 0.04, 0.0, 0.01),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"input_shapes": "4;8,9"},
        {"core": "AI_CORE"},
        {"core": None},
        {"type": "TransData"},
        {"type": "hcom_x"},
        {"type": "mm"},
        {"input_shapes": None},
        {"start_ns": None},
        {"core": "COMMUNICATION"},
    ],
)
def test_non_consecutive_ops_are_not_a_chain(change: dict[str, Any]) -> None:
    rows = [*_ops(("Mul", 0, 4), ("Add", 4, 4)), *_ops(("Conv", 8, 1))]
    rows += _ops(("Mul", 9, 4), ("Add", 13, 4))
    assert len(_found(*rows)) == 1
    rows[1] |= change
    rows[4] |= change
    assert _found(*rows) == []


def test_scalars_join_no_chain_and_without_outputs_the_first_input_counts() -> None:
    pair = (("Mul", 0, 4), ("Add", 4, 4), ("Conv", 8, 1), ("Mul", 9, 4), ("Add", 13, 4))
    assert _found(*_ops(*pair, input_shapes=";8", output_shapes="")) == []
    assert len(_found(*_ops(*pair, input_shapes="8,8", output_shapes=None))) == 1
    for core in ("MIX_AIV", "CUDA", "CPU"):
        assert len(_found(*_ops(*pair, core=core))) == 1


def test_chains_with_equal_savings_are_sorted_by_name() -> None:
    rows = [
        row
        for stream, (one, other) in enumerate((("Z", "Y"), ("B", "C"), ("B", "A")))
        for row in _ops(
            *((one, 0, 4), (other, 4, 4), ("Conv", 8, 1), (one, 9, 4), (other, 13, 4)),
            stream=str(stream),
        )
    ]
    assert [row[0] for row in _found(*rows)] == ["B > A", "B > C", "Z > Y"]


def test_ops_without_shapes_or_types_have_no_chains() -> None:
    for lacks in ("input_shapes", "type"):
        with pytest.raises(Impossible) as told:
            fusion_candidates(profile_of(_ops(("A", 0, 1), **{lacks: None})), Options())
        assert str(told.value) == f"needs shapes of ops (column {lacks}); {LEVEL_1}"


def test_fused_ops_are_sorted_by_replaced_ops() -> None:
    table = pl.DataFrame(
        {
            "fusion_op": ["b", "c", "a", "a"],
            "original_ops": ["x; y", "p;q;r", "m ;n", "k;l"],
            "memory_total": [1024, 1536, 1000, 0],
            "memory_total_other": [1, 1, 1, 1],
        }
    )
    told = profile_of(statistics={"fusion_op": table})
    shown = VIEWS["fused"].make(told, Options())
    assert shown.columns == ["fusion_op", "replaces", "original_ops", "memory_kib"]
    assert shown.rows() == [
        ("c", 3, "p;q;r", 1.5),
        ("a", 2, "m ;n", 0.977),
        ("a", 2, "k;l", 0.0),
        ("b", 2, "x; y", 1.0),
    ]
    bare = profile_of(statistics={"fusion_op": table.drop("memory_total", "memory_total_other")})
    assert fused(bare, Options()).columns == ["fusion_op", "replaces", "original_ops"]
    for statistics in ({}, {"fusion_op": table.drop("original_ops")}):
        with pytest.raises(Impossible) as said:
            fused(profile_of(statistics=statistics), Options())
        assert str(said.value) == (
            "needs the fusions of the graph (fusion_op.csv); only graph mode writes it"
        )
