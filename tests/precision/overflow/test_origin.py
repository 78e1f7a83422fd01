"""The op that made the first non-finite value is named, and not one that only passed it on."""

from dataclasses import replace

from jumar.precision.dumps.dump import Call, Value
from jumar.precision.overflow.origin import Origin, origin_of
from tests.precision.overflow.steps import call, step, value

FINE = call("aten.mul", value("input"), value("output", largest=3.0))


def test_op_that_turns_finite_inputs_into_infinities_is_the_origin() -> None:
    exp = call("aten.exp", value("input", largest=12.0), value("output", inf=2))
    later = call("aten.sum", value("input", inf=2), value("output", nan=1))
    origin = origin_of(step(FINE, exp, later))
    assert origin is not None
    assert origin.op is exp
    assert origin.is_made
    assert [each.name for each in origin.inputs] == ["0"]


def test_incoming_mask_is_no_finding_unless_it_reaches_the_backward_pass() -> None:
    scores = call("aten.add.Tensor", value("input"), value("input", inf=4), value("output", inf=4))
    softmax = call("aten._softmax", value("input", inf=4), value("output"))
    back = call("aten.mm", value("input"), value("output"), phase="backward")
    assert origin_of(step(scores, softmax, back)) is None
    spoilt = call("aten.mm", value("input", inf=1), value("output", inf=1), phase="backward")
    origin = origin_of(step(scores, softmax, spoilt))
    assert origin is not None
    assert origin.op is scores
    assert not origin.is_made
    empty_row = call("aten._softmax", value("input", inf=10), value("output", nan=10))
    origin = origin_of(step(scores, empty_row))
    assert origin is not None
    assert origin.op is scores
    later = call("aten.exp", value("input"), value("output", inf=1))
    origin = origin_of(step(scores, softmax, later))
    assert origin is not None
    assert origin.op is later


def test_bad_inputs_are_not_blamed_on_the_consuming_op() -> None:
    first = call("aten.mul", value("input", nan=1), value("output", nan=1))
    origin = origin_of(step(FINE, first))
    assert origin is not None
    assert origin.op is first
    assert not origin.is_made


def test_overflowing_cast_blames_the_producer_of_its_input() -> None:
    product = call("aten.mm", value("output", largest=9e4, dtype="float32"), layer="product")
    other = call("aten.mm", value("output", largest=2.0, dtype="float32"), layer="other")
    cast = call(
        "aten._to_copy.default",
        value("input", largest=9e4, dtype="float32"),
        value("output", inf=1),
    )
    origin = origin_of(step(product, other, cast))
    assert origin is not None
    assert origin.op is product
    assert origin.call is cast


def test_mask_of_infinities_is_no_finding_until_it_becomes_nan() -> None:
    fill = call("aten.masked_fill.Scalar", value("input"), value("output", inf=4))
    softmax = call("aten._softmax", value("input", inf=4), value("output"))
    assert origin_of(step(fill, softmax)) is None
    of_nothing = call("aten._softmax", value("input", inf=10), value("output", nan=10))
    origin = origin_of(step(fill, of_nothing))
    assert origin is not None
    assert origin.op is of_nothing
    overflow = call("aten.exp", value("input"), value("output", inf=1))
    origin = origin_of(step(fill, softmax, overflow))
    assert origin is not None
    assert origin.op is overflow


def test_finite_steps_have_no_origin() -> None:
    assert origin_of(step(FINE)) is None


def test_origin_lists_its_bad_values_and_its_inputs() -> None:
    fine, bad = value("input", name="0"), value("output", name="1", inf=2)
    exp = call("aten.exp", fine, value("output", name="0"), bad)
    assert origin_of(step(FINE, exp)) == Origin(call=exp, bad=[bad], is_made=True)
    result = origin_of(step(exp))
    assert result is not None
    assert [each.name for each in result.inputs] == ["0"]
    # What comes in is bad where nothing bad is given.
    wrong = value("input", nan=1)
    argmax = call("aten.argmax", wrong, value("output", dtype="int64"))
    assert origin_of(step(argmax)) == Origin(call=argmax, bad=[wrong], is_made=False)
    given = value("output", nan=1)
    passed = call("aten.mul", wrong, given)
    assert origin_of(step(passed)) == Origin(call=passed, bad=[given], is_made=False)


