"""The op that made the first non-finite value is named, and not one that only passed it on."""

from jumar.precision.overflow.origin import origin_of
from tests.precision.overflow.steps import call, step, value

FINE = call("aten.mul", value("input"), value("output", largest=3.0))


def test_an_op_that_makes_infinities_of_finite_inputs_is_the_origin() -> None:
    exp = call("aten.exp", value("input", largest=12.0), value("output", inf=2))
    later = call("aten.sum", value("input", inf=2), value("output", nan=1))
    origin = origin_of(step(FINE, exp, later))
    assert origin is not None
    assert origin.op is exp
    assert origin.is_made
    assert [each.name for each in origin.inputs] == ["0"]


def test_a_mask_that_comes_in_is_no_finding_unless_it_reaches_the_backward_pass() -> None:
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


def test_what_comes_in_bad_is_not_blamed_on_the_op_that_takes_it() -> None:
    first = call("aten.mul", value("input", nan=1), value("output", nan=1))
    origin = origin_of(step(FINE, first))
    assert origin is not None
    assert origin.op is first
    assert not origin.is_made


def test_a_cast_that_overflows_blames_what_computed_its_input() -> None:
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


def test_a_mask_of_infinities_is_no_finding_until_it_becomes_nan() -> None:
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
