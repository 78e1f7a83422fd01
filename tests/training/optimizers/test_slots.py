import gc
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from jumar.ground.errors import UserError
from jumar.training.checkpoint import load_state, write_checkpoint
from jumar.training.checkpoint_state import SavedState
from jumar.training.optimizers import AdamW, Momentum, OptimizerSettings, create_optimizer
from jumar.training.optimizers.slots import (
    load_slots,
    named_state,
    names_by_group,
    restore_optimizer,
    stored_powers,
    stored_slots,
)
from tests.components import of_kind
from tests.training.optimizers.test_optimizers import WAYS, create, parameters, walk

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
def test_named_slots_let_another_optimizer_continue_bitwise_equal(kind: str) -> None:
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
def test_update_count_is_derived_from_tensorflows_beta_power(updates: int) -> None:
    power = 1.0
    for _ in range(updates + 1):
        power = float(torch.tensor(power) * torch.tensor(0.999))
    one = Trained("adam", 1)
    slots = {name: dict.fromkeys(("exp_avg",), p.detach()) for p, name in one.named.items()}
    load_slots(one.optimizer, one.named, slots, dict.fromkeys(slots, (0.0, power)), 7)
    for group in one.optimizer.param_groups:
        assert float(group["updates"]) == pytest.approx(updates, rel=1e-3)


@pytest.mark.parametrize("power", [0.0, 1e-40, 1.0, math.nan, -1.0])
def test_uninformative_power_is_replaced_by_the_step(power: float) -> None:
    one = Trained("adam", 1)
    slots = {name: {"exp_avg": p.detach()} for p, name in one.named.items()}
    load_slots(one.optimizer, one.named, slots, dict.fromkeys(slots, (0.0, power)), 70000)
    assert {float(group["updates"]) for group in one.optimizer.param_groups} == {70000.0}


def test_missing_or_differently_shaped_slots_are_refused() -> None:
    one = Trained("momentum", 1)
    with pytest.raises(KeyError, match="weight"):
        load_slots(one.optimizer, one.named, {}, {}, 1)
    slots = {name: {"momentum_buffer": torch.zeros(3)} for name in ("weight", "bias")}
    with pytest.raises(ValueError, match="'momentum_buffer' of 'weight'"):
        load_slots(one.optimizer, one.named, slots, {}, 1)


def equal(left: object, right: object) -> bool:
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    return type(left) is type(right) and left == right


def through_a_file(optimizer: Optimizer, own: Sequence[nn.Parameter], place: Path) -> SavedState:
    """The state as in a checkpoint."""
    slots, groups = named_state(
        optimizer.state_dict(), names_by_group(optimizer, names_of(own)), "all"
    )
    values = {"step": 1, "objectives": {"all": {"groups": groups}}}
    state = SavedState(values=values, slots=slots)
    written = write_checkpoint(place, step=1, epoch=0, model={}, ema=None, state=state, batch={})
    return load_state(written)


def names_of(own: Sequence[nn.Parameter]) -> dict[nn.Parameter, str]:
    return {parameter: f"layer.{number}/x" for number, parameter in enumerate(own)}


def restore(optimizer: Optimizer, named: Mapping[nn.Parameter, str], state: SavedState) -> None:
    groups = state.values["objectives"]["all"]["groups"]
    restore_optimizer(optimizer, named, "all", state.by_owner(), groups)


@pytest.mark.parametrize("settings", WAYS)
def test_saved_state_is_restored_bitwise_for_any_parameter_order(
    tmp_path: Path, settings: OptimizerSettings
) -> None:
    straight, own = parameters(), parameters()
    reference, first = create(settings, straight), create(settings, own)
    walk(reference, straight, range(10))
    walk(first, own, range(5))
    state = through_a_file(first, own, tmp_path)
    other_order = create_optimizer(
        settings, own[1::-1], own[:1:-1], device_type="cpu", order=own[::-1]
    )
    restore(other_order, names_of(own), state)
    walk(other_order, own, range(5, 10))
    assert all(map(torch.equal, straight, own))
    for ours, theirs in zip(own, straight, strict=True):
        left, right = other_order.state[ours], reference.state[theirs]
        assert left.keys() == right.keys()
        assert all(map(equal, left.values(), (right[key] for key in left)))
    for left, right in zip(other_order.param_groups, reference.param_groups, strict=True):
        assert left.keys() == right.keys()
        assert all(equal(left[key], right[key]) for key in right if key != "params")


def test_restored_tensors_do_not_alias_the_file(tmp_path: Path) -> None:
    """Else its space would not come free when the checkpoint is dropped."""
    own = parameters()
    optimizer = create(AdamW(), own)
    walk(optimizer, own, range(2))
    restore(optimizer, names_of(own), through_a_file(optimizer, own, tmp_path))
    gc.collect()
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("needs /proc")
    assert str(tmp_path) not in maps.read_text()


def test_restored_tensors_behind_a_number_get_the_layout_of_their_parameter() -> None:
    one = Trained("momentum", 1)
    state = one.optimizer.state_dict()
    for entries in state["state"].values():
        buffer = entries.pop("momentum_buffer").contiguous()
        entries.update(seen=3, momentum_buffer=buffer)
    one.optimizer.load_state_dict(state)
    restored = one.optimizer.state[one.weight]
    assert list(restored) == ["seen", "momentum_buffer"]
    assert restored["momentum_buffer"].stride() == one.weight.stride() != (32, 16, 4, 1)


