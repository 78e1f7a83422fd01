import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from jumar.ground.errors import UserError
from jumar.settings import checked, override, setting
from jumar.training.optimizers.kinds import Adagrad, Adam, AdamW, Lamb, Momentum, RmsProp, Sgd
from jumar.training.optimizers.optimizer import OptimizerSettings, Trained, create_optimizer
from jumar.training.optimizers.updating import (
    regularization,
    set_learning_rate,
    step_and_take_back,
    step_unless,
)
from tests.components import of_kind

FUSED_KINDS = ("sgd", "momentum", "adam", "adamw", "adagrad")
SETTINGS: dict[str, OptimizerSettings] = {
    "sgd": Sgd(),
    "momentum": Momentum(),
    "nesterov": Momentum(nesterov=True),
    "adam": Adam(),
    "adam uncorrected": Adam(bias_correction="none"),
    "adamw": AdamW(),
    "adamw of BERT": AdamW(bias_correction="none"),
    "lamb": Lamb(),
    "lamb uncorrected": Lamb(bias_correction="none"),
    "lamb of Ascend": Lamb(bias_correction="variable"),
    "rmsprop": RmsProp(),
    "adagrad": Adagrad(),
}


def changed(settings: OptimizerSettings, **fields: Any) -> Any:
    return of_kind(OptimizerSettings, settings.kind, **{**vars(settings), **fields})


WAYS = [
    pytest.param(
        changed(settings, fused=fused, weight_decay=0.1, learning_rate=0.01),
        id=f"{name}, {'fused' if fused == 'true' else 'lists'}",
    )
    for name, settings in SETTINGS.items()
    for fused in ("true", "false")
    if fused == "false" or settings.kind in FUSED_KINDS
]


def parameters(*, channels_last: bool = True) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(1)
    shapes = ((4, 3, 3, 3), (5, 4), (4,), ())
    made = [torch.randn(shape, generator=generator) for shape in shapes]
    if channels_last:
        made[0] = made[0].contiguous(memory_format=torch.channels_last)
    return [nn.Parameter(value) for value in made]


def set_gradients(own: Sequence[nn.Parameter], step: int) -> None:
    generator = torch.Generator().manual_seed(100 + step)
    for parameter in own:
        gradient = torch.randn(parameter.shape, generator=generator)
        parameter.grad = torch.empty_like(parameter).copy_(gradient).detach()


def create(settings: OptimizerSettings, own: Sequence[nn.Parameter]) -> torch.optim.Optimizer:
    return create_optimizer(settings, own[:2], own[2:], device_type="cpu", order=own)


def walk(
    optimizer: torch.optim.Optimizer, own: Sequence[nn.Parameter], steps: Sequence[int]
) -> None:
    for step in steps:
        set_gradients(own, step)
        set_learning_rate(optimizer, 0.01 / (1 + step))
        optimizer.step()


