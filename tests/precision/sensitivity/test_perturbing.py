"""Which calls get noise, by their numbers, and what noise they get."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from jumar.precision.sensitivity.measuring import (
    NoiseSettings,
    _groups,
    _moved,
    _norm,
    _Result,
    parameter_passes,
    sensitivity,
)
from jumar.precision.sensitivity.perturbing import NoisyOps, OpCall
from jumar.precision.sensitivity.rounding import add_noise


def noisy(
    run: Callable[[], Any],
    is_chosen: Callable[[OpCall], bool] = lambda call: False,
    modules: dict[str, nn.Module] | None = None,
    dtype: torch.dtype = torch.float16,
) -> tuple[Any, list[tuple[OpCall, int]]]:
    ops = NoisyOps(modules, dtype=dtype, seed=7, is_chosen=is_chosen)
    with ops:
        result = run()
    return result, ops.calls


def test_ops_that_compute_are_numbered_within_layer_op_and_phase() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4))
    values = torch.ones(2, 3)

    def run() -> None:
        hidden = net[1](net[0](values).view(2, 4)) * 2 * 3
        index = torch.arange(3).add(1)
        hidden.float().clone().sum().backward()
        del index

    _, calls = noisy(run, modules={"first": net[0], "second": net[1]})
    backward: Any = "backward"
    assert calls[:5] == [
        (OpCall("first", "aten.addmm.default", "forward", 0), 8),
        (OpCall("second", "aten.addmm.default", "forward", 0), 8),
        (OpCall("", "aten.mul.Tensor", "forward", 0), 8),
        (OpCall("", "aten.mul.Tensor", "forward", 1), 8),
        (OpCall("", "aten.sum.default", "forward", 0), 1),
    ]
    later = [call for call, _ in calls[5:]]
    assert all(call.phase == "backward" for call in later)
    products = [(call.layer, call.number) for call in later if call.op == "aten.mm.default"]
    assert products == [("second", 0), ("second", 1), ("first", 0)]
    assert OpCall("", "aten.mul.Tensor", backward, 1) in later


def test_noise_of_a_call_depends_only_on_seed_layer_op_and_number() -> None:
    values = torch.linspace(1, 3, 50)
    chosen = OpCall("", "aten.mul.Tensor", "forward", 1)

    def run() -> list[Tensor]:
        return [values * 2, values * 3, values * 4]

    result, _ = noisy(run, lambda call: call == chosen)
    expected = values * 3
    key = repr((7, ("", "aten.mul.Tensor", "forward", 1), 0)).encode()
    seed = int.from_bytes(hashlib.sha256(key).digest()[:7], "big")
    add_noise(expected, torch.float16, torch.Generator().manual_seed(seed))
    assert torch.equal(result[0], values * 2)
    assert torch.equal(result[1], expected)
    assert not torch.equal(result[1], values * 3)
    assert torch.equal(result[2], values * 4)


def test_noise_is_added_to_the_first_forward_output_and_all_backward_outputs() -> None:
    values = torch.randn(4, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()
    weight = torch.full((8,), 2.0, requires_grad=True)

    def run() -> tuple[Tensor, ...]:
        outputs = torch.ops.aten.native_layer_norm(values, [8], weight, None, 1e-5)
        outputs[0].square().sum().backward()
        assert values.grad is not None
        assert weight.grad is not None
        gradients = values.grad, weight.grad
        values.grad = weight.grad = None
        return *(each.detach().clone() for each in outputs), *gradients

    exact, calls = noisy(run)
    sizes = {call.op: elements for call, elements in calls}
    assert sizes["aten.native_layer_norm.default"] == 32
    assert sizes["aten.native_layer_norm_backward.default"] == 40

    def changed(op: str) -> list[bool]:
        result, _ = noisy(run, lambda call: call.op == op)
        return [not torch.equal(*pair) for pair in zip(exact, result, strict=True)]

    assert changed("aten.native_layer_norm.default")[:3] == [True, False, False]
    assert changed("aten.native_layer_norm_backward.default") == [False, False, False, True, True]


@pytest.mark.parametrize(
    "exact",
    [
        lambda values: values.double(),
        lambda values: values.clone(),
        lambda values: values.masked_fill(values > 1, 0.0),
        lambda values: torch.full((3,), 2.0),
        lambda values: torch.ones(3),
        lambda values: torch.zeros(3),
        torch.zeros_like,
        lambda values: values.new_zeros(3),
        lambda values: torch.arange(3.0),
        lambda values: torch.eye(3),
        lambda values: torch.rand(3),
        lambda values: torch.empty(3).uniform_(),
        lambda values: torch.empty(3).normal_(),
        lambda values: torch.empty(3).bernoulli_(0.5),
        lambda values: values.argmax(),
        lambda values: values[:0] * 2,
        lambda values: values.view(3, 1).t(),
    ],
)
def test_ops_without_rounding_error_are_skipped(exact: Callable[[Tensor], Tensor]) -> None:
    values = torch.tensor([1.0, 2.0, 3.0])
    assert noisy(lambda: exact(values))[1] == []


def test_context_leaves_no_hooks_or_modes_behind() -> None:
    net = nn.Linear(2, 2)
    ops = NoisyOps(None, dtype=torch.float16, seed=0, is_chosen=lambda call: True)
    for _ in range(2):
        with ops:
            net(torch.ones(1, 2))
    assert [(call.layer, call.number) for call, _ in ops.calls] == [("", 0), ("", 1)]
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
    assert not torch.nn.modules.module._global_forward_hooks
    assert not torch.nn.modules.module._global_forward_pre_hooks
    net(torch.ones(1, 2))
    assert len(ops.calls) == 2


CALLS: list[tuple[OpCall, int]] = [
    (OpCall("a", "mm", "forward", 0), 1),
    (OpCall("a", "mm", "forward", 1), 2),
    (OpCall("a", "add", "forward", 0), 4),
    (OpCall("b", "mm", "forward", 0), 8),
    (OpCall("a", "mm", "backward", 0), 16),
]


@pytest.mark.parametrize(
    ("by", "sums"),
    [
        ("call", [[1], [2], [4], [8], [16]]),
        ("group", [[1, 2], [4], [8], [16]]),
        ("layer", [[1, 2, 4], [8], [16]]),
        ("op", [[1, 2, 8], [4], [16]]),
    ],
)
def test_calls_are_perturbed_together_per_requested_unit(by: Any, sums: list[list[int]]) -> None:
    def sizes(settings: NoiseSettings) -> list[list[int]]:
        return [[size for _, size in group] for group in _groups(CALLS, settings)]

    assert sizes(NoiseSettings(by=by)) == sums
    assert sizes(NoiseSettings(by=by, backward=False)) == sums[:-1]


def result(loss: float, *gradients: list[float] | None) -> _Result:
    tensors = [None if each is None else torch.tensor(each) for each in gradients]
    return _Result(torch.tensor(loss), tensors, [])


def test_passes_are_compared_by_loss_and_all_gradients() -> None:
    reference = result(-2.0, [3.0, 0.0], None, [4.0])
    assert reference.norm == 5.0
    moved = result(-2.5, [3.0, 1.0], [9.0], [4.0])
    assert moved.change_from(reference) == (0.25, 0.2)
    assert result(0.5, [3.0, 0.0]).change_from(result(0.0, [3.0, 4.0])) == (0.5, 0.8)
    assert _norm([torch.tensor([1.0, float("nan")]), torch.tensor(1.0)]) == float("inf")
    row = _moved(CALLS[:2], "group", moved, reference)
    assert (row.layer, row.op, row.phase, row.number) == ("a", "mm", "forward", None)
    assert (row.calls, row.elements, row.loss, row.gradient) == (2, 3, 0.25, 0.2)
    named = {by: _moved(CALLS[1:2], by, moved, reference) for by in ("call", "layer", "op")}  # type: ignore[arg-type]
    assert (named["call"].layer, named["call"].op, named["call"].number) == ("a", "mm", 1)
    assert (named["layer"].layer, named["layer"].op, named["layer"].number) == ("a", "", None)
    assert (named["op"].layer, named["op"].op, named["op"].number) == ("", "mm", None)


def test_passes_start_without_gradients_and_skip_untrained_parameters() -> None:
    net = nn.Linear(2, 1)
    net.bias.requires_grad_(False)

    def step() -> Tensor:
        loss = net(torch.ones(1, 2)).sum()
        loss.backward()
        return loss

    passes = parameter_passes(net, step)
    for _ in range(2):
        loss, gradients = passes()
        assert loss.item() == net(torch.ones(1, 2)).item()
        (gradient,) = gradients
        assert gradient is not None
        assert gradient.tolist() == [[1.0, 1.0]]


def test_step_without_gradients_is_refused_with_its_numbers() -> None:
    from jumar.ground.errors import UserError

    weight = torch.ones(2)

    def with_norm(norm: float) -> Any:
        return sensitivity(
            lambda: (weight.sum() * 1, [weight * norm]), modules={}, settings=NoiseSettings()
        )

    for norm, shown in ((0.0, "0"), (float("inf"), "inf")):
        with pytest.raises(UserError) as error:
            with_norm(norm)
        assert error.value.what == f"the step has a loss of 2 and gradients with norm {shown}"
        assert error.value.todo == (
            "The measurement needs a finite loss and gradients that are not all 0. "
            "To find an overflow: jumar precision overflow"
        )
    assert with_norm(1.0).gradient == pytest.approx(2**0.5)
    assert NoiseSettings() == NoiseSettings(dtype="bfloat16", by="group", backward=True, seed=0)


def test_announcement_has_the_number_of_passes_and_the_remaining_time() -> None:
    messages: list[str] = []
    weight = torch.ones(2)
    result = sensitivity(
        lambda: ((weight * 3).sum(), [weight * 2]),
        modules=None,
        settings=NoiseSettings(dtype="float16", by="op"),
        say=messages.append,
    )
    (line,) = messages
    assert line.startswith("5 passes forward and backward, about ")
    assert result.passes == 5
    assert [row.op for row in result.rows] == ["aten.mul.Tensor", "aten.sum.default"]
    assert (result.loss, result.floor) == (6.0, (0.0, 0.0))
    assert 0 < result.seconds < 60
