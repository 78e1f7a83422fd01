"""The op behind an overflow is named with its layer, or as of no layer."""

from dataclasses import replace
from typing import Any

from jumar.precision.dumps.dump import Call, Phase, Role, Statistics, Value
from jumar.precision.overflow.origin import Origin
from jumar.precision.overflow.wording import _named, described, origin_lines


def call(layer: str, cann: str = "") -> Call:
    return Call(
        kind="op",
        op="aten.mm.default",
        layer=layer,
        number=2,
        phase="forward",
        values=(),
        arguments={},
        cann=cann,
    )


def test_op_is_named_with_layer_cann_type_and_number() -> None:
    assert _named(call("net.0", "MatMul")) == "aten.mm.default (MatMul) in net.0, call 2"
    assert _named(call("")) == "aten.mm.default in no layer, call 2"


def value(role: Role, numbers: Statistics | None, *shape: int) -> Value:
    return Value(role=role, name="0", dtype="float16", shape=shape, statistics=numbers)


FINE = Statistics(count=6, min=-1.23456, max=70000.0, nan=0, inf=0)
BAD = Statistics(count=6, min=None, max=None, nan=4, inf=2)


def lines(phase: Phase = "forward", cann: str = "MatMul", **fields: Any) -> list[str]:
    values = (value("input", FINE, 2, 3), value("output", BAD, 2, 3))
    one = replace(call("net.0", cann), values=values, phase=phase)
    origin = Origin(call=one, **{"bad": [values[1]], "is_made": True} | fields)
    return list(origin_lines(3, origin))


def test_origin_is_reported_with_inputs_outputs_and_advice() -> None:
    assert lines() == [
        "rank 3, forward: aten.mm.default (MatMul) in net.0, call 2 overflows",
        "  input 0: float16 2x3, -1.235 to 7e+04",
        "  output 0: float16 2x3, 4 of 6 NaN, 2 of 6 infinite",
        "  try: keep MatMul in float32: black-list it in a file for precision.modify_mixlist "
        "(check the file with `jumar precision lint`), or reduce its inputs",
    ]
    assert "keep aten.mm.default in float32" in lines(cann="")[-1]


def test_advice_depends_on_the_origin_of_the_value() -> None:
    came_in = lines(is_made=False, bad=[value("input", replace(FINE, inf=1))])
    assert came_in[0].endswith("call 2 receives values that are not finite")
    assert came_in[2] == "  input 0: float16 scalar, -1.235 to 7e+04, 1 of 6 infinite"
    assert came_in[-1] == (
        "  try: check the batch and the parameters of this layer: no recorded op produced the value"
    )
    assert lines("backward")[-1] == (
        "  try: a smaller loss scale, or keep the op in float32 (modify_mixlist)"
    )
    cast = lines(parameter="net.0.weight")
    assert cast[1] == "  it casts the parameter net.0.weight"
    assert cast[-1] == (
        "  try: a smaller parameter, or keep the ops that use it in float32 (modify_mixlist)"
    )
    assert described(value("input", None, 5)) == "0: float16 5"