def saved(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def same_state(one: torch.optim.Optimizer, other: torch.optim.Optimizer) -> bool:
    def flat(optimizer: torch.optim.Optimizer) -> list[Tensor]:
        state = optimizer.state_dict()
        return [
            torch.as_tensor(value)
            for row in [*state["state"].values(), *state["param_groups"]]
            for key, value in sorted(row.items())
            if isinstance(value, (Tensor, float)) and key != "step"
        ]

    pairs = zip(flat(one), flat(other), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("settings", WAYS)
def test_ten_steps_equal_five_plus_five_after_reloading(settings: OptimizerSettings) -> None:
    straight, own = parameters(), parameters()
    reference, optimizer = create(settings, straight), create(settings, own)
    walk(reference, straight, range(10))
    walk(optimizer, own, range(5))
    resumed = create(settings, own)
    resumed.load_state_dict(saved(optimizer))
    walk(resumed, own, range(5, 10))
    assert all(torch.equal(a, b) for a, b in zip(straight, own, strict=True))
    assert same_state(reference, resumed)


@pytest.mark.parametrize("settings", WAYS)
def test_state_loads_into_another_memory_format_and_with_other_kernels(
    settings: OptimizerSettings,
) -> None:
    straight, own = parameters(), parameters(channels_last=False)
    reference = create(settings, straight)
    walk(reference, straight, range(3))
    other = {"true": "false", "false": "auto"}[getattr(settings, "fused", "false")]
    resumed = create(changed(settings, fused=other), own)
    kernels = resumed.param_groups[0].get("fused")
    with torch.no_grad():
        for parameter, value in zip(own, straight, strict=True):
            parameter.copy_(value)
    resumed.load_state_dict(saved(reference))
    assert resumed.param_groups[0].get("fused") == kernels
    walk(reference, straight, range(3, 6))
    walk(resumed, own, range(3, 6))
    torch.testing.assert_close(own, straight, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("settings", WAYS)
@pytest.mark.parametrize("bad", [(0,), (0, 1, 4), (3,)])
@pytest.mark.parametrize("update", [step_unless, step_and_take_back])
def test_skipped_step_has_no_effect(
    settings: OptimizerSettings,
    bad: tuple[int, ...],
    update: Callable[[torch.optim.Optimizer, Tensor], None],
) -> None:
    straight, own = parameters(), parameters()
    reference, optimizer = create(settings, straight), create(settings, own)
    walk(reference, straight, [step for step in range(6) if step not in bad])
    for step in range(6):
        set_gradients(own, step)
        set_learning_rate(optimizer, 0.01 / (1 + step))
        if step in bad:
            assert own[0].grad is not None
            own[0].grad.fill_(float("inf"))
        update(optimizer, torch.tensor(float(step in bad)))
    assert all(torch.equal(a, b) for a, b in zip(straight, own, strict=True))
    assert same_state(reference, optimizer)


class ReadBacks(TorchDispatchMode):
    """Counts how often a tensor's value travels from the device to Python."""

    def __init__(self, watched: Tensor) -> None:
        super().__init__()
        self.watched = watched
        self.count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            self.count += args[0] is self.watched
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("settings", WAYS)
def test_flag_is_read_once_and_never_for_fused_kernels(
    settings: OptimizerSettings,
) -> None:
    own = parameters()
    optimizer = create(settings, own)
    flag = torch.tensor(0.0)
    for step in range(2):
        set_gradients(own, step)
        with ReadBacks(flag) as read:
            step_unless(optimizer, flag)
        assert read.count == (0 if getattr(settings, "fused", "false") == "true" else 1)


def test_missing_flag_means_update() -> None:
    own = parameters()
    before = [parameter.detach().clone() for parameter in own]
    optimizer = create(SETTINGS["momentum"], own)
    set_gradients(own, 0)
    step_unless(optimizer, None)
    assert not any(torch.equal(a, b) for a, b in zip(before, own, strict=True))


@pytest.mark.parametrize("settings", WAYS)
def test_parameters_of_two_dtypes_in_one_group_are_both_updated(
    settings: OptimizerSettings,
) -> None:
    own = parameters()
    own[1].data = own[1].data.to(torch.bfloat16)
    before = [parameter.detach().clone() for parameter in own]
    optimizer = create(settings, own)
    set_gradients(own, 0)
    optimizer.step()
    assert all(not torch.equal(a, b) for a, b in zip(before, own, strict=True))
    assert own[1].dtype == torch.bfloat16


@pytest.mark.parametrize("settings", WAYS)
def test_parameter_without_a_gradient_is_left_alone(settings: OptimizerSettings) -> None:
    own = parameters()
    optimizer = create(settings, own)
    set_gradients(own, 0)
    own[1].grad = None
    before = own[1].detach().clone()
    optimizer.step()
    assert torch.equal(own[1], before)


@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam", "rmsprop", "adagrad"])
def test_decay_is_the_gradient_of_the_regularization_loss(kind: str) -> None:
    by_loss, by_decay = parameters(), parameters()
    plain = of_kind(OptimizerSettings, kind, learning_rate=0.01)
    decaying = of_kind(OptimizerSettings, kind, learning_rate=0.01, weight_decay=0.1)
    optimizer = create(plain, by_loss)
    decayed = create(decaying, by_decay)
    for step in range(3):
        set_gradients(by_loss, step)
        set_gradients(by_decay, step)
        loss = sum((0.05 * p.square().sum() for p in by_loss[:2]), torch.zeros(()))
        torch.testing.assert_close(regularization(decayed.param_groups), loss.detach())
        loss.backward()
        optimizer.step()
        decayed.step()
    torch.testing.assert_close(by_decay, by_loss, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["adamw", "lamb"])
def test_decoupled_decay_adds_nothing_to_the_loss(kind: str) -> None:
    optimizer = create(of_kind(OptimizerSettings, kind, weight_decay=0.1), parameters())
    assert regularization(optimizer.param_groups).item() == 0.0


def test_regularization_of_16_bit_weights_is_summed_in_32_bits() -> None:
    weight = nn.Parameter(torch.full((1000,), 10.0, dtype=torch.float16))
    settings = Sgd(weight_decay=1.0)
    optimizer = create_optimizer(settings, [weight], [], device_type="cpu")
    assert regularization(optimizer.param_groups).item() == pytest.approx(50000.0)


def test_adamw_with_correction_equals_torchs() -> None:
    own, theirs = parameters(), parameters()
    settings = AdamW(weight_decay=0.1, learning_rate=0.01)
    optimizer = create_optimizer(settings, own, [], device_type="cpu")
    reference = torch.optim.AdamW(theirs, lr=0.01, weight_decay=0.1)
    for step in range(5):
        set_gradients(own, step)
        set_gradients(theirs, step)
        optimizer.step()
        reference.step()
    torch.testing.assert_close(own, theirs)


@pytest.mark.parametrize("kind", FUSED_KINDS)
def test_fused_kernels_are_used_if_the_device_has_them(kind: str) -> None:
    own = parameters()
    here = create_optimizer(of_kind(OptimizerSettings, kind), own, [], device_type="cpu")
    assert here.param_groups[0]["fused"] is True
    there = create_optimizer(of_kind(OptimizerSettings, kind), own, [], device_type="npu")
    assert not there.param_groups[0]["fused"]


@pytest.mark.parametrize("kind", ["adamw", "adagrad", "adam"])
def test_missing_fused_kernel_is_refused(kind: str) -> None:
    with pytest.raises(UserError, match=f"no fused kernel for '{kind}' on npu"):
        create_optimizer(
            of_kind(OptimizerSettings, kind, fused="true"), parameters(), [], device_type="npu"
        )


@pytest.mark.parametrize(
    "settings",
    [
        Adam(bias_correction="variable"),
        Momentum(nesterov=True, momentum=0.0),
    ],
)
def test_conflicting_settings_are_refused(settings: OptimizerSettings) -> None:
    with pytest.raises(UserError):
        checked(settings)


def test_state_of_another_model_is_refused() -> None:
    optimizer = create(SETTINGS["momentum"], parameters())
    state = saved(optimizer)
    state["state"][1]["momentum_buffer"] = torch.zeros(1)
    with pytest.raises(ValueError, match="but the parameter has shape"):
        create(SETTINGS["momentum"], parameters()).load_state_dict(state)


def test_per_variable_correction_counts_decayed_parameters_first_without_an_order() -> None:
    one, other = parameters(), parameters()
    for own, order in ((one, ()), (other, other)):
        optimizer = create_optimizer(
            SETTINGS["lamb of Ascend"], own[:2], own[2:], device_type="cpu", order=order
        )
        walk(optimizer, own, range(2))
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@dataclass(frozen=True, kw_only=True)
class SignOfGradient(OptimizerSettings, kind="own sign"):
    """Somebody's own optimizer: plain descent by the sign."""

    shrink: float = setting(0.5, "factor on the rate", minimum=0.0)

    def build(self, trained: Trained) -> torch.optim.Optimizer:
        return torch.optim.SGD(trained.groups, lr=self.learning_rate * self.shrink)


def test_custom_kind_is_selected_by_name_and_accepts_only_its_fields() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Owner:
        optimizer: OptimizerSettings = Momentum(learning_rate=0.2)  # noqa: RUF009

    made = override(Owner(), ["optimizer=own sign", "optimizer.shrink=0.25"]).optimizer
    assert made == SignOfGradient(learning_rate=0.2, shrink=0.25)
    assert create(made, parameters()).param_groups[0]["lr"] == pytest.approx(0.05)
    with pytest.raises(UserError, match="'own sign' has no field 'nesterov'") as refused:
        override(Owner(), ["optimizer=own sign", "optimizer.nesterov=true"])
    assert "belongs to momentum" in refused.value.todo


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_kind_keeps_its_named_slots(settings: OptimizerSettings) -> None:
    own = parameters()
    optimizer = create(settings, own)
    walk(optimizer, own, range(1))
    kept = {
        name
        for name, value in optimizer.state[own[0]].items()
        if isinstance(value, Tensor) and value.shape == own[0].shape
    }
    assert kept == set(settings.slots)
