"""How an output follows its operands, by hand, for every family of ops."""

import math
from dataclasses import replace

import pytest

from jumar.precision.comparing.explained import Operand, coarser, explained_error
from jumar.precision.dumps.dump import Call, Kind, Phase, Role, Statistics, Value

UNIT = 2.0**-24


def taken(
    shape: tuple[int, ...],
    rms: float,
    peak: float = 1.0,
    *,
    mean: float | None = None,
    name: str = "0",
    role: Role = "input",
) -> Operand:
    numbers = Statistics(count=math.prod(shape), mean=mean)
    value = Value(role=role, name=name, dtype="float32", shape=shape, statistics=numbers)
    return Operand(value=value, error=0.0, roundoff=0.0, rms=rms, peak=peak)


def call(op: str, kind: Kind = "op", phase: Phase = "forward") -> Call:
    return Call(kind=kind, op=op, layer="net", number=0, phase=phase, values=())


def gains(
    op: str,
    operands: list[Operand],
    output: Operand,
    *,
    is_gradient: bool = False,
    kind: Kind = "op",
) -> tuple[list[float], float]:
    """The gain of each operand, and how many terms the sums of the op have."""
    one = call(op, kind)

    def error(changed: list[Operand]) -> float:
        return explained_error(one, changed, output, is_gradient=is_gradient)

    assert error(operands) == 0.0
    each = [
        error([replace(own, error=float(place == at)) for at, own in enumerate(operands)])
        for place in range(len(operands))
    ]
    rounded = error([replace(own, roundoff=UNIT) for own in operands]) / UNIT
    strongest = max(each)
    accumulated = (rounded - strongest - output.rms) / strongest
    return each, 2 * accumulated**2


def check(
    found: tuple[list[float], float], expected: list[float], terms: float | None = None
) -> None:
    assert found[0] == pytest.approx(expected)
    if terms is not None:
        assert found[1] == pytest.approx(terms)


SAME, VECTOR = taken((2, 3), 3.0), taken((4,), 5.0)


@pytest.mark.parametrize("op", ["aten.relu.default", "Functional.gelu", "aten.mul.Tensor"])
def test_other_ops_use_twice_the_output_rms_and_same_sized_operands_their_own(op: str) -> None:
    check(gains(op, [SAME, VECTOR], taken((2, 3), 7.0)), [17.0, 14.0], 1)


@pytest.mark.parametrize("op", ["aten.addmm.default", "Functional.linear", "MatMulV2"])
def test_product_error_grows_with_the_root_of_its_last_axis(op: str) -> None:
    bias, data, weight = taken((4,), 2.0), taken((6, 8), 3.0), taken((8, 4), 5.0)
    root = math.sqrt(8) * 15
    check(gains(op, [bias, data, weight], taken((6, 4), 7.0)), [2.0, root, root], 8)
    wide = taken((2, 6, 8), 3.0)
    check(gains(op, [wide, taken((4, 8), 5.0)], taken((2, 6, 4), 7.0)), [root, root], 8)
    alone = gains(op, [data, taken((8,), 5.0)], taken((6,), 7.0))
    check(alone, [14.0, 14.0], 1)


@pytest.mark.parametrize("op", ["aten.bmm.default", "aten.baddbmm.default", "Torch.einsum"])
def test_batched_product_contracts_the_last_axis_of_the_first_operand(op: str) -> None:
    root = math.sqrt(5) * 15
    both = [taken((2, 3, 5), 3.0), taken((2, 5, 7), 5.0)]
    check(gains(op, both, taken((2, 3, 7), 7.0)), [root, root], 5)


@pytest.mark.parametrize("op", ["aten.convolution.default", "Functional.conv2d", "conv1d"])
def test_convolution_sums_over_a_kernel(op: str) -> None:
    root = math.sqrt(27) * 15
    both = [taken((2, 3, 5, 5), 3.0), taken((4, 3, 3, 3), 5.0)]
    check(gains(op, both, taken((2, 4, 3, 3), 7.0)), [root, root], 27)


def test_sums_grow_with_the_root_of_their_terms_and_means_shrink_with_it() -> None:
    data, output = taken((4, 25), 3.0), taken((4,), 7.0)
    check(gains("aten.sum.dim_IntList", [data], output), [22.0], 25)
    check(gains("aten.mean.dim", [data], output), [7.6], 25)
    larger = taken((400,), 7.0)
    check(gains("aten.sum.default", [data], larger), [10.0], 0.25)
    check(gains("aten.mean.default", [data], larger), [10.0], 0.25)


@pytest.mark.parametrize("op", ["aten.add.Tensor", "sub", "__iadd__", "__radd__", "addcmul", "cat"])
def test_sum_of_two_combines_both_magnitudes(op: str) -> None:
    check(gains(op, [SAME, VECTOR], taken((2, 3), 7.0)), [10.0, 12.0], 1)


