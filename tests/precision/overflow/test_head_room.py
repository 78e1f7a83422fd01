"""Head room counts doublings up to 65504, and vanishing gradients those below 2**-24."""

import pytest

from jumar.precision.overflow.head_room import head_room, vanishing
from tests.precision.overflow.steps import call, step, value


def test_the_op_with_the_largest_output_comes_first() -> None:
    dump = step(
        call("aten.mm", value("input", largest=1e6), value("output", largest=65504 / 8)),
        call("aten.mm", value("output", largest=1.0)),
        call("aten.exp", value("output", largest=65504 * 2, above_fp16=3)),
        call("aten.exp", value("output", largest=1.0, above_fp16=1)),
        call("aten.argmax", value("output", largest=1e9, dtype="int64")),
    )
    rows = head_room(dump)
    assert [(row.op, row.doublings) for row in rows] == [("aten.exp", -1.0), ("aten.mm", 3.0)]
    assert [row.above for row in rows] == [4, 0]


def test_layers_and_phases_have_rows_of_their_own() -> None:
    calls = [
        call("aten.mm", value("output"), layer=layer, phase=phase)
        for layer in ("a", "b")
        for phase in ("forward", "backward")
    ]
    assert len(head_room(step(*calls))) == 4


def test_shares_of_lost_gradients_are_of_what_is_not_zero_and_of_the_backward_pass() -> None:
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
