"""Groups with their own rates, skipped updates, and the loss of the weight decay."""

import pytest
import torch
from torch import nn

from jumar.training.optimizers.kinds import Adam, AdamW, Momentum
from jumar.training.optimizers.optimizer import ParameterGroup, create_optimizer
from jumar.training.optimizers.updating import (
    regularization,
    set_learning_rate,
    step_and_take_back,
    step_unless,
)


def parameter(*values: float) -> nn.Parameter:
    made = nn.Parameter(torch.tensor(values))
    made.grad = torch.ones_like(made)
    return made


def test_further_groups_have_their_own_decay_and_rate() -> None:
    own = [parameter(float(number)) for number in range(4)]
    further = [
        ParameterGroup(parameters=own[2:3], is_decayed=True, rate_factor=0.5),
        ParameterGroup(parameters=own[3:], is_decayed=False, rate_factor=3.0),
    ]
    optimizer = create_optimizer(
        AdamW(weight_decay=0.2, learning_rate=0.1),
        own[:1],
        own[1:2],
        device_type="cpu",
        further=further,
    )
    set_learning_rate(optimizer, 0.25)
    assert [
        (
            [float(each.detach()) for each in group["params"]],
            group["weight_decay"],
            group["decoupled_weight_decay"],
            group["lr"],
        )
        for group in optimizer.param_groups
    ] == [
        ([0.0], 0.2, True, 0.25),
        ([1.0], 0.0, True, 0.25),
        ([2.0], 0.2, True, 0.125),
        ([3.0], 0.0, True, 0.75),
    ]


def test_momentum_of_every_parameter_exists_before_the_first_step() -> None:
    own = [parameter(1.0), parameter(2.0), parameter(3.0)]
    further = [ParameterGroup(parameters=own[2:], is_decayed=True, rate_factor=2.0)]
    optimizer = create_optimizer(Momentum(), own[:1], own[1:2], device_type="cpu", further=further)
    kept = [optimizer.state[each]["momentum_buffer"].tolist() for each in own]
    assert kept == [[0.0], [0.0], [0.0]]
    none = create_optimizer(Momentum(momentum=0.0), own, [], device_type="cpu")
    assert not none.state


@pytest.mark.parametrize("bad", [0.0, 1.0])
def test_skippable_update_leaves_no_flag_on_the_optimizer(bad: float) -> None:
    own = parameter(1.0)
    optimizer = create_optimizer(Adam(fused="true"), [own], [], device_type="cpu")
    step_unless(optimizer, torch.tensor(bad))
    assert not hasattr(optimizer, "found_inf")
    assert not hasattr(optimizer, "grad_scale")
    assert (own.item() == 1.0) is bool(bad)
    assert float(optimizer.param_groups[0]["updates"]) == 1.0 - bad


def test_update_is_reverted_only_on_its_device_and_for_parameters_with_gradients() -> None:
    moved, still = parameter(1.0), parameter(2.0)
    still.grad = None
    optimizer = create_optimizer(Adam(fused="false"), [moved, still], [], device_type="cpu")
    step_and_take_back(optimizer, torch.tensor(1.0))
    assert (moved.item(), still.item()) == (1.0, 2.0)
    assert optimizer.state[moved]["exp_avg"].item() == 0.0
    assert float(optimizer.param_groups[0]["updates"]) == 0.0
    step_and_take_back(optimizer, torch.tensor(0.0))
    assert moved.item() == pytest.approx(0.9)  # a first step of Adam's is as long as the rate
    assert float(optimizer.param_groups[0]["updates"]) == 1.0


def test_decay_loss_is_half_the_sum_of_squares_times_each_groups_decay() -> None:
    first, second, third = parameter(1.0, 2.0), parameter(3.0), parameter(4.0)
    coupled = {"weight_decay": 0.5, "decoupled_weight_decay": False}
    groups = [
        {"params": [], **coupled},
        {"params": [first], **coupled},
        {"params": [second, third], **coupled, "weight_decay": 0.1},
        {"params": [third], **coupled, "weight_decay": 0.0},
        {"params": [third], **coupled, "decoupled_weight_decay": True},
    ]
    loss = regularization(groups)
    assert loss.item() == pytest.approx(0.5 * (0.5 * 5 + 0.1 * 25))
    assert not loss.requires_grad
    assert loss.dtype == torch.float32
    assert regularization(groups[:1]).item() == 0.0
    assert regularization([]).item() == 0.0
