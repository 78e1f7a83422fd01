"""Products on a CPU without bf16 instructions: computed in float32, rounded as bf16 would be."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from jumar.devices.cpu import Cpu
from jumar.precision.autocast_lists import install
from jumar.precision.oplist import default_lists, treatments
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings
from tests.precision.op_calls import CALLS, maker

LOW = torch.bfloat16
PRODUCTS = [op for op in CALLS if default_lists().get(op) == "white" and op != "prelu"]


class Low(TorchDispatchMode):
    """Notes the products that are given bf16."""

    def __init__(self) -> None:
        super().__init__()
        self.products: list[str] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = str(func.overloadpacket).removeprefix("aten.")
        multiplies = any(word in name for word in ("mm", "conv", "dot", "attention", "matmul"))
        if multiplies and any(isinstance(arg, Tensor) and arg.dtype == LOW for arg in args):
            self.products.append(name)
        return func(*args, **(kwargs or {}))


@pytest.fixture
def without_bf16_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU without bf16 instructions."""
    monkeypatch.setattr(Cpu, "accelerates_bf16", lambda: False)


def policy(mode: str) -> PrecisionPolicy:
    return PrecisionPolicy(PrecisionSettings(mode=mode), device_type="cpu")


@pytest.mark.usefixtures("without_bf16_instructions")
@pytest.mark.parametrize("mode", ["allow_mix_precision_bf16", "allow_fp32_to_bf16", "force_fp16"])
@pytest.mark.parametrize("op", PRODUCTS)
def test_products_receive_no_bf16_in_forward_or_backward(op: str, mode: str) -> None:
    lowering = policy(mode)
    lowering.install()
    make = maker("cpu", torch.float32, requires_grad=True)
    with Low() as seen:
        with lowering.forward():
            result = CALLS[op](make)
        result.float().sum().backward()
    assert seen.products == []
    assert result.dtype == (torch.float32 if mode == "allow_fp32_to_bf16" else LOW)


def test_cpu_with_bf16_instructions_gets_bf16() -> None:
    install("cpu", treatments("mixed", default_lists()))
    with Low() as seen, torch.autocast("cpu", dtype=LOW):
        F.linear(torch.ones(2, 3), torch.ones(2, 3))
    assert seen.products


def exact(*shape: int) -> Tensor:
    """Numbers that bf16 rounds, whose rounded products add up exactly in float32."""
    return torch.randint(-8, 9, shape).float() * (1 + 2**-10)


@pytest.mark.parametrize("form", ["mixed", "cube"])
@pytest.mark.parametrize(
    "product",
    [
        F.conv2d,
        lambda images, kernels: F.linear(images.flatten(1)[:, :27], kernels.flatten(1)),
    ],
    ids=["conv2d", "linear"],
)
def test_values_and_gradients_match_bf16_instructions(
    form: Any, product: Callable[[Tensor, Tensor], Tensor]
) -> None:
    torch.manual_seed(1)
    images, kernels = exact(2, 3, 6, 6), exact(4, 3, 3, 3)

    def computed(multiplies_low: bool) -> list[Tensor]:
        install("cpu", treatments(form, default_lists(), multiplies_low=multiplies_low))
        inputs = images.clone().requires_grad_(), kernels.clone().requires_grad_()
        with torch.autocast("cpu", dtype=LOW):
            result = product(*inputs)
        result.backward(torch.ones_like(result))
        return [result.detach(), *(tensor.grad for tensor in inputs if tensor.grad is not None)]

    for one, other in zip(computed(True), computed(False), strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


@pytest.mark.usefixtures("without_bf16_instructions")
def test_emulated_float16_is_unaffected() -> None:
    settings = PrecisionSettings(mode="allow_mix_precision", emulate_fp16=True)
    emulated = PrecisionPolicy(settings, device_type="cpu")
    emulated.install()
    with emulated.forward():
        assert F.linear(torch.full((1, 1), 1 + 2**-10), torch.ones(1, 1)).item() == 1 + 2**-10


@pytest.mark.parametrize(
    ("isa", "has"), [("AVX2", False), ("avx512_core", False), ("AVX512_CORE_BF16", None)]
)
def test_onednn_isa_limit_is_respected(isa: str, has: bool | None) -> None:
    program = "from jumar.devices.cpu import Cpu; print(Cpu.accelerates_bf16())"

    def answer(**variables: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, **variables},
        ).stdout.strip()

    expected = answer(ONEDNN_MAX_CPU_ISA="ALL") if has is None else str(has)
    assert answer(ONEDNN_MAX_CPU_ISA=isa) == expected