def test_infinity_that_becomes_nan_is_only_bad_as_nan() -> None:
    fill = call("aten.masked_fill.Scalar", value("input"), value("output", inf=4))
    nan, infinite = value("output", name="0", nan=1), value("output", name="1", inf=1)
    softmax = call("aten._softmax", value("input", inf=4), nan, infinite)
    assert origin_of(step(fill, softmax)) == Origin(call=softmax, bad=[nan], is_made=True)


def test_infinities_of_a_fill_may_be_passed_on_backward_and_forward() -> None:
    fill = call("aten.masked_fill.Scalar", value("input"), value("output", inf=4))
    empty = call("aten.masked_fill.Scalar", value("input"), value("output"))
    forward = call("aten.add.Tensor", value("input", inf=4), value("output", inf=4))
    backward = call("aten.mm", value("input", inf=1), value("output", inf=1), phase="backward")
    assert origin_of(step(fill, forward, backward)) is None
    # A fill without an infinity is no mask.
    result = origin_of(step(empty, forward, backward))
    assert result is not None
    assert (result.op, result.is_made) == (forward, False)
    assert origin_of(step(empty, forward)) is None


def test_cast_blames_the_last_op_with_its_input() -> None:
    wide = {"largest": 9e4, "dtype": "float32"}
    product = call("aten.mm", value("output", **wide), layer="product")  # type: ignore[arg-type]
    again = call("aten.add", value("output", **wide), layer="again")  # type: ignore[arg-type]
    copy = call("aten.clone.default", value("output", **wide), layer="copy")  # type: ignore[arg-type]
    low = call("aten.neg", value("output", largest=9e4, dtype="bfloat16"), layer="low")
    given = value("output", inf=1)
    cast = call("aten._to_copy.default", value("input", **wide), given)  # type: ignore[arg-type]
    assert origin_of(step(product, again, copy, low, cast)) == Origin(
        call=cast, bad=[given], producer=again, is_made=True
    )
    alone = Origin(call=cast, bad=[given], is_made=True)
    assert origin_of(step(low, cast, product)) == alone
    bare = replace(cast, values=(replace(value("input"), statistics=None), given))
    assert origin_of(step(product, bare)) == replace(alone, call=bare)
    no_input = replace(cast, values=(given,))
    assert origin_of(step(product, no_input)) == replace(alone, call=no_input)


def parameter(name: str, *values: Value) -> Call:
    return replace(call(name, *values, phase="update"), kind="parameter")


def test_parameter_made_infinite_by_a_cast_is_named() -> None:
    wide = value("input", largest=9e4, dtype="float32")
    cast = call("aten._to_copy.default", wide, value("output", inf=1))
    weight = parameter("net.weight", value("parameter", largest=9e4, dtype="float32"))
    others = (
        parameter("net.small", value("parameter", largest=2.0)),
        parameter("net.shape", replace(value("parameter", largest=9e4), shape=(2, 5))),
        parameter("net.gradient", value("gradient", largest=9e4)),
    )
    result = origin_of(step(cast, *others, weight))
    assert result is not None
    assert (result.parameter, result.producer) == ("net.weight", None)
    result = origin_of(step(cast, *others))
    assert result is not None
    assert result.parameter == ""


def test_non_finite_parameter_is_the_origin_if_no_op_is() -> None:
    nan, infinite = value("gradient", nan=1), value("state", inf=1)
    weight = parameter("net.weight", value("parameter"), nan, infinite)
    result = origin_of(step(FINE, parameter("net.bias", value("parameter")), weight))
    assert result == Origin(call=weight, bad=[nan, infinite], is_made=False)
