"""What is blamed of a step whose numbers differ by rounding, and what never is."""

import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from jumar.precision.comparing.compare import compare_dumps
from jumar.precision.comparing.comparison import Compared, Row
from jumar.precision.comparing.drift import Drift
from jumar.precision.comparing.explained import Operand, explained_error
from jumar.precision.comparing.judging import Judge, first_offenders, resolved_layers
from jumar.precision.comparing.observed import Difference, compare_statistics, compare_tensors
from jumar.precision.comparing.pairing import Pair
from jumar.precision.comparing.replay import Replayed
from jumar.precision.dumps.dump import Call, Dump, Kind, Phase, Role, Statistics, Value

Part = tuple[Role, str, torch.Tensor]


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def value(role: Role, name: str, tensor: torch.Tensor) -> Value:
    wide = tensor.double()
    return Value(
        role=role,
        name=name,
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        statistics=Statistics(
            count=wide.numel(),
            min=wide.min().item(),
            max=wide.max().item(),
            mean=wide.mean().item(),
            l2=wide.norm().item(),
        ),
    )


def call(op: str, layer: str, phase: Phase, kind: Kind, *parts: Part) -> Call:
    values = tuple(value(*part) for part in parts)
    return Call(kind=kind, op=op, layer=layer, number=0, phase=phase, values=values)


def dump(*calls: Call) -> Dump:
    return Dump(where=Path("memory"), tool="test", step=0, calls=calls)


def backward_of_a_layer(op: str, *, in_layer: float = 1.0, in_op: float = 1.0) -> Dump:
    """A layer, whose backward begins before that of the op in it, with gradients of some size."""
    gradient, weight = random(64, 32), random(32, 32, seed=1) / 6
    given = gradient @ weight
    return dump(
        call("aten.mm.default", "head", "backward", "op", ("output", "0", gradient)),
        call(
            *("Block", "block", "backward", "module"),
            *(("input", "0", gradient), ("output", "0", in_layer * given)),
        ),
        call(
            *(op, "block.dense", "backward", "op"),
            *(("input", "0", gradient), ("input", "1", weight), ("output", "0", in_op * given)),
        ),
    )


def test_layer_is_judged_by_its_recorded_ops() -> None:
    before = backward_of_a_layer("aten.mm.default")
    compared = compare_dumps(before, backward_of_a_layer("aten.mm.default", in_layer=0.35))
    assert not compared.offenders
    assert compared.flagged == 0
    faulty = backward_of_a_layer("aten.mm.default", in_layer=0.35, in_op=0.35)
    assert [each.name for each in compare_dumps(before, faulty).offenders] == [
        "block.dense: aten.mm.default backward"
    ]


def test_api_call_in_a_layer_is_named_before_the_layer() -> None:
    before = backward_of_a_layer("Functional.linear")
    only_layer = compare_dumps(before, backward_of_a_layer("Functional.linear", in_layer=0.35))
    assert [each.name for each in only_layer.offenders] == ["block: Block backward"]
    both = backward_of_a_layer("Functional.linear", in_layer=0.35, in_op=0.35)
    assert [each.name for each in compare_dumps(before, both).offenders] == [
        "block.dense: Functional.linear backward"
    ]


def batch_norm(x: torch.Tensor) -> Dump:
    """A batch norm of which one channel hardly varies."""
    mean, scale = x.float().mean(0), x.float().var(0, unbiased=False).add(1e-5).rsqrt()
    out = ((x.float() - mean) * scale).to(x.dtype)
    return dump(
        call(
            *("aten.native_batch_norm.default", "norm", "forward", "op"),
            *(("input", "0", x), ("input", "1", torch.ones(x.shape[1]))),
            *(("output", "0", out), ("output", "1", mean), ("output", "2", scale)),
        )
    )


