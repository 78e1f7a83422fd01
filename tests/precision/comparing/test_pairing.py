"""Which values of two calls are the same argument, where tools name and count them differently."""

from jumar.precision.comparing.pairing import Pair, pair_values
from jumar.precision.dumps.dump import Call, Role, Statistics, Value


def value(role: Role, name: str, count: int) -> Value:
    numbers = Statistics(count=count, min=0.0, max=1.0, mean=0.5, l2=1.0)
    return Value(role=role, name=name, dtype="float32", shape=(count,), statistics=numbers)


def call(*values: Value) -> Call:
    return Call(
        kind="op",
        op="aten.relu.default",
        layer="a",
        number=0,
        phase="forward",
        values=values,
        arguments={},
    )


def names(before: Call, after: Call) -> list[tuple[str, str]]:
    return [(one.name, other.name) for one, other in pair_values(Pair(before, after))]


def test_values_of_one_name_belong_together_if_they_are_of_one_size() -> None:
    before = call(value("input", "0", 6), value("output", "0", 6))
    after = call(value("output", "0", 6), value("input", "0", 6))
    assert names(before, after) == [("0", "0"), ("0", "0")]
    assert names(before, call(value("input", "0", 5))) == []


def test_values_of_other_names_belong_together_by_role_and_size_where_only_one_fits() -> None:
    before = call(value("input", "self", 6), value("input", "weight", 4), value("output", "0", 6))
    assert names(before, call(value("input", "x", 6))) == [("self", "x")]
    assert names(before, call(value("input", "x", 4))) == [("weight", "x")]
    assert names(before, call(value("input", "x", 5))) == []
    two = call(value("input", "self", 6), value("input", "other", 6))
    assert names(two, call(value("input", "x", 6))) == []