@pytest.mark.parametrize("op", ["aten._softmax.default", "exp", "sinh", "cosh"])
def test_exponential_multiplies_by_the_largest_exponent(op: str) -> None:
    operands = [taken((2, 3), 3.0, 4.0), taken((2, 3), 3.0, 0.5)]
    check(gains(op, operands, taken((2, 3), 7.0)), [28.0, 7.0], 1)


@pytest.mark.parametrize("op", ["log_softmax", "cross_entropy", "logsumexp", "log"])
def test_logarithm_has_twice_the_peak(op: str) -> None:
    check(gains(op, [taken((2, 3), 3.0, 4.0)], taken((2, 3), 7.0)), [15.0], 1)


NORMS = ["native_layer_norm", "batch_norm", "GroupNorm", "rms_norm"]


@pytest.mark.parametrize("op", NORMS)
def test_norm_sensitivity_grows_with_the_subtracted_mean(op: str) -> None:
    data, weight, bias = taken((8, 16), 5.0, mean=4.0), taken((16,), 2.0), taken((32,), 1.0)
    output = taken((8, 16), 7.0)
    check(gains(op, [data, weight, bias], output), [14 * 5 / 3, 9.0, 8.0], 8)
    check(gains(op, [replace(data, value=SAME.value), weight], output), [14.0, 9.0], 6 / 16)
    constant = taken((8, 16), 3.0, 12.0, mean=3.0)
    check(gains(op, [constant], output), [56.0], 128)
    # The output with the reciprocals of the deviations, whose peak is 9.
    reciprocal = taken((16,), 7.0, 9.0, name="2")
    check(gains(op, [data, weight], reciprocal), [14 * 45, 9.0], 8)
    check(gains(op, [data], reciprocal), [14 * 5 / 3], 128)
    check(gains(op, [data, weight], replace(reciprocal, value=output.value)), [14 * 5 / 3, 9.0])


def test_gradient_sums_over_broadcast_axes() -> None:
    incoming, other = taken((4, 25), 3.0), taken((4,), 5.0)
    for op in ("aten.relu.default", "aten.threshold_backward.default", "Functional.gelu"):
        result = gains(op, [incoming, other], taken((4,), 7.0), is_gradient=True)
        check(result, [29.0, 14.0], 25)
        larger = gains(op, [incoming, other], taken((200,), 7.0), is_gradient=True)
        check(larger, [17.0, 14.0], 1)


@pytest.mark.parametrize("op", ["addmm", "aten.bmm.default", "convolution", "conv_transpose2d"])
def test_gradients_of_a_product_are_products(op: str) -> None:
    incoming, data, weight = taken((6, 4), 2.0), taken((6, 8), 3.0), taken((4, 8), 5.0)
    operands = [incoming, data, weight, taken((4,), 9.0)]

    def gradient(*shape: int) -> tuple[list[float], float]:
        return gains(op, operands, taken(shape, 7.0), is_gradient=True)

    check(gradient(6, 8), [20.0, 20.0, 20.0, 0.0], 4)
    rows = math.sqrt(6) * 6
    check(gradient(4, 8), [rows, rows, rows, 0.0], 6)
    bias = math.sqrt(6) * 2
    check(gradient(4), [bias, bias, bias, 0.0], 6)
    check(gradient(5, 3), [20.0, 20.0, 20.0, 0.0], 4)  # of none: the largest
    check(gains(op, [incoming, data], taken((6, 8), 7.0), is_gradient=True), [16.0, 14.0], 1)
    square = [taken((8, 8), 2.0), taken((8, 8), 3.0), taken((8, 8), 5.0)]
    largest = math.sqrt(8) * 10
    check(gains(op, square, taken((8, 8), 7.0), is_gradient=True), [largest] * 3, 8)
    few = [taken((2,), 2.0), data, weight]
    check(gains(op, few, taken((4, 8), 7.0), is_gradient=True), [6.0] * 3, 0.5)


@pytest.mark.parametrize("op", NORMS)
def test_gradient_of_a_norm_is_divided_by_the_spread(op: str) -> None:
    incoming, data = taken((8, 16), 3.0), taken((8, 16), 5.0, 90.0, mean=4.0)
    weight, bias = taken((16,), 1.0, 6.0), taken((16,), 1.0, 2.0)
    operands = [incoming, data, weight, bias]

    def gradient(given: list[Operand], output: Operand) -> tuple[list[float], float]:
        return gains(op, given, output, is_gradient=True)

    check(gradient(operands, taken((8, 16), 1.0)), [12.0] * 4, 1)
    check(gradient(operands, taken((8, 16), 7.0)), [14.0] * 4, 1)
    check(gradient([incoming, data], taken((8, 16), 0.5)), [2.0] * 2, 1)
    check(gradient([incoming, weight], taken((8, 16), 7.0)), [28.0] * 2, 1)
    check(gradient(operands, taken((16,), 7.0)), [math.sqrt(8) * 3] * 4, 8)


