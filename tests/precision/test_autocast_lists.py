"""Op lists in force: what runs in which dtype, forward and backward, eager and compiled."""

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from jumar.precision.autocast_lists import (
    each_tensor,
    install,
    install_kernels,
    installed,
    without_lists,
)
from jumar.precision.oplist import ListName, Treatment, default_lists, treatments
from jumar.precision.overloads import find_overload
from tests.precision.op_calls import CALLS, maker

LOW = torch.bfloat16


def lists_with(**changes: ListName) -> dict[str, ListName]:
    """The default lists with changes; `__` in a name stands for the dot of an overload."""
    return {**default_lists(), **{op.replace("__", "."): name for op, name in changes.items()}}


def region(low: torch.dtype = LOW) -> torch.autocast:
    return torch.autocast("cpu", dtype=low)


def small_integers(*shape: int) -> torch.Tensor:
    """Numbers whose products add up exactly even in bf16, in any order."""
    return torch.randint(-3, 4, shape).float()


def with_lost_digits(numbers: torch.Tensor) -> torch.Tensor:
    """Float32 numbers that fp16 and bf16 round to the given ones."""
    return numbers * (1 + 2**-13)


@pytest.mark.parametrize("op", sorted(CALLS))
def test_every_op_runs_forward_and_backward_in_the_dtype_of_its_list(op: str) -> None:
    install("cpu", treatments("mixed", default_lists()))
    make = maker("cpu", LOW, requires_grad=True)
    if op in ("binary_cross_entropy", "kl_div", "l1_loss"):
        make = maker("cpu", torch.float32, requires_grad=True)
    with region():
        result = CALLS[op](make)
    result.float().sum().backward()
    expected = {"white": LOW, "black": torch.float32, "gray": LOW}
    assert result.dtype == expected[default_lists()[op]]


@pytest.mark.parametrize("op", ["softmax.int", "layer_norm", "exp", "sum", "cumsum", "mse_loss"])
def test_op_that_torch_leaves_low_on_a_cpu_is_fp32_with_our_lists(op: str) -> None:
    low = maker("cpu", LOW)
    with region():
        assert CALLS[op](low).dtype == (torch.float32 if op == "mse_loss" else LOW)
    install("cpu", treatments("mixed", default_lists()))
    with region():
        assert CALLS[op](low).dtype == torch.float32


@pytest.mark.parametrize("op", ["matmul", "linear", "conv2d", "add.Tensor", "relu", "batch_norm"])
def test_black_op_computes_exactly_what_fp32_computes(op: str) -> None:
    lists = lists_with(**dict.fromkeys(("mm", "addmm", "bmm", op), "black"))
    install("cpu", treatments("mixed", lists))
    torch.manual_seed(0)
    with region():
        result = CALLS[op](maker("cpu", torch.float32))
    torch.manual_seed(0)
    expected = CALLS[op](maker("cpu", torch.float32))
    assert result.dtype == torch.float32
    assert torch.equal(result, expected)


@pytest.mark.parametrize("op", ["softmax.int", "layer_norm", "add.Tensor", "gelu", "mean"])
def test_white_op_lowers_fp32_inputs(op: str) -> None:
    install("cpu", treatments("mixed", {**default_lists(), op: "white"}))
    with region():
        assert CALLS[op](maker("cpu", torch.float32)).dtype == LOW


@pytest.mark.parametrize("op", ["softmax.int", "exp", "matmul", "conv2d"])
def test_gray_op_runs_in_the_dtype_of_its_inputs(op: str) -> None:
    gray = dict.fromkeys(("mm", "bmm", "addmm", "convolution", "_convolution", op), "gray")
    install("cpu", treatments("mixed", {**default_lists(), **gray}))
    for given in (LOW, torch.float32):
        with region():
            assert CALLS[op](maker("cpu", given)).dtype == given


def test_op_with_mixed_dtypes_uses_the_widest() -> None:
    install("cpu", treatments("mixed", default_lists()))
    low, full = torch.rand(3).to(LOW), torch.rand(3)
    image, grid = torch.rand(1, 1, 4, 4).to(LOW), torch.rand(1, 2, 2, 2)
    with region():
        assert torch.dot(low, full).dtype == torch.float32
        assert torch.dot(low, low).dtype == LOW
        assert torch.cat([low, full]).dtype == torch.float32
        assert F.grid_sample(image, grid, align_corners=False).dtype == torch.float32