def test_reciprocal_of_a_narrow_channel_tolerates_large_errors() -> None:
    x = random(8, 256) + random(256, seed=1)
    x[:, 7] = 1.0 + 0.004 * random(8, seed=3)
    before, after = batch_norm(x), batch_norm(x.bfloat16())
    compared = compare_dumps(before, after)
    (scale,) = [row for row in compared.calls[0].rows if row.value.name == "2"]
    assert scale.difference is not None
    assert scale.difference.lower > 0.02  # 5 times bfloat16's rounding
    assert not compared.offenders
    (blamed,) = compare_dumps(before, batch_norm(x * (1 + 0.3 * random(8, 256, seed=2)))).offenders
    assert blamed.call.layer == "norm"


@pytest.mark.parametrize("tail", [1, 3])
def test_uniform_error_is_estimated_from_the_extremes(tail: int) -> None:
    """Elements of a power of normal numbers: the largest are 4 and 60 times the usual one."""
    for seed in range(20):
        first = random(4096, seed=seed) ** tail
        second = first + 0.01 * first.pow(2).mean().sqrt() * random(4096, seed=100 + seed)
        seen = compare_statistics(value("output", "0", first), value("output", "0", second))
        assert seen is not None
        exact = compare_tensors(first, second).lower
        assert seen.lower <= exact
        assert exact / 5 < seen.upper < exact * 5


def softmax_gradient(factor: float, noises: list[float]) -> Dump:
    """The gradient of a softmax, behind ops that make a step noisier one after the other."""
    incoming, soft = random(64, 16), random(64, 16, seed=1).softmax(-1)
    given = soft * (incoming - (soft * incoming).sum(-1, keepdim=True))

    def noisy(tensor: torch.Tensor, number: int) -> torch.Tensor:
        return tensor * (1 + noises[number] * random(64, 16, seed=10 + number))

    dtype = torch.bfloat16 if noises[0] else torch.float32
    chain = [noisy(incoming, number).to(dtype) for number in range(len(noises) - 1)]
    lost = (factor * noisy(given, -1)).to(dtype)
    return dump(
        *(
            call(
                *("aten.mul.Tensor", f"next.{number}", "backward", "op"),
                *(("input", "0", chain[max(number - 1, 0)]), ("output", "0", each)),
            )
            for number, each in enumerate(chain)
        ),
        call(
            *("aten._softmax_backward_data.default", "soft", "backward", "op"),
            *(("input", "0", chain[-1]), ("input", "1", soft), ("output", "0", lost)),
        ),
    )


def test_lost_gradient_is_named_even_in_a_noisy_step() -> None:
    before, noises = softmax_gradient(1, [0.0] * 5), [0.003, 0.01, 0.04, 0.15, 0.4]
    assert not compare_dumps(before, softmax_gradient(1, noises)).offenders
    (blamed,) = compare_dumps(before, softmax_gradient(0, noises)).offenders
    assert blamed.call.layer == "soft"


def test_layer_name_prefix_does_not_imply_its_gradients() -> None:
    def explained(op: str) -> float:
        operands = [
            Operand(value=value("input", "0", each), error=0.01, roundoff=0.0, rms=1.0, peak=4.0)
            for each in (random(4, 64, 8, 8), random(4, 32, 8, 8), random(64, 32, 3, 3))
        ]
        output = Operand(
            value=value("output", "0", random(4, 32, 8, 8)),
            error=0.0,
            roundoff=0.0,
            rms=30.0,
            peak=90.0,
        )
        layer = call(op, "block", "backward", "module")
        return explained_error(layer, operands, output, is_gradient=True)

    assert explained("ConvNorm") == explained("Bottleneck") != explained("Conv2d")
    assert explained("Conv2d") == explained("aten.convolution_backward.default")
    assert explained("LayerNorm") == explained("aten.native_layer_norm_backward.default")


