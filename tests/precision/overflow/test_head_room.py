"""Head room counts doublings up to 65504, and vanishing gradients those below 2**-24."""

import math
from dataclasses import replace

import pytest

from jumar.precision.dumps.dump import Call, Statistics
from jumar.precision.overflow.head_room import HeadRoom, Vanishing, head_room, vanishing
from tests.precision.overflow.steps import call, step, value


def test_op_with_the_largest_output_is_first() -> None:
    dump = step(
        replace(call("Linear", value("output", largest=65504)), kind="module"),
        call("aten.mm", value("input", largest=1e6), value("output", largest=65504 / 8)),
        call("aten.mm", value("output", largest=1.0)),
        call("aten.exp", value("output", largest=65504 * 2, above_fp16=3)),
        call("aten.exp", value("output", largest=1.0, above_fp16=1)),
        call("aten.argmax", value("output", largest=1e9, dtype="int64")),
    )
    rows = head_room(dump)
    assert [(row.op, row.doublings) for row in rows] == [("aten.exp", -1.0), ("aten.mm", 3.0)]
    assert [row.above for row in rows] == [4, 0]


def test_layers_and_phases_have_separate_rows() -> None:
    calls = [
        call("aten.mm", value("output"), layer=layer, phase=phase)
        for layer in ("a", "b")
        for phase in ("forward", "backward")
    ]
    assert len(head_room(step(*calls))) == 4


def test_lost_gradient_shares_count_non_zero_values_of_the_backward_pass() -> None:
    half = value("output", zeros=2, below_normal=6, below_subnormal=4)
    few = value("output", below_normal=1, below_subnormal=1)
    rows = vanishing(
        step(
            call("aten.mm", few, layer="b", phase="backward"),
            call("aten.mm", half, layer="a", phase="backward"),
            call("aten.mm", half, layer="forward only"),
            call("aten.mm", value("output"), layer="none", phase="backward"),
        )
    )
    assert [row.layer for row in rows] == ["a", "b"]
    assert rows[0].share_lost == pytest.approx(4 / 8)
    assert rows[0].coarse == 2


def test_tightest_output_of_an_op_has_a_complete_row() -> None:
    dump = step(
        call("aten.mm", value("input", largest=1e6), value("output", largest=8188.0)),
        call(
            "aten.mm",
            value("output", largest=16376.0, dtype="bfloat16", above_fp16=2),
            value("output", name="1", largest=4.0, dtype="float32", above_fp16=3),
        ),
        call("aten.exp", value("output", largest=16376.0), layer="b"),
        call("aten.exp", value("output", largest=16376.0), layer="a"),
        call("aten.abs", value("output", largest=16376.0), layer="b"),
        call("aten.zero", value("output", largest=0.0)),
        replace(call("Linear", value("output", largest=9.0)), kind="module"),
        call("aten.bare", replace(value("output"), statistics=None)),
    )
    first, *rest = head_room(dump)
    assert [(row.layer, row.op) for row in (first, *rest)] == [
        ("a", "aten.exp"),
        ("b", "aten.abs"),
        ("b", "aten.exp"),
        ("net", "aten.mm"),
    ]
    assert rest[-1] == HeadRoom(
        op="aten.mm",
        cann="mm",
        layer="net",
        phase="forward",
        largest=16376.0,
        above=5,
        dtype="bfloat16",
    )
    assert (first.doublings, first.above) == (2.0, 0)


def test_largest_magnitude_is_the_finite_extreme_farther_from_zero() -> None:
    def largest(low: float | None, high: float | None) -> list[float]:
        numbers = Statistics(count=2, min=low, max=high)
        given = replace(value("output"), statistics=numbers)
        return [row.largest for row in head_room(step(call("aten.mm", given)))]

    assert largest(-5.0, 3.0) == [5.0]
    assert largest(-5.0, 7.0) == [7.0]
    assert largest(-math.inf, 3.0) == [3.0]
    assert largest(None, 3.0) == [3.0]
    assert largest(None, math.nan) == []


def test_lost_gradients_are_listed_worst_first() -> None:
    def layer(name: str, **counts: int) -> Call:
        return call("aten.mm", value("output", **counts), layer=name, phase="backward")

    rows = vanishing(
        step(
            layer("few", below_normal=1, below_subnormal=1),
            layer("coarse", below_normal=3),
            layer("b", below_normal=4, below_subnormal=2),
            layer("a", below_normal=4, below_subnormal=2),
            layer("coarser", below_normal=9, below_subnormal=2, zeros=0),
            layer("zeros", zeros=5, below_normal=1, below_subnormal=1),
            layer("zeros"),
            replace(layer("module", below_normal=9), kind="module"),
            call(
                "aten.mm",
                replace(value("output"), statistics=Statistics(count=3)),
                layer="unknown",
                phase="backward",
            ),
        )
    )
    assert [row.layer for row in rows] == ["coarser", "a", "b", "few", "zeros", "coarse"]
    assert rows[4] == Vanishing(layer="zeros", elements=15, lost=1, coarse=0)
    assert rows[0] == Vanishing(layer="coarser", elements=10, lost=2, coarse=7)
    assert rows[5].share_lost == 0.0