def test_recurrent_cells_and_layers_return_low_precision() -> None:
    install("cpu", treatments("mixed", default_lists()))
    with region():
        assert nn.LSTM(3, 4)(torch.rand(2, 2, 3))[0].dtype == LOW
        assert nn.GRU(3, 4)(torch.rand(2, 2, 3))[0].dtype == LOW
        assert nn.LSTMCell(3, 4)(torch.rand(2, 3))[0].dtype == LOW


def test_doubles_and_integers_are_left_alone() -> None:
    install("cpu", treatments("mixed", lists_with(add__Tensor="white", sum="black")))
    with region():
        assert (torch.ones(2, dtype=torch.float64) + 1).dtype == torch.float64
        assert torch.ones(2, dtype=torch.int64).sum().dtype == torch.int64


@pytest.mark.parametrize("name", ["white", "gray", "black"])
def test_batch_norm_updates_its_fp32_running_statistics(name: ListName) -> None:
    norm = nn.BatchNorm2d(3)
    images = torch.randn(4, 3, 5, 5) * 2 + 1
    expected = nn.BatchNorm2d(3)
    expected(images.to(LOW).float())
    install("cpu", treatments("mixed", lists_with(batch_norm=name)))
    with region():
        result = norm(images.to(LOW))
    assert result.dtype == (torch.float32 if name == "black" else LOW)
    assert norm.running_mean is not None
    assert norm.running_mean.dtype == torch.float32
    assert norm.running_mean.abs().min() > 0
    torch.testing.assert_close(norm.running_mean, expected.running_mean)
    torch.testing.assert_close(norm.running_var, expected.running_var)


def test_writing_into_a_slice_is_never_lost() -> None:
    install("cpu", treatments("all", default_lists()))
    values = torch.zeros(2, 3)
    with region():
        values[:, 0] = torch.ones(2, dtype=LOW)
        values[:, 1:] += 2
    assert values.tolist() == [[1, 2, 2], [1, 2, 2]]


def test_parameters_keep_fp32_gradients_and_all_black_equals_fp32() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    inputs, labels = torch.randn(5, 8), torch.tensor([0, 1, 2, 3, 0])

    def gradients(enabled: bool) -> list[torch.Tensor]:
        net.zero_grad()
        with torch.autocast("cpu", dtype=LOW, enabled=enabled):
            loss = F.cross_entropy(net(inputs), labels)
        loss.backward()
        return [p.grad.clone() for p in net.parameters() if p.grad is not None]

    full = gradients(enabled=False)
    install("cpu", treatments("mixed", dict.fromkeys(default_lists(), "black")))
    assert all(map(torch.equal, gradients(enabled=True), full))
    install("cpu", treatments("mixed", default_lists()))
    low = gradients(enabled=True)
    assert all(gradient.dtype == torch.float32 for gradient in low)
    assert not all(map(torch.equal, low, full))


def test_closing_restores_torchs_lists_exactly() -> None:
    def dtypes() -> list[torch.dtype]:
        with region():
            return [call(maker("cpu", LOW)).dtype for call in CALLS.values()]

    before = dtypes()
    lists = install("cpu", treatments("all", default_lists()))
    assert dtypes() != before
    lists.close()
    assert dtypes() == before
    assert installed() is None
    lists.close()


def test_second_list_replaces_the_first_whose_close_becomes_a_no_op() -> None:
    first = install("cpu", treatments("mixed", default_lists()))
    second = install("cpu", treatments("mixed", lists_with(exp="white")))
    assert first.closed
    first.close()
    assert installed() is second
    with region():
        assert torch.exp(torch.rand(2)).dtype == LOW


def test_only_ops_that_differ_from_torch_are_replaced() -> None:
    lists = install("cpu", treatments("mixed", default_lists()))
    assert not {"linear", "matmul", "conv2d", "mse_loss", "add.Tensor"} & lists.registered.keys()
    assert lists.registered["softmax.int"] is Treatment.FP32
    on_cuda = install("cuda", treatments("mixed", default_lists()))
    assert not {"softmax.int", "layer_norm", "linear", "exp"} & on_cuda.registered.keys()
    assert on_cuda.registered["binary_cross_entropy"] is Treatment.FP32


def test_weights_used_twice_are_cast_once() -> None:
    install("cpu", treatments("mixed", default_lists()))
    weight = torch.randn(4, 4, requires_grad=True)
    with region():
        first = F.linear(torch.rand(2, 4), weight)
        second = F.linear(torch.rand(2, 4), weight)
    casts = {result.grad_fn.next_functions[0][0] for result in (first, second) if result.grad_fn}
    assert len(casts) == 1


@pytest.mark.parametrize("device_type", ["cuda", "npu"])
@pytest.mark.parametrize("form", ["mixed", "cube", "cube_fp32_out", "all"])
def test_lists_can_be_installed_for_an_absent_device(device_type: str, form: str) -> None:
    lists = install(device_type, treatments(form, default_lists()))
    assert lists.registered
    lists.close()