def masked_scores(fault: str = "") -> Dump:
    """Scores of which a mask fills in minus infinity."""
    scores, mask = random(8, 16), torch.zeros(8, 16, dtype=torch.bool)
    mask[:, 12:] = True
    out = scores.masked_fill(mask, -torch.inf)
    if fault == "scaled":
        out = out * 1.1
    if fault == "masked too much":
        out[3, 5] = -torch.inf
    tensors = {"0": scores, "1": mask, "out": out}

    def with_tensor(role: Role, name: str, key: str) -> Value:
        numbers = value(role, name, tensors[key].double().nan_to_num(0, 0, 0))
        dtype = str(tensors[key].dtype).removeprefix("torch.")
        return replace(numbers, dtype=dtype, tensor=key)

    filled = replace(
        call("aten.masked_fill.Scalar", "scores", "forward", "op"),
        values=(
            with_tensor("input", "0", "0"),
            with_tensor("input", "1", "1"),
            with_tensor("output", "0", "out"),
        ),
        arguments={"2": "-inf"},
    )
    return replace(dump(filled), tensors=Memory(tensors))


class Memory(dict[str, torch.Tensor]):
    def read(self, name: str) -> torch.Tensor:
        return self[name]


@pytest.mark.parametrize(("fault", "added"), [("scaled", 0.1), ("masked too much", math.inf)])
def test_infinities_of_a_mask_hide_no_fault(fault: str, added: float) -> None:
    assert not compare_dumps(masked_scores(), masked_scores()).offenders
    (blamed,) = compare_dumps(masked_scores(), masked_scores(fault)).offenders
    assert blamed.added == pytest.approx(added, rel=0.2)


def update_of_a_bias(gradient: float, change: float) -> Dump:
    """A bias before a norm, whose gradient is what rounding left of zero."""
    noise = random(8) * gradient
    return dump(
        call("aten.mm.default", "head", "forward", "op", ("output", "0", random(8, 8))),
        call(
            *("conv.bias", "conv", "update", "parameter"),
            *(("parameter", "0", random(8, seed=3)), ("gradient", "0", noise)),
            *(("state", "momentum_buffer", 0.9 * noise), ("change", "0", random(8) * change)),
        ),
    )


def test_wrong_update_with_an_equal_gradient_is_named() -> None:
    comparison = compare_dumps(update_of_a_bias(1e-4, 3e-6), update_of_a_bias(1e-4, 3e-5))
    assert [each.pair.before.op for each in comparison.offenders] == ["conv.bias"]


UNIT = 2.0**-24
OWN = (3 + 1 + 3 * math.sqrt(1 / 2)) * UNIT
"""What rounding explains of an output of float32 as large as its operand, whose gain is 3."""


def apart(error: float, *, rms: float = 1.0, upper: float = -1.0, **fields: Any) -> Difference:
    upper = error if upper < 0 else upper
    return Difference(lower=error, upper=upper, rms=rms, peak=1.0, is_exact=error == 0, **fields)


def row(
    role: Role,
    difference: Difference | None,
    name: str = "0",
    *shape: int,
    dtype: str = "float32",
    numbers: tuple[Statistics | None, Statistics | None] = (None, None),
) -> Row:
    plain = Value(role=role, name=name, dtype=dtype, shape=shape or (2, 3))
    first, second = (replace(plain, statistics=each) for each in numbers)
    return Row(value=first, partner=second, difference=difference)


def judged(
    judge: Judge,
    *rows: Row,
    op: str = "aten.relu.default",
    layer: str = "net",
    phase: Phase = "forward",
    kind: Kind = "op",
    replayed: Replayed | None = None,
    baseline: Mapping[tuple[str, str], float] | None = None,
    arguments: tuple[dict[str, str], dict[str, str]] = ({}, {}),
    number: int = 0,
) -> Compared:
    before = Call(kind=kind, op=op, layer=layer, number=number, phase=phase, values=())
    pair = Pair(replace(before, arguments=arguments[0]), replace(before, arguments=arguments[1]))
    return judge.judge(5, pair, rows, replayed, baseline or {})


