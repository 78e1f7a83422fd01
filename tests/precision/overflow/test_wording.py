"""The op behind an overflow is named with its layer, or as of no layer."""

from jumar.precision.dumps.dump import Call
from jumar.precision.overflow.wording import _named


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


def test_an_op_is_named_with_its_layer_its_name_at_cann_and_its_number() -> None:
    assert _named(call("net.0", "MatMul")) == "aten.mm.default (MatMul) in net.0, call 2"
    assert _named(call("")) == "aten.mm.default in no layer, call 2"