def test_installing_emits_no_warnings() -> None:
    # torch warns once per process, so this needs a separate one.
    code = (
        "from jumar.precision.autocast_lists import install\n"
        "from jumar.precision.oplist import default_lists, treatments\n"
        "install('cpu', treatments('mixed', default_lists())).close()\n"
    )
    source = Path(__file__).resolve().parents[2] / "src"
    completed = subprocess.run(
        [sys.executable, "-W", "always", "-c", code],
        env={"PYTHONPATH": str(source), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "verrid" not in completed.stderr


def test_fp16_works_like_bf16() -> None:
    install("cpu", treatments("mixed", default_lists()))
    with region(torch.float16):
        product = torch.rand(2, 2) @ torch.rand(2, 2)
        assert product.dtype == torch.float16
        assert torch.softmax(product, -1).dtype == torch.float32


def test_cube_ops_give_fp32_and_round_their_inputs() -> None:
    torch.manual_seed(0)
    inputs, weight = small_integers(4, 8), small_integers(3, 8)
    install("cpu", treatments("cube", default_lists()))
    with region():
        result = F.linear(with_lost_digits(inputs), with_lost_digits(weight))
        assert (result + 1).dtype == torch.float32
    assert result.dtype == torch.float32
    assert torch.equal(result, inputs @ weight.T)


def test_fp16_in_fp32_out_is_exact_for_fp16_inputs_forward_and_backward() -> None:
    torch.manual_seed(0)
    inputs, kernel, upstream = small_integers(4, 8), small_integers(3, 8), small_integers(4, 3)
    weight = with_lost_digits(kernel).requires_grad_()
    install("cpu", treatments("cube_fp32_out", default_lists()))
    with region():
        result = F.linear(with_lost_digits(inputs), weight)
    result.backward(with_lost_digits(upstream))
    assert torch.equal(result, inputs @ kernel.T)
    assert weight.grad is not None
    assert torch.equal(weight.grad, upstream.T @ inputs)


@pytest.mark.parametrize("form", ["mixed", "cube", "all"])
def test_emulation_detects_fp16_overflow(form: str) -> None:
    install("cpu", treatments(form, default_lists(), emulated=True))
    big, one = torch.full((1, 1), 300.0), torch.ones(1, 1)
    with region():
        assert torch.isinf(F.linear(big, big)).all()
        assert torch.isinf(F.linear(torch.full((1, 1), 1e5), one)).all()
        assert F.linear(torch.full((1, 1), 2049.0), one).item() == 2048
        assert F.linear(big, one).dtype == torch.float32


def test_emulated_gradients_overflow_and_underflow() -> None:
    install("cpu", treatments("mixed", default_lists(), emulated=True))
    weight = torch.ones(1, 1, requires_grad=True)
    for factor, expected in ((1e5, float("inf")), (1e-9, 0.0), (1.0, 1.0)):
        weight.grad = None
        with region():
            (F.linear(torch.ones(1, 1), weight) * factor).sum().backward()
        assert weight.grad is not None
        assert weight.grad.item() == expected


@pytest.mark.parametrize("form", ["mixed", "cube", "cube_fp32_out", "all"])
def test_compiled_code_matches_eager_code(form: str) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    inputs = torch.randn(5, 8)

    def run(call: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
        net.zero_grad()
        with region():
            result = torch.softmax(call(inputs), -1)
        result.square().sum().backward()
        assert net[0].weight.grad is not None
        return result.detach(), net[0].weight.grad.clone()

    install("cpu", treatments(form, default_lists()))
    expected, gradient = run(net)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actual, compiled_gradient = run(torch.compile(net, backend="aot_eager"))
    assert actual.dtype == expected.dtype
    assert torch.equal(actual, expected)
    torch.testing.assert_close(compiled_gradient, gradient)


def test_compiled_code_follows_a_change_of_the_list() -> None:
    compiled = torch.compile(torch.exp, backend="aot_eager")
    for name, expected in (("black", torch.float32), ("white", LOW), ("gray", torch.float32)):
        install("cpu", treatments("mixed", {**default_lists(), "exp": name}))
        with region():
            assert compiled(torch.rand(2)).dtype == expected


def test_lists_are_one_at_a_time_and_closed_once() -> None:
    first = install("cpu", {"exp": Treatment.LOW})
    assert (first.closed, first.device_type, first.registered) == (
        *(False, "cpu", {"exp": Treatment.LOW}),
    )
    second = install("cpu", {"mm": Treatment.LOW, "cat": Treatment.FOLLOW})
    # That torch gives mm its treatment itself, and cat the same dtypes.
    assert (first.closed, second.registered, installed()) == (True, {}, second)
    first.close()
    assert installed() is second
    third = install_kernels("cpu", {"exp": lambda tensor: torch.full_like(tensor, 7.0)})
    assert (second.closed, third.registered, installed()) == (True, {}, third)
    with region():
        assert torch.exp(torch.ones(1)).item() == 7.0
        with without_lists("cpu"):
            assert torch.exp(torch.zeros(1)).item() == 1.0
    third.close()
    third.close()
    assert (third.closed, installed()) == (True, None)
    with region():
        assert torch.exp(torch.zeros(1)).item() == 1.0


def dtypes(
    op: str, treatment: Treatment, *given: torch.Tensor | list[torch.Tensor]
) -> tuple[torch.Tensor, list[torch.dtype]]:
    """What the kernel gives, and the dtypes that the op is given."""
    seen: list[torch.dtype] = []

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if str(func).startswith(f"aten.{op.partition('.')[0]}"):
                parts = [p for a in args for p in (a if isinstance(a, list) else [a])]
                seen.extend(part.dtype for part in parts if isinstance(part, torch.Tensor))
            return func(*args, **(kwargs or {}))

    lists = install("cpu", {op: treatment})
    overload: Any = find_overload(op)
    with Seeing(), region():
        result = overload(*given)
    lists.close()
    return result, seen


HALF, WIDE = torch.float16, torch.float32


@pytest.mark.parametrize(
    ("treatment", "given", "dtype"),
    [
        (Treatment.LOW, LOW, LOW),
        (Treatment.FP32, WIDE, WIDE),
        (Treatment.LOW_THEN_FP32, LOW, WIDE),
        (Treatment.LOW_BY_FP32, WIDE, LOW),
        (Treatment.LOW_BY_FP32_THEN_FP32, WIDE, WIDE),
        (Treatment.ROUND, WIDE, WIDE),
        (Treatment.ROUND_IN, WIDE, WIDE),
    ],
)
def test_treatment_determines_input_and_output_dtypes(
    treatment: Treatment, given: torch.dtype, dtype: torch.dtype
) -> None:
    for own in (WIDE, HALF, LOW):
        if treatment is Treatment.ROUND_IN and own is not WIDE:
            continue
        tensor = torch.tensor([1 + 2.0**-12]).to(own)
        result, seen = dtypes("maximum", treatment, tensor, tensor)
        assert (seen, result.dtype) == ([given, given], dtype), own
    value = torch.tensor([1 + 2.0**-12])
    exact = treatment is Treatment.FP32
    result, _ = dtypes("maximum", treatment, value, value)
    assert (result.item() == value.item()) is exact
    # Float64 and whole numbers are never cast.
    for other in (torch.ones(1).double(), torch.ones(1, dtype=torch.int64)):
        result, seen = dtypes("maximum", treatment, other, other)
        assert (seen, result.dtype) == ([other.dtype] * 2, other.dtype)


def test_mixed_float_dtypes_become_float32_and_equal_ones_are_kept() -> None:
    low, wide = torch.ones(2).to(LOW), torch.ones(2)
    whole = torch.zeros(2, dtype=torch.int64)
    for one, other, dtype in ((low, wide, WIDE), (low, low, LOW), (wide, wide, WIDE)):
        result, seen = dtypes("maximum", Treatment.WIDEST, one, other)
        assert (seen, result.dtype) == ([dtype, dtype], dtype)
    result, seen = dtypes("maximum", Treatment.WIDEST, low, whole.to(LOW))
    assert (seen, result.dtype) == ([LOW, LOW], LOW)
    result, seen = dtypes("stack", Treatment.LOW, [low, wide])
    assert (seen, result.dtype) == ([LOW, LOW], LOW)


def test_values_or_gradients_are_rounded_like_the_cube_unit() -> None:
    near = 1 + 2.0**-12
    for treatment, value, gradient in (
        (Treatment.ROUND, 1.0, 1.0),
        (Treatment.ROUND_IN, 1.0, 1.0),
    ):
        tensor = torch.tensor([near], requires_grad=True)
        lists = install("cpu", {"abs": treatment})
        with region():
            result = torch.abs(tensor)
        lists.close()
        result.backward(torch.tensor([near]))
        assert tensor.grad is not None
        assert (result.item(), tensor.grad.item()) == (value, gradient)
    assert each_tensor(torch.neg, (torch.ones(1), [torch.ones(1), 3], "x")) == (-1, [-1, 3], "x")