SAME = apart(0.0)


def test_error_up_to_three_times_the_explained_one_agrees() -> None:
    for factor, verdict in ((2.99, "agrees"), (3.01, "offender")):
        result = judged(
            Judge(), row("input", SAME), row("output", apart(factor * OWN)), row("output", SAME)
        )
        assert result.ratio == pytest.approx(factor, rel=1e-6)
        assert (result.verdict, result.position, result.name) == (
            verdict,
            5,
            "net: aten.relu.default forward",
        )
        assert [each.verdict for each in result.rows] == ["agrees", verdict, "agrees"]
        assert [each.ratio for each in result.rows] == [None, pytest.approx(factor), 0.0]
        assert (result.added, result.inherited, result.baseline) == (None, None, None)
    assert result.reason == "its operands agree, but its output does not"


def test_rounding_is_of_the_coarser_dtype_of_both_sides() -> None:
    operand = replace(row("input", SAME), partner=row("input", SAME, dtype="bfloat16").partner)
    result = judged(Judge(), operand, row("output", apart(0.01)))
    assert result.ratio == pytest.approx(0.01 / (4 * 2.0**-9), rel=1e-4)


def test_first_difference_is_blamed_and_later_ones_inherit() -> None:
    judge = Judge()
    wrong = row("input", apart(1e-3), "x"), row("parameter", apart(2e-3), "w")
    result = judged(judge, *wrong, row("input", SAME, "y"), row("output", apart(2e-3)))
    assert result.verdict == "offender"
    assert result.reason == "input x, parameter w already differs, but no earlier value does"
    assert [each.verdict for each in result.rows] == ["offender", "offender", "agrees", "inherited"]
    # Gains of 3: an error of 1e-3 explains one of 3e-3, three times of which are accepted.
    for error, ratio in ((8.9e-3, 8.9 / 3), (9.1e-3, 9.1 / 3)):
        later = judged(judge, row("input", apart(1e-3)), row("output", apart(error)))
        assert (later.verdict, later.reason) == ("inherited", "")
        assert later.ratio == pytest.approx(ratio, rel=1e-3)


def test_operand_differs_from_ten_times_the_usual_error() -> None:
    for factor, reason in ((9.9, False), (10.1, True)):
        result = judged(Judge(), row("input", apart(factor * UNIT)), row("output", SAME))
        assert bool(result.reason) is reason
    judge = Judge()
    judge.note_rounding(2.0**-10)
    judge.note_rounding(2.0**-12)
    for factor, reason in ((9.9, False), (10.1, True)):
        result = judged(judge, row("input", apart(factor * 2.0**-10)), row("output", SAME))
        assert bool(result.reason) is reason


def test_usual_error_is_the_90th_percentile_of_the_phase_or_the_forward_pass() -> None:
    judge = Judge()
    for number in range(20):
        error = (number + 1) * 0.1 * OWN
        operand = row("input", apart(1e-9 * (number + 1)))
        judged(judge, operand, row("output", apart(error)))
    usual = 19 * 0.1 * OWN
    assert judge._level("forward") == judge._level("backward") == pytest.approx(usual)
    judged(judge, row("input", SAME), row("output", apart(0.7 * OWN)), phase="backward")
    assert judge._level("backward") == pytest.approx(0.7 * OWN)
    assert judge._level("forward") == pytest.approx(usual)
    large = row("output", apart(10 * OWN))
    # An operand known by statistics has the usual error at least: 3 times that is explained.
    for operand, explained in (
        (row("input", apart(1e-9, upper=1.1e-9)), 3 * usual + OWN),
        (row("input", apart(1e-9)), max(3e-9 + OWN, usual)),
        # Of an operand without numbers the output's size alone is known.
        (row("input", None), 2 * usual + (3 + 2 * math.sqrt(1 / 2)) * UNIT),
    ):
        result = judged(deepcopy(judge), operand, large)
        assert result.ratio == pytest.approx(10 * OWN / explained, rel=1e-4)
    # Without any operand it stands for itself.
    alone = judged(deepcopy(judge), large)
    assert alone.ratio == pytest.approx(10 * OWN / (3 * usual + OWN), rel=1e-4)