@pytest.mark.parametrize("gone", ["stored", "present"])
def test_parameter_without_a_counterpart_is_named(tmp_path: Path, gone: str) -> None:
    own = parameters()
    first = create(AdamW(), own)
    walk(first, own, range(2))
    state = through_a_file(first, own, tmp_path)
    named = names_of(own)
    if gone == "stored":
        named[own[3]] = "other"
    second = create(AdamW(), own if gone == "stored" else own[:3])
    with pytest.raises(
        ValueError, match=r"'all' trains other parameters than the saved state: 'layer.3/x'"
    ):
        restore(second, named, state)


def test_slot_missing_from_the_file_is_named(tmp_path: Path) -> None:
    own = parameters()
    state = through_a_file(create(Momentum(), own), own, tmp_path)
    lacking = {k: v for k, v in state.slots.items() if not k.startswith("all/layer.2/")}
    with pytest.raises(ValueError, match=r"'momentum_buffer' of 'layer.2/x' is missing"):
        restore(create(Momentum(), own), names_of(own), replace(state, slots=lacking))


def test_numbers_lists_and_tensors_of_a_custom_optimizer_are_kept(tmp_path: Path) -> None:
    own = parameters()
    first, second = create(Momentum(), own), create(Momentum(), own)
    first.param_groups[1] |= {"k": 3, "peak": math.inf, "weights": torch.arange(3), "on": [1, "a"]}
    first.state[own[0]] |= {"turns": 7, "none": None}
    restore(second, names_of(own), through_a_file(first, own, tmp_path))
    group = second.param_groups[1]
    assert (group["k"], group["peak"], group["on"]) == (3, math.inf, [1, "a"])
    assert torch.equal(group["weights"], torch.arange(3))
    kept = second.state[own[0]]
    assert (kept["turns"], kept["none"]) == (7, None)


@pytest.mark.parametrize("value", [{1: 2}, object(), [torch.ones(1)]])
def test_state_that_cannot_be_saved_is_named(tmp_path: Path, value: object) -> None:
    own = parameters()
    optimizer = create(Momentum(), own)
    optimizer.state[own[1]]["odd"] = value
    with pytest.raises(UserError, match=r"as 'odd' of 'all/layer.1/x'"):
        through_a_file(optimizer, own, tmp_path)


def test_another_number_of_groups_is_refused(tmp_path: Path) -> None:
    own = parameters()
    state = through_a_file(create(Momentum(), own), own, tmp_path)
    groups = state.values["objectives"]["all"]["groups"]
    for other in (groups[:1], [*groups, groups[0]]):
        with pytest.raises(ValueError, match=r"zip\(\)"):
            restore_optimizer(
                create(Momentum(), own), names_of(own), "all", state.by_owner(), other
            )


def test_state_that_cannot_be_saved_is_reported_with_the_supported_types() -> None:
    own = parameters()
    optimizer = create(Momentum(), own)
    optimizer.param_groups[1] |= {"odd": {1}, "odder": {2}}
    names = names_by_group(optimizer, names_of(own))
    with pytest.raises(UserError) as refused:
        named_state(optimizer.state_dict(), names, "all")
    assert str(refused.value) == (
        "the optimizer keeps a set as 'odd' of 'all/group 1', which a checkpoint cannot contain\n"
        "  A custom optimizer may keep tensors, numbers, strings and lists of them."
    )
    del optimizer.param_groups[1]["odd"], optimizer.param_groups[1]["odder"]
    tensors, groups = named_state(optimizer.state_dict(), names, "all")
    assert list(tensors) == [f"all/layer.{number}/x/momentum_buffer" for number in range(4)]
    assert [list(group["parameters"]) for group in groups] == [
        ["layer.0/x", "layer.1/x"],
        ["layer.2/x", "layer.3/x"],
    ]
    assert [group["values"]["weight_decay"] for group in groups] == [0.0, 0.0]
    assert all("params" not in group["values"] for group in groups)


def test_powers_use_the_updates_of_each_group_plus_one() -> None:
    groups = [
        {"parameters": {"a": {}, "b": {}}, "values": {"betas": [0.5, 0.75]}},
        {"parameters": {"c": {}}, "values": {"betas": [0.5, 0.75]}},
        {"parameters": {"d": {}}, "values": {}},
    ]
    slots = {
        "o/group 0/updates": torch.tensor(2.0),
        "o/group 1/updates": torch.tensor(0.0),
        "o/a/exp_avg": torch.ones(1),
        "o/c/exp_avg": torch.zeros(1),
    }
    values = {"objectives": {"o": {"groups": groups}}, "powers": {"e": [0.1, 0.2]}}
    state = SavedState(values=values, slots=slots)
    assert stored_powers(state) == {
        "a": (0.125, 0.421875),
        "b": (0.125, 0.421875),
        "c": (0.5, 0.75),
        "e": [0.1, 0.2],
    }
    result = stored_slots(state)
    assert {name: list(kept) for name, kept in result.items()} == {
        "a": ["exp_avg"],
        "b": [],
        "c": ["exp_avg"],
        "d": [],
    }
    imported = SavedState(slots={"x/y/exp_avg": torch.ones(1)})
    assert list(stored_slots(imported)) == ["x/y"]
    assert stored_powers(imported) == {}