def test_gradient_of_a_softmax_is_at_most_twice_the_incoming_one() -> None:
    incoming, op = taken((2, 3), 3.0), "aten._softmax_backward_data.default"
    soft = [taken((2, 3), 1.0, 0.25), taken((2, 3), 1.0, 0.5)]
    small, large = taken((2, 3), 1.0), taken((2, 3), 7.0)
    check(gains(op, [incoming, *soft], small, is_gradient=True), [3.0] * 3, 1)
    check(gains(op, [incoming, taken((2, 3), 1.0, 4.0)], small, is_gradient=True), [6.0] * 2)
    check(gains(op, [incoming], small, is_gradient=True), [6.0], 1)
    check(gains(op, [incoming, *soft], large, is_gradient=True), [7.0] * 3)


@pytest.mark.parametrize("op", ["log_softmax", "cross_entropy"])
def test_gradient_of_a_loss_grows_with_the_logits(op: str) -> None:
    incoming, output = taken((2, 3), 3.0, 99.0), taken((2, 3), 7.0)
    for peak, expected in ((4.0, 28.0), (0.5, 7.0)):
        logits = taken((2, 3), 1.0, peak)
        check(gains(op, [incoming, logits], output, is_gradient=True), [expected] * 2, 1)
    check(gains(op, [incoming], output, is_gradient=True), [7.0], 1)


def test_gradient_of_a_parameter_is_a_sum_over_all_its_uses() -> None:
    def gradient(
        operands: list[Operand], *shape: int, rms: float = 7.0
    ) -> tuple[list[float], float]:
        output = taken(shape, rms, role="gradient")
        return gains("net.weight", operands, output, kind="parameter")

    incoming, data = taken((6, 4), 2.0), taken((6, 8), 5.0)
    wide = math.sqrt(6) * 10
    check(gradient([incoming, taken((9,), 3.0), data], 4, 8), [wide] * 3, 6)
    check(gradient([incoming, taken((9,), 0.5)], 4, 8, rms=1.0), [wide / 5] * 2, 6)
    check(gradient([incoming], rms=1.0), [math.sqrt(24) * 2], 24)
    check(gradient([incoming], 48, rms=1.0), [2.0], 1)
    check(gradient([incoming], 24), [7.0], 1)


def test_update_error_is_the_root_of_a_small_gradient_error() -> None:
    output = taken((4,), 7.0, role="change")

    def explained(error: float, roundoff: float = 0.0) -> float:
        gradient = replace(taken((4,), 3.0, role="gradient"), error=error, roundoff=roundoff)
        parameter = call("net.weight", "parameter", "update")
        return explained_error(parameter, [gradient], output, is_gradient=False)

    assert explained(0.25) == pytest.approx(7 * 5 * 0.25)
    assert explained(1.0) == pytest.approx(7 * 4)
    assert explained(2.0) == pytest.approx(7 * 5 * 2)
    assert explained(0.0, 0.5) == pytest.approx(0.5 * 28, rel=1e-6)


def test_rounding_is_of_the_coarsest_dtype_and_sums_are_in_float32() -> None:
    data, output = taken((4, 50), 3.0), taken((4,), 7.0)
    sum_ = call("aten.sum.dim_IntList")
    strongest = math.sqrt(50) * 3 + 7

    def rounded(first: float, second: float) -> float:
        each = replace(data, roundoff=first), replace(output, roundoff=second)
        return explained_error(sum_, [each[0]], each[1], is_gradient=False)

    for first, second in ((2.0**-8, 0.0), (2.0**-24, 2.0**-8)):
        expected = 2.0**-8 * (strongest + 7) + 2.0**-24 * 5 * strongest
        assert rounded(first, second) == pytest.approx(expected, rel=1e-12)
    fine = 2.0**-53 * (strongest + 7 + 5 * strongest)
    assert rounded(2.0**-53, 0.0) == pytest.approx(fine, rel=1e-12)


@pytest.mark.parametrize("op", ["aten.ones.default", "batch_norm", "aten.sum.default"])
def test_without_operands_only_output_rounding_counts(op: str) -> None:
    output = replace(taken((4,), 7.0), roundoff=0.5)
    for is_gradient in (False, True):
        assert explained_error(call(op), [], output, is_gradient=is_gradient) == 3.5
    gradient = replace(taken((4,), 7.0, role="gradient"), roundoff=0.5)
    assert explained_error(call("w", "parameter"), [], gradient, is_gradient=False) == 3.5


def test_spread_is_the_deviation_from_the_mean() -> None:
    assert taken((2, 3, 4), 5.0, mean=-4.0).spread == 3.0
    assert taken((2,), 5.0).spread == 5.0
    assert taken((2,), 5.0, mean=math.inf).spread == 5.0
    assert taken((2,), 5.0, mean=5.5).spread == 0.0
    value = replace(SAME.value, statistics=None)
    assert replace(SAME, value=value).spread == 3.0
    assert taken((2, 3, 4), 5.0).count == 24


def test_coarser_of_two_dtypes_counts() -> None:
    wide, low = SAME.value, replace(SAME.value, dtype="bfloat16")
    assert (coarser(wide, low), coarser(low, wide), coarser(wide, wide)) == (2**-9, 2**-9, 2**-24)