def test_usual_error_uses_only_agreeing_float_errors() -> None:
    judge = Judge()
    judged(judge, row("input", SAME), row("output", apart(1e-3)))
    judged(judge, row("input", SAME), row("output", apart(1e-9), dtype="int64"))
    judged(judge, row("input", SAME), row("output", apart(1e-9, upper=1.0)))
    assert judge._level("forward") == 0.0
    judged(judge, row("input", SAME), row("output", apart(1e-9, upper=0.99)))
    assert judge._level("forward") == 0.99


def test_replay_takes_precedence_over_estimates() -> None:
    def with_replay(judge: Judge, ratio: float, **fields: Any) -> Compared:
        message = Replayed(ratios={"0": ratio}, added=0.1, inherited=0.2, **fields)
        operand = row("input", apart(fields.pop("given", 0.0)))
        return judged(judge, operand, row("output", apart(0.5)), replayed=message)

    result = with_replay(Judge(), 2.0)
    # By estimate, with healthy operands, the error is not explained.
    assert (result.verdict, result.ratio, result.reason) == ("inherited", 2.0, "")
    assert (result.added, result.inherited) == (0.1, 0.2)
    blamed = with_replay(Judge(), 4.0, is_blamed=True)
    assert blamed.reason == "its operands agree, but its output does not"
    of_reference = with_replay(Judge(), 4.0, is_blamed=True, is_reference_blamed=True)
    assert of_reference.reason == (
        "its operands agree, but the reference's output does not follow from them"
    )
    judge = Judge()
    judged(judge, row("input", SAME), row("output", apart(0.5)))
    wrong, output = row("input", apart(0.3)), row("output", apart(0.5))
    for is_blamed in (False, True):
        printed = Replayed(ratios={"0": 4.0}, added=0.1, inherited=0.2, is_blamed=is_blamed)
        result = judged(judge, wrong, output, replayed=printed)
        assert (result.verdict == "offender") is is_blamed
        assert [each.verdict for each in result.rows][1] == result.verdict


def test_deviations_shared_with_the_baseline_are_explained() -> None:
    output = row("output", apart(0.5, rms=2.0))
    for error, verdict in ((0.17, "agrees"), (0.16, "offender")):
        result = judged(
            Judge(), row("input", SAME), output, baseline={("output", "0"): error, ("x", "y"): 0.0}
        )
        assert (result.verdict, result.baseline) == (verdict, error)
        assert result.ratio == pytest.approx(0.5 / error)
        message = Replayed(ratios={"0": 40.0}, added=0.1, inherited=0.2, is_blamed=True)
        replayed = judged(
            Judge(),
            *(row("input", SAME), output),
            baseline={("output", "0"): error},
            replayed=message,
        )
        assert replayed.ratio == pytest.approx(0.5 / error)


def test_all_zero_reference_uses_the_largest_absolute_error() -> None:
    zero = {"rms": 0.0, "upper": math.inf}
    result = judged(
        Judge(), row("input", SAME), row("output", apart(math.inf, largest=1e-6, **zero))
    )
    # A gain of 1, that of the operand: the output has none.
    explained = (1 + math.sqrt(1 / 2)) * UNIT
    assert result.ratio == pytest.approx(1e-6 / explained, rel=1e-4)
    for fields in ({"remark": "NaN in one", "largest": 1e-6}, {}):
        result = judged(
            Judge(), row("input", SAME), row("output", apart(math.inf, **zero, **fields))
        )
        assert result.ratio == math.inf
    assert result.verdict == "offender"


