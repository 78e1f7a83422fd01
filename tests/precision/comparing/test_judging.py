"""What is blamed of a step whose numbers differ by rounding, and what never is."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jumar.precision.comparing.compare import compare_dumps
from jumar.precision.comparing.explained import Operand, explained_error
from jumar.precision.comparing.observed import compare_statistics, compare_tensors
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


def test_a_layer_is_judged_by_its_ops_where_they_were_recorded() -> None:
    before = backward_of_a_layer("aten.mm.default")
    compared = compare_dumps(before, backward_of_a_layer("aten.mm.default", in_layer=0.35))
    assert not compared.offenders
    assert compared.flagged == 0
    faulty = backward_of_a_layer("aten.mm.default", in_layer=0.35, in_op=0.35)
    assert [each.name for each in compare_dumps(before, faulty).offenders] == [
        "block.dense: aten.mm.default backward"
    ]


def test_an_api_call_in_a_layer_is_named_before_it_and_need_not_be_all_of_it() -> None:
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


def test_the_reciprocal_of_a_narrow_channel_may_be_far_off() -> None:
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
def test_an_error_that_all_elements_have_alike_is_estimated_from_the_ends(tail: int) -> None:
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


def test_a_gradient_that_is_lost_is_named_however_noisy_the_step_is() -> None:
    before, noises = softmax_gradient(1, [0.0] * 5), [0.003, 0.01, 0.04, 0.15, 0.4]
    assert not compare_dumps(before, softmax_gradient(1, noises)).offenders
    (blamed,) = compare_dumps(before, softmax_gradient(0, noises)).offenders
    assert blamed.call.layer == "soft"


def test_what_a_layers_name_begins_with_says_nothing_of_its_gradients() -> None:
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


def test_an_update_that_is_wrong_beside_an_equal_gradient_is_named() -> None:
    comparison = compare_dumps(update_of_a_bias(1e-4, 3e-6), update_of_a_bias(1e-4, 3e-5))
    assert [each.pair.before.op for each in comparison.offenders] == ["conv.bias"]
