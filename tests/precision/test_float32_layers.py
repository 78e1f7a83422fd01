"""Layers that stay in float32, regardless of the op lists."""

import copy

import pytest
import torch
from torch import Tensor, nn

from jumar.ground.errors import UserError
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings


class Net(nn.Module):
    """Two blocks of a product; the second also takes a list of tensors by name."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        self.second = Summing()
        self.seen: dict[str, torch.dtype] = {}

    def forward(self, values: Tensor) -> Tensor:
        hidden = self.first(values)
        out = self.second([hidden], scale=hidden)
        self.seen = {"first": hidden.dtype, "second": out.dtype}
        return out


class Summing(nn.Module):
    def forward(self, parts: list[Tensor], *, scale: Tensor) -> Tensor:
        assert parts[0].dtype == scale.dtype
        return parts[0] @ scale.T


def ran(net: Net, *layers: str, mode: str = "allow_mix_precision_bf16") -> dict[str, torch.dtype]:
    settings = PrecisionSettings(mode=mode, float32_layers=layers)
    policy = PrecisionPolicy(settings, device_type="cpu")
    policy.install()
    try:
        policy.keep_layers({name: module for name, module in net.named_modules() if name})
        with policy.forward():
            net(torch.randn(3, 4)).sum().backward()
    finally:
        policy.close()
    return net.seen


def test_layer_and_its_children_stay_in_float32() -> None:
    assert ran(Net()) == {"first": torch.bfloat16, "second": torch.bfloat16}
    assert ran(Net(), "first") == {"first": torch.float32, "second": torch.bfloat16}
    assert ran(Net(), "first.1") == {"first": torch.float32, "second": torch.bfloat16}
    assert ran(Net(), "second") == {"first": torch.bfloat16, "second": torch.float32}
    assert ran(Net(), "*") == {"first": torch.float32, "second": torch.float32}


def test_float32_mode_is_left_alone() -> None:
    net = Net()
    ran(net, "first", mode="must_keep_origin_dtype")
    assert "forward" not in vars(net.first)


def test_copy_of_the_network_uses_its_own_weights() -> None:
    net = Net()
    ran(net, "first", "first")
    other = copy.deepcopy(net)
    nn.init.zeros_(net.first[1].weight)
    nn.init.zeros_(net.first[1].bias)
    assert net(torch.ones(1, 4)).item() == 0
    assert other(torch.ones(1, 4)).item() != 0


def test_name_that_matches_no_layer_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="firts") as error:
        ran(Net(), "firts")
    assert "'first'" in error.value.todo
    assert error.value.where == "precision.float32_layers"


def test_layers_of_an_objective_may_be_missing_from_the_bare_network() -> None:
    policy = PrecisionPolicy(
        PrecisionSettings(mode="allow_mix_precision_bf16", float32_layers=("front_end",)),
        device_type="cpu",
    )
    policy.keep_layers({"first": nn.Linear(1, 1)}, are_all=False)


def test_compiled_network_keeps_its_float32_layers() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    settings = PrecisionSettings(mode="allow_mix_precision_bf16", float32_layers=("1",))
    policy = PrecisionPolicy(settings, device_type="cpu")
    policy.install()
    try:
        policy.keep_layers({"0": net[0], "1": net[1]})
        compiled = torch.compile(net, backend="aot_eager")
        values = torch.randn(3, 4)
        with policy.forward():
            plain, traced = net(values), compiled(values)
    finally:
        policy.close()
    assert traced.dtype == torch.float32
    assert torch.equal(plain, traced)