def test_infinite_operand_error_counts_if_it_has_a_remark() -> None:
    for remark, reason in (("", False), ("NaN in one", True)):
        operand = row("input", apart(math.inf, rms=0.0, remark=remark))
        result = judged(Judge(), operand, row("output", SAME))
        assert bool(result.reason) is reason


def test_offender_is_reported_with_argument_remark_or_difference() -> None:
    def reason(one: dict[str, str], two: dict[str, str], remark: str = "") -> str:
        output = row("output", apart(0.5, remark=remark))
        return judged(Judge(), row("input", SAME), output, arguments=(one, two)).reason

    assert reason({"dim": "0", "p": "1", "q": "2"}, {"dim": "1", "p": "3", "q": "2", "r": "4"}) == (
        "its argument dim is 0 and 1; p is 1 and 3"
    )
    assert reason({"q": "2"}, {"q": "2", "r": "4"}, "odd") == "odd"
    assert reason({"q": "2"}, {"q": "2"}) == "its operands agree, but its output does not"


def test_layer_has_the_drift_of_its_parameters() -> None:
    drift = Drift(layers={"net": 0.01}, parameters={("net", (2, 3)): 0.02})
    for kind, error, verdict in (
        ("module", 0.029, "agrees"),
        ("module", 0.031, "offender"),
        ("op", 0.029, "offender"),
    ):
        result = judged(
            Judge(drift=drift),
            *(row("input", SAME), row("output", apart(error))),
            kind=kind,  # type: ignore[arg-type]
        )
        assert result.verdict == verdict
    for error, shape, reason in (
        (0.0099, (2, 3), False),
        (0.0101, (2, 3), True),
        (0.001, (6,), True),
    ):
        operand = row("input", apart(error, rms=2.0), "0", *shape)
        result = judged(Judge(drift=drift), operand, row("output", SAME))
        assert bool(result.reason) is reason


def test_layer_with_recorded_ops_is_never_an_offender() -> None:
    calls = [
        Call(kind="op", op=op, layer=layer, number=0, phase=phase, values=())
        for op, layer, phase in (
            ("aten.mm", "a.b", "forward"),
            ("aten.mm", "c", "backward"),
            ("Functional.linear", "d", "forward"),
        )
    ]
    phases = {("", "forward"), ("a", "forward"), ("a.b", "forward")}
    resolved = resolved_layers(calls)  # type: ignore[arg-type]
    assert resolved == phases | {("", "backward"), ("c", "backward")}
    output = row("output", apart(0.5))
    for layer, phase, kind, verdict in (
        ("a", "forward", "module", "inherited"),
        ("a", "backward", "module", "offender"),
        ("d", "forward", "module", "offender"),
        ("a", "forward", "op", "offender"),
    ):
        judge = Judge(resolved=resolved)
        result = judged(judge, output, layer=layer, phase=phase, kind=kind)  # type: ignore[arg-type]
        assert result.verdict == verdict, (layer, phase, kind)
        arrives = judged(judge, row("input", apart(0.3)), row("output", SAME))
        # A layer whose ops are judged is no disagreement before.
        assert bool(arrives.reason) is (verdict == "inherited")


def test_gradients_of_a_function_depend_on_its_forward_call() -> None:
    judge = Judge()
    forward = (row("input", apart(1e-3), "x"), row("output", apart(3e-3)))
    judged(judge, *forward, op="Functional.gelu", number=2)
    backward = (row("input", SAME), row("output", apart(6e-3)))
    plain = {"phase": "backward", "op": "Functional.gelu"}
    result = judged(judge, *backward, number=2, **plain)  # type: ignore[arg-type]
    # Twice the output's size for each of what was saved, as often as the error of each.
    assert result.ratio == pytest.approx(6e-3 / (2e-3 + 6e-3), rel=1e-3)
    assert result.verdict == "inherited"
    for other in ({"number": 1}, {"number": 2, "layer": "other"}):
        alone = judged(judge, *backward, **plain | other)  # type: ignore[arg-type]
        assert alone.ratio > 1000
    aten = judged(judge, *backward, op="aten.gelu_backward.default", phase="backward", number=2)
    assert aten.ratio > 1000


