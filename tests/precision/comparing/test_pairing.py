"""Which values of two calls are the same argument, where tools name and count them differently."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jumar.precision.comparing.pairing import Pair, canonical, pair_calls, pair_values
from jumar.precision.dumps.dump import Call, Dump, Role, Statistics, Value


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


def test_equally_named_values_pair_if_sizes_match() -> None:
    before = call(value("input", "0", 6), value("output", "0", 6))
    after = call(value("output", "0", 6), value("input", "0", 6))
    assert names(before, after) == [("0", "0"), ("0", "0")]
    assert names(before, call(value("input", "0", 5))) == []


def test_differently_named_values_pair_by_role_and_size_if_unique() -> None:
    before = call(value("input", "self", 6), value("input", "weight", 4), value("output", "0", 6))
    assert names(before, call(value("input", "x", 6))) == [("self", "x")]
    assert names(before, call(value("input", "x", 4))) == [("weight", "x")]
    assert names(before, call(value("input", "x", 5))) == []
    two = call(value("input", "self", 6), value("input", "other", 6))
    assert names(two, call(value("input", "x", 6))) == []


def one(op: str, layer: str = "", number: int = 0, **fields: Any) -> Call:
    plain: dict[str, Any] = {"kind": "op", "phase": "forward", "values": ()}
    return Call(op=op, layer=layer, number=number, **plain | fields)


def paired(before: list[Call], after: list[Call]) -> tuple[list[tuple[int, int]], int, int]:
    """The places of partners in both dumps, and how many calls of each have none."""
    first, second = (Dump(where=Path("d"), tool="t", calls=calls) for calls in (before, after))
    pairing = pair_calls(first, second)
    places = [
        (
            next(at for at, each in enumerate(before) if each is pair.before),
            next(at for at, each in enumerate(after) if each is pair.after),
        )
        for pair in pairing.pairs
    ]
    return places, len(pairing.only_before), len(pairing.only_after)


def test_partners_follow_the_order_of_the_second_dump() -> None:
    before = [one("a", "x"), one("b", "x"), one("c", "x")]
    after = [one("c", "x"), one("d", "x"), one("a", "x")]
    assert paired(before, after) == ([(2, 0), (0, 2)], 1, 1)


def test_equally_named_calls_pair_by_number_if_the_numbers_match() -> None:
    before = [one("a", "x", 1), one("a", "x", 0)]
    assert paired(before, [one("a", "x", 0), one("a", "x", 1)]) == ([(1, 0), (0, 1)], 0, 0)
    assert paired(before, [one("a", "x", 1), one("a", "x", 2)]) == ([(0, 0), (1, 1)], 0, 0)


def test_calls_pair_by_shape_if_one_side_has_more() -> None:
    small, large, other = (value("output", "0", count) for count in (4, 5, 6))
    before = [one("a", "x", 0, values=(small,)), one("a", "x", 1, values=(large,))]
    after = [
        one("a", "x", 0, values=(other,)),
        one("a", "x", 1, values=(small,)),
        one("a", "x", 2, values=(large,)),
    ]
    assert paired(before, after) == ([(0, 1), (1, 2)], 0, 1)
    assert paired(after, before) == ([(1, 0), (2, 1)], 1, 0)


def test_names_of_other_tools_and_ddp_levels_are_normalised() -> None:
    before = [
        one("aten.addmm.default", "net.0"),
        one("aten.add.Tensor", "net.0", phase="backward"),
        one("net.0.weight", "net.0", kind="parameter", phase="update"),
        one("aten.relu.default", "net.0"),
        one("aten.tanh.default", "net.0"),
    ]
    after = [
        one("Functional.linear", "module.net.0"),
        one("Tensor.__add__", "net.0", phase="backward"),
        one("module.net.0.weight", "module.net.0", kind="parameter", phase="backward"),
        one("Functional.relu", "net.0", phase="backward"),
        one("Functional.tanh", "net.1"),
    ]
    assert paired(before, after) == ([(0, 0), (1, 1), (2, 2)], 2, 2)


def test_ops_pair_without_layers_and_layers_without_ops() -> None:
    known = [one("aten.addmm.default", "net.0"), one("aten.relu.default", "net.1")]
    bare = [one("Functional.linear"), one("Functional.relu", phase="backward")]
    assert paired(known, bare) == ([(0, 0)], 1, 1)
    assert paired(bare, known) == ([(0, 0)], 1, 1)
    # The layer of a module says nothing of the ops'.
    module = one("Linear", "net.0", kind="module")
    assert paired([*known, module], [*bare, module]) == ([(0, 0), (2, 2)], 1, 1)
    nameless = [one("", "net.0"), one("", "net.1", phase="backward")]
    assert paired(known, nameless) == ([(0, 0)], 1, 1)
    assert paired(nameless, known) == ([(0, 0)], 1, 1)
    assert paired(known, [one("aten.exp.default", "net.0")]) == ([], 2, 1)


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("aten._softmax.default", "softmax"),
        ("Functional.softmax", "softmax"),
        ("SoftmaxV2", "softmax"),
        ("__add__", "add"),
        ("add_", "add"),
        ("aten.add.Tensor", "add"),
        ("Primitive.norm.LayerNorm", "layer_norm"),
        ("Mint.norm.LayerNorm", "norm"),
        ("mm", "linear"),
        *((f"Functional.conv_transpose{axes}d", "conv_transpose") for axes in (1, 2, 3)),
        *((f"ConvTranspose{axes}d", "conv_transpose") for axes in (1, 2, 3)),
        ("conv_transpose4d", "conv_transpose4d"),
        ("conv_transpose0d", "conv_transpose0d"),
    ],
)
def test_equivalent_computations_share_a_name(op: str, name: str) -> None:
    assert canonical(op) == name


def values_of(op: str, *sizes: int, role: Role = "input") -> Call:
    return one(op, values=tuple(value(role, str(at), size) for at, size in enumerate(sizes)))


@pytest.mark.parametrize(
    ("aten", "function", "places"),
    [
        ("aten.addmm.default", "Functional.linear", [("2", "1"), ("0", "2"), ("1", "0")]),
        ("aten.embedding.default", "Functional.embedding", [("1", "0"), ("0", "1")]),
        (
            "aten.native_batch_norm.default",
            "Functional.batch_norm",
            [("0", "0"), ("3", "1"), ("4", "2"), ("1", "3"), ("2", "4")],
        ),
        ("aten.relu.default", "Functional.relu", [("0", "0"), ("1", "1")]),
        ("addmm", "Functional.linear", [("0", "0"), ("1", "1")]),
        ("aten.addmm", "Functional.linear", [("0", "0"), ("1", "1")]),
    ],
)
def test_aten_operands_are_ordered_like_the_functions(
    aten: str, function: str, places: list[tuple[str, str]]
) -> None:
    sizes = [6] * len(places)
    before, after = values_of(aten, *sizes), values_of(function, *sizes)
    result = {other: own for own, other in names(before, after)}
    expected = {other: own for own, other in places}
    assert result == expected
    outputs = names(values_of(aten, 6, 6, role="output"), values_of(function, 6, 6, role="output"))
    assert outputs == [("0", "0"), ("1", "1")]


def test_numbers_and_indices_are_not_the_same_argument() -> None:
    index = replace(value("input", "1", 6), dtype="int64")
    assert names(call(value("input", "0", 6)), call(index)) == []
    assert names(call(replace(value("input", "0", 6), dtype="int32")), call(index)) == [("0", "1")]
    low = replace(value("input", "1", 6), dtype="hif8")
    assert names(call(value("input", "0", 6)), call(low)) == [("0", "1")]
    square = replace(value("input", "0", 6), shape=(2, 3))
    assert names(call(square), call(value("input", "0", 6))) == [("0", "0")]
    assert names(call(square), call(replace(square, shape=(2, 4)))) == []
