"""What msprobe's format cannot hold is counted."""

from pathlib import Path
from typing import Any

from jumar.precision.dumps.dump import Call, Dump, Kind, Phase, Role, Statistics, Value
from jumar.precision.dumps.msprobe_losses import Coverage, coverage

PLAIN = Statistics(count=6, min=-1.0, max=2.0, mean=0.5, l2=3.0, nan=0, inf=0)
COUNTED = Statistics(count=6, nan=0, inf=0, zeros=1, above_fp16=0)


def value(role: Role, statistics: Statistics | None = PLAIN, **fields: Any) -> Value:
    return Value(role=role, name="0", dtype="float32", shape=(6,), statistics=statistics, **fields)


def call(kind: Kind, layer: str, phase: Phase, *values: Value, op: str = "aten.x") -> Call:
    return Call(kind=kind, op=op, layer=layer, number=0, phase=phase, values=values)


class Stored:
    """Tensors, none of which is read."""

    def read(self, name: str) -> Any:
        raise AssertionError(name)


def test_everything_that_is_not_written_is_counted() -> None:
    parameter = call(
        *("parameter", "net", "update"),
        value("parameter"),
        value("gradient", COUNTED),
        value("state"),
        value("state"),
        value("change"),
    )
    calls = [
        call("op", "net", "forward", value("input"), value("output", tensor="a"), op="aten.y"),
        call("op", "net", "backward", value("input", tensor="b"), value("output", None)),
        call("op", "", "update", value("input"), value("output", COUNTED)),
        call("op", "", "forward", value("output", digest="sha256:1"), value("input", digest="")),
        call("op", "", "forward", value("output", digest="crc32:1")),
        parameter,
    ]
    facts = {"task": "statistics", "level": "L1", "seed": "1"}
    dump = Dump(where=Path("x"), tool="x", calls=calls, tensors=Stored(), facts=facts)
    assert coverage(dump, {"b"}) == Coverage(
        calls=5,
        values=8,
        left_out={
            **{"update_calls": 1, "states": 2, "changes": 1, "parameters": 1, "tensors": 1},
            **{"statistics": 1, "counts": 1, "hashes": 1, "layers": 2, "facts": 1},
        },
    )


def test_only_infinities_of_unknown_sign_are_counted_as_such() -> None:
    rows = (
        Statistics(count=6, nan=0, inf=2),
        Statistics(count=6, nan=1, inf=2),
        Statistics(count=6, max=float("inf")),
    )
    op = call("op", "", "forward", *(value("input", row) for row in rows))
    assert coverage(Dump(where=Path("x"), tool="x", calls=[op]), ()).left_out == {
        "counts": 2,
        "infinities": 1,
    }


def test_layers_are_kept_beside_modules_and_in_names_of_nodes() -> None:
    op = call("op", "net", "forward")
    module = call("module", "net", "forward", value("parameter"), op="Linear")
    node = call("op", "dense_MatMul", "forward", op="MatMulV2")
    for calls in ([op, module], [node]):
        dump = Dump(where=Path("x"), tool="x", calls=calls)
        assert coverage(dump, ()).left_out == {}
    assert coverage(Dump(where=Path("x"), tool="x", calls=[op, node]), ()).left_out == {"layers": 1}