def test_parameters_gradient_depends_on_the_strongest_incoming_one_and_the_data() -> None:
    judge = Judge()
    judged(judge, row("input", apart(2e-3), "x", 6, 4), row("output", SAME))
    weak = row("input", apart(0.5, rms=1.0), "g", 6, 4)
    strong = row("input", apart(4e-3, rms=1.0), "g", 6, 5)
    for incoming in (weak, strong):
        judged(judge, incoming, row("output", SAME), phase="backward")
    gradient = row("gradient", apart(0.01), "w", 4, 8)
    plain: dict[str, Any] = {"kind": "parameter", "phase": "update", "op": "net.w"}
    result = judged(judge, gradient, **plain)
    gain = math.sqrt(30 / 4)
    assert result.ratio == pytest.approx(0.01 / (gain * 6e-3), rel=1e-3)
    elsewhere = judged(judge, gradient, layer="other", **plain)
    assert elsewhere.verdict == "offender"


def test_update_depends_on_gradient_and_parameter() -> None:
    gradient, parameter = row("gradient", apart(0.25), "g"), row("parameter", apart(0.01), "p")
    plain: dict[str, Any] = {"kind": "parameter", "phase": "update", "op": "net.w"}
    result = judged(Judge(), gradient, parameter, row("change", apart(0.5)), **plain)
    change = result.rows[2].ratio
    # Each error times 1 + 2 / sqrt(error).
    assert change == pytest.approx(0.5 / (5 * 0.25 + 21 * 0.01), rel=1e-3)
    for role in ("state", "change"):
        noise = row("gradient", apart(1.0), "g")
        lost = judged(Judge(), noise, row(role, apart(0.9)), **plain)
        assert lost.rows[1].ratio == 0.0
        nearly = judged(Judge(), row("gradient", apart(0.99), "g"), row(role, apart(0.9)), **plain)
        assert nearly.rows[1].ratio is not None
        assert nearly.rows[1].ratio > 0
        remarked = row("gradient", apart(1.0, remark="odd"), "g")
        assert judged(Judge(), remarked, row(role, apart(0.9)), **plain).rows[1].ratio != 0.0


def test_gradient_is_judged_with_the_op_that_produced_it() -> None:
    judge = Judge()
    healthy = apart(2 * OWN)
    judged(judge, row("input", SAME), row("output", healthy), phase="backward")
    plain: dict[str, Any] = {"kind": "parameter", "phase": "update", "op": "net.w"}
    seen = judged(judge, row("gradient", healthy), layer="far", **plain)
    assert (seen.ratio, seen.verdict) == (0.0, "agrees")
    other = judged(judge, row("gradient", replace(healthy, peak=2.0)), layer="far", **plain)
    assert other.ratio > 0
    taken = judged(judge, row("input", apart(0.5)), row("output", SAME))
    assert taken.reason


def numbers(l2: float, largest: float) -> Statistics:
    return Statistics(count=6, min=0.0, max=largest, mean=0.0, l2=l2)


def test_values_that_became_zero_are_not_explained_by_noise() -> None:
    judge = Judge()
    judged(judge, row("input", SAME), row("output", apart(1e-9, upper=0.9)))
    zeros = numbers(0.0, 0.0)
    lost = row("output", apart(1.0), numbers=(numbers(1.0, 1.0), zeros))
    operand = row("input", apart(0.9))
    for output, least in (
        (lost, 1000.0),
        (row("output", apart(1.0), numbers=(numbers(1.0, 1.0), numbers(0.0, 1.0))), 0.0),
        (row("output", apart(1.0), numbers=(zeros, zeros)), 0.0),
        (row("output", apart(1.0), numbers=(numbers(1.0, 1.0), None)), 0.0),
    ):
        result = judged(judge, operand, output)
        assert (result.ratio > 1000) is (least > 0)
    both = row("input", apart(0.9), numbers=(numbers(1.0, 1.0), zeros))
    assert judged(judge, both, lost).ratio < 3


