import math

import pytest
import torch
from torch import nn

from jumar.training.checkpoint_state import SavedState
from jumar.training.optimizers import OptimizerSettings, create_optimizer
from jumar.training.optimizers.slots import (
    load_slots,
    named_state,
    names_by_group,
    stored_powers,
    stored_slots,
)
from tests.components import of_kind

KINDS = ("adam", "momentum")


class Trained:
    """Two parameters, one of them decayed, and an optimizer that made some steps."""

    def __init__(self, kind: str, steps: int) -> None:
        torch.manual_seed(1)
        self.weight = nn.Parameter(torch.randn(3, 2, 4, 4).to(memory_format=torch.channels_last))
        self.bias = nn.Parameter(torch.randn(3))
        self.optimizer = create_optimizer(
            of_kind(OptimizerSettings, kind, learning_rate=0.1, weight_decay=0.01),
            [self.weight],
            [self.bias],
            device_type="cpu",
        )
        self.named: dict[nn.Parameter, str] = {self.bias: "bias", self.weight: "weight"}
        self.make(steps)

    def make(self, steps: int) -> None:
        for _ in range(steps):
            for parameter in self.named:
                parameter.grad = (parameter.detach() + 1).sin()
            self.optimizer.step()

    def saved(self) -> SavedState:
        names = names_by_group(self.optimizer, self.named)
        slots, groups = named_state(self.optimizer.state_dict(), names, "all")
        return SavedState(values={"objectives": {"all": {"groups": groups}}}, slots=slots)


@pytest.mark.parametrize("kind", KINDS)
def test_slots_by_name_let_another_optimizer_go_on_bit_for_bit(kind: str) -> None:
    first = Trained(kind, 3)
    state = first.saved()
    slots = stored_slots(state)
    assert set(slots) == {"weight", "bias"}
    assert all(set(kept) == set(OptimizerSettings.kinds[kind].slots) for kept in slots.values())
    second = Trained(kind, 0)
    with torch.no_grad():
        second.weight.copy_(first.weight)
        second.bias.copy_(first.bias)
    load_slots(second.optimizer, second.named, slots, stored_powers(state), 99)
    for one in (first, second):
        one.make(2)
    assert torch.equal(first.weight, second.weight)
    assert torch.equal(first.bias, second.bias)


@pytest.mark.parametrize("updates", [0, 1, 2, 99, 5000, 30000])
def test_updates_are_read_from_the_power_that_tensorflow_keeps(updates: int) -> None:
    power = 1.0
    for _ in range(updates + 1):
        power = float(torch.tensor(power) * torch.tensor(0.999))
    one = Trained("adam", 1)
    slots = {name: dict.fromkeys(("exp_avg",), p.detach()) for p, name in one.named.items()}
    load_slots(one.optimizer, one.named, slots, dict.fromkeys(slots, (0.0, power)), 7)
    for group in one.optimizer.param_groups:
        assert float(group["updates"]) == pytest.approx(updates, rel=1e-3)


@pytest.mark.parametrize("power", [0.0, 1e-40, 1.0, math.nan, -1.0])
def test_a_power_that_tells_nothing_is_replaced_by_the_step(power: float) -> None:
    one = Trained("adam", 1)
    slots = {name: {"exp_avg": p.detach()} for p, name in one.named.items()}
    load_slots(one.optimizer, one.named, slots, dict.fromkeys(slots, (0.0, power)), 70000)
    assert {float(group["updates"]) for group in one.optimizer.param_groups} == {70000.0}


def test_slots_that_lack_or_have_another_shape_are_refused() -> None:
    one = Trained("momentum", 1)
    with pytest.raises(KeyError, match="weight"):
        load_slots(one.optimizer, one.named, {}, {}, 1)
    slots = {name: {"momentum_buffer": torch.zeros(3)} for name in ("weight", "bias")}
    with pytest.raises(ValueError, match="'momentum_buffer' of 'weight'"):
        load_slots(one.optimizer, one.named, slots, {}, 1)