def test_vector_gradient_is_measured_by_the_layers_largest() -> None:
    small, large = apart(1.0, rms=1e-3), apart(0.0, rms=2.0)
    for op, phase, shape, ratio in (
        ("Functional.gelu", "backward", (4,), 1e-3 / 0.02),
        ("aten.gelu_backward.default", "backward", (4,), 1e-3 / 0.02),
        ("aten.mul.Tensor", "backward", (4,), 0.0),
        ("Functional.gelu", "backward", (2, 2), 0.0),
        ("Functional.gelu", "forward", (4,), 0.0),
    ):
        judge = Judge()
        judged(judge, row("input", SAME), row("output", apart(1e-9, upper=0.01)))
        result = judged(
            judge,
            *(row("input", apart(0.0, rms=1e-9)), row("output", small, "0", *shape)),
            row("output", large, "1"),
            op=op,
            phase=phase,  # type: ignore[arg-type]
        )
        first = result.rows[1].ratio
        assert first is not None
        assert first == pytest.approx(ratio) if ratio else first > 1


def compared_call(
    op: str, layer: str, phase: Phase = "forward", kind: Kind = "op", verdict: str = "offender"
) -> Compared:
    one = Call(kind=kind, op=op, layer=layer, number=0, phase=phase, values=())
    return Compared(
        pair=Pair(one, one),
        position=0,
        rows=(),
        ratio=0.0,
        verdict=verdict,  # type: ignore[arg-type]
    )


def first_of(*calls: Compared) -> list[str]:
    return [f"{each.call.layer} {each.call.phase}" for each in first_offenders(calls)]


def test_layer_that_only_contains_an_offender_is_not_one() -> None:
    op = compared_call("aten.mm", "a.b")
    outer, inner = (compared_call("Block", layer, kind="module") for layer in ("a", "a.b"))
    assert first_of(op, inner, outer) == first_of(outer, op) == ["a.b forward"]
    assert first_of(outer, inner) == ["a.b forward"]
    assert first_of(outer) == ["a forward"]
    agrees = compared_call("aten.mm", "a.b", verdict="inherited")
    assert first_of(agrees, outer) == ["a forward"]
    whole = compared_call("Net", "", kind="module")
    assert first_of(whole, op) == ["a.b forward"]
    other = compared_call("aten.mm", "ab")
    assert first_of(other, outer) == ["ab forward", "a forward"]
    later = compared_call("aten.mm", "a.b", "backward")
    assert first_of(outer, later) == ["a forward", "a.b backward"]
    # An op contains nothing, and two layers of one path are two.
    assert first_of(op, compared_call("aten.add", "a")) == ["a.b forward", "a forward"]


def test_parameter_with_a_blamed_backward_is_not_an_offender() -> None:
    parameter = compared_call("a.b.w", "a.b", "update", "parameter")
    assert first_of(compared_call("aten.mm", "a.b", "backward"), parameter) == ["a.b backward"]
    assert first_of(compared_call("aten.mm", "a.b"), parameter) == ["a.b forward", "a.b update"]
    twin = replace(parameter, pair=Pair(*[replace(parameter.call, op="a.b.v")] * 2))
    assert first_of(parameter, twin) == ["a.b update"]


def test_gradients_of_a_blamed_forward_call_are_not_named_again() -> None:
    forward = compared_call("Functional.linear", "a")
    assert first_of(forward, compared_call("Functional.linear", "a", "backward")) == ["a forward"]
    for other in (
        compared_call("Functional.linear", "b", "backward"),
        compared_call("Functional.gelu", "a", "backward"),
        compared_call("Functional.linear", "a"),
    ):
        assert len(first_of(forward, other)) == 2
