"""Every kind of optimizer against its formula, computed by NumPy in float64 with odd constants."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from jumar.ground.errors import UserError
from jumar.training.optimizers.kinds import (
    Adagrad,
    Adam,
    AdamW,
    Lamb,
    Momentum,
    RmsProp,
    Sgd,
    WithFusedKernel,
)
from jumar.training.optimizers.optimizer import OptimizerSettings, create_optimizer, rate_of
from jumar.training.optimizers.tensorflow import TfAdam, TfLamb
from tests.components import accepted

Array = NDArray[np.float64]
State = dict[str, Array]
RATE, DECAY, STEPS = 0.03, 0.1, 4
STARTS = (np.array([[1.0, -2.0], [0.5, 3.0]]), np.array([0.25, -1.5, 2.0]))
"""Of two parameters, of which the first decays."""


def gradient(number: int, step: int) -> Array:
    """One of a parameter at a step, counted from 1."""
    places = np.arange(STARTS[number].size).reshape(STARTS[number].shape)
    return np.sin(1.0 + places + 3.0 * number + 2.0 * step)


def moments(state: State, gradient: Array, beta1: float, beta2: float) -> tuple[Array, Array]:
    zeros = np.zeros_like(gradient)
    state["m"] = beta1 * state.get("m", zeros) + (1 - beta1) * gradient
    state["v"] = beta2 * state.get("v", zeros) + (1 - beta2) * gradient**2
    return state["m"], state["v"]


Rule = Callable[[Array, Array, float, State, int, int], Array]
"""Parameter, gradient, weight decay, state, step from 1, number of the variable from 1."""


def sgd(p: Array, g: Array, decay: float, state: State, step: int, number: int) -> Array:
    return p - RATE * (g + decay * p)


def momentum(factor: float, nesterov: bool) -> Rule:
    def rule(p: Array, g: Array, decay: float, state: State, step: int, number: int) -> Array:
        g = g + decay * p
        state["a"] = factor * state.get("a", np.zeros_like(g)) + g
        return p - RATE * (g + factor * state["a"] if nesterov else state["a"])

    return rule


def adam(beta1: float, beta2: float, epsilon: float, corrected: bool) -> Rule:
    def rule(p: Array, g: Array, decay: float, state: State, step: int, number: int) -> Array:
        m, v = moments(state, g + decay * p, beta1, beta2)
        factor = math.sqrt(1 - beta2**step) / (1 - beta1**step) if corrected else 1.0
        return p - RATE * factor * m / (np.sqrt(v) + epsilon)

    return rule


def adamw(beta1: float, beta2: float, epsilon: float, corrected: bool) -> Rule:
    def rule(p: Array, g: Array, decay: float, state: State, step: int, number: int) -> Array:
        m, v = moments(state, g, beta1, beta2)
        if corrected:
            m, v = m / (1 - beta1**step), v / (1 - beta2**step)
        return p - RATE * (m / (np.sqrt(v) + epsilon) + decay * p)

    return rule


def lamb(beta1: float, beta2: float, epsilon: float, correction: str) -> Rule:
    def rule(p: Array, g: Array, decay: float, state: State, step: int, number: int) -> Array:
        m, v = moments(state, g, beta1, beta2)
        if correction != "none":
            count = step if correction == "step" else number
            m, v = m / (1 - beta1**count), v / (1 - beta2**count)
        r = m / (np.sqrt(v) + epsilon) + decay * p
        return p - RATE * np.linalg.norm(p) / np.linalg.norm(r) * r

    return rule


def rmsprop(decay2: float, factor: float, epsilon: float) -> Rule:
    def rule(p: Array, g: Array, decay: float, state: State, step: int, number: int) -> Array:
        g = g + decay * p
        state["s"] = decay2 * state.get("s", np.ones_like(g)) + (1 - decay2) * g**2
        moved = RATE * g / np.sqrt(state["s"] + epsilon)
        state["a"] = factor * state.get("a", np.zeros_like(g)) + moved
        return p - state["a"]

    return rule


def adagrad(start: float) -> Rule:
    def rule(p: Array, g: Array, decay: float, state: State, step: int, number: int) -> Array:
        g = g + decay * p
        state["s"] = state.get("s", np.full_like(g, start)) + g**2
        return p - RATE * g / np.sqrt(state["s"])

    return rule


BETAS: Mapping[str, float] = {"beta1": 0.7, "beta2": 0.95, "epsilon": 0.02}
CASES: dict[str, tuple[Callable[..., OptimizerSettings], dict[str, Any], Rule]] = {
    "sgd": (Sgd, {}, sgd),
    "momentum": (Momentum, {"momentum": 0.6}, momentum(0.6, False)),
    "nesterov": (Momentum, {"momentum": 0.6, "nesterov": True}, momentum(0.6, True)),
    "no momentum": (Momentum, {"momentum": 0.0}, sgd),
    "adam": (Adam, {**BETAS}, adam(0.7, 0.95, 0.02, True)),
    "adam without averages": (
        Adam,
        {"beta1": 0.0, "beta2": 0.0, "epsilon": 0.5},
        adam(0.0, 0.0, 0.5, True),
    ),
    "adam uncorrected": (
        Adam,
        {**BETAS, "bias_correction": "none"},
        adam(0.7, 0.95, 0.02, False),
    ),
    "adamw": (AdamW, {**BETAS}, adamw(0.7, 0.95, 0.02, True)),
    "adamw of BERT": (
        AdamW,
        {**BETAS, "bias_correction": "none"},
        adamw(0.7, 0.95, 0.02, False),
    ),
    "lamb": (Lamb, {**BETAS}, lamb(0.7, 0.95, 0.02, "step")),
    "lamb uncorrected": (
        Lamb,
        {**BETAS, "bias_correction": "none"},
        lamb(0.7, 0.95, 0.02, "none"),
    ),
    "lamb of Ascend": (
        Lamb,
        {**BETAS, "bias_correction": "variable"},
        lamb(0.7, 0.95, 0.02, "variable"),
    ),
    "rmsprop": (RmsProp, {"beta2": 0.8, "momentum": 0.6, "epsilon": 0.02}, rmsprop(0.8, 0.6, 0.02)),
    "adagrad": (Adagrad, {"initial_accumulator": 0.3}, adagrad(0.3)),
}
WAYS = [
    pytest.param(name, fused, id=f"{name}, fused={fused}")
    for name, (kind, _, _) in CASES.items()
    for fused in ((True, False) if issubclass(kind, WithFusedKernel) else (None,))
]


def built(name: str, fused: bool | None) -> tuple[torch.optim.Optimizer, list[nn.Parameter]]:
    kind, options, _ = CASES[name]
    if fused is not None:
        options = {**options, "fused": str(fused).lower()}
    settings = kind(learning_rate=RATE, weight_decay=DECAY, **options)
    own = [nn.Parameter(torch.tensor(start, dtype=torch.float32)) for start in STARTS]
    return create_optimizer(settings, own[:1], own[1:], device_type="cpu"), own


@pytest.mark.parametrize(("name", "fused"), WAYS)
def test_steps_match_the_formula(name: str, fused: bool | None) -> None:
    rule = CASES[name][2]
    optimizer, own = built(name, fused)
    expected, states = list(STARTS), [State(), State()]
    for step in range(1, STEPS + 1):
        for number, parameter in enumerate(own):
            g = gradient(number, step)
            parameter.grad = torch.tensor(g, dtype=torch.float32)
            decay = 0.0 if number else DECAY
            expected[number] = rule(expected[number], g, decay, states[number], step, number + 1)
        optimizer.step()
    for parameter, value in zip(own, expected, strict=True):
        np.testing.assert_allclose(parameter.detach().numpy(), value, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("name", "fused"), WAYS)
def test_groups_describe_their_update(name: str, fused: bool | None) -> None:
    optimizer, _ = built(name, fused)
    decoupled = name.startswith(("adamw", "lamb"))
    assert [
        (group["lr"], group["weight_decay"], group["decoupled_weight_decay"])
        for group in optimizer.param_groups
    ] == [(RATE, DECAY, decoupled), (RATE, 0.0, decoupled)]
    if fused is not None:
        assert {group["fused"] for group in optimizer.param_groups} == {fused}
        assert {group.get("foreach", not fused) for group in optimizer.param_groups} == {not fused}


def test_betas_match_the_original_scripts() -> None:
    """tf.train computes with betas rounded to float32, BERT's scripts with Python's."""
    own = [nn.Parameter(torch.zeros(1))]
    for settings, expected in (
        (Adam(), (float(np.float32(0.9)), float(np.float32(0.999)))),
        (Adam(bias_correction="none"), (0.9, 0.999)),
        (AdamW(bias_correction="none"), (0.9, 0.999)),
        (Lamb(), (0.9, 0.999)),
    ):
        optimizer = create_optimizer(settings, own, [], device_type="cpu")
        assert {group["betas"] for group in optimizer.param_groups} == {expected}


COMMON = {
    "learning_rate": (0.1, 0.0, None, False),
    "weight_decay": (0.0, 0.0, None, False),
    "layer_rates": ((), None, None, False),
    "layer_decay": (1.0, 0.0, 1.0, False),
}
FUSED = {**COMMON, "fused": ("auto", None, None, False)}
AVERAGING = {
    "beta1": (0.9, 0.0, 0.9999999, False),
    "beta2": (0.999, 0.0, 0.9999999, False),
    "epsilon": (1e-8, 0.0, None, False),
}
CORRECTED = {"bias_correction": ("step", None, None, False)}
FIELDS = {
    "sgd": FUSED,
    "momentum": {
        **FUSED,
        "momentum": (0.9, 0.0, 1.0, False),
        "nesterov": (False, None, None, False),
    },
    "adam": {**FUSED, **AVERAGING, **CORRECTED},
    "adamw": {**FUSED, **AVERAGING, **CORRECTED},
    "lamb": {**COMMON, **AVERAGING, **CORRECTED},
    "rmsprop": {
        **COMMON,
        "beta2": AVERAGING["beta2"],
        "momentum": (0.9, 0.0, 1.0, False),
        "epsilon": AVERAGING["epsilon"],
    },
    "adagrad": {**FUSED, "initial_accumulator": (0.1, 1e-30, None, False)},
}


def test_optimizer_kinds_have_the_expected_fields_defaults_and_limits() -> None:
    assert {kind: accepted(OptimizerSettings.kinds[kind]) for kind in FIELDS} == FIELDS


def test_kernel_is_used_as_requested_and_refused_if_missing() -> None:
    ways = {
        (fused, device): Adam(fused=fused).is_fused(device)
        for fused, device in (("auto", "cpu"), ("true", "cpu"), ("false", "cpu"), ("auto", "npu"))
    }
    assert list(ways.values()) == [True, True, False, False]
    assert not Adam(fused="false").is_fused("npu")
    with pytest.raises(UserError) as refused:
        Adagrad(fused="true").is_fused("npu")
    assert str(refused.value) == (
        "optimizer.fused: there is no fused kernel for 'adagrad' on npu\n"
        "  Use optimizer.fused=auto, which updates lists of tensors at once instead."
    )


def test_nesterovs_form_needs_momentum() -> None:
    Momentum(nesterov=True, momentum=1e-9).check()
    Momentum(momentum=0.0).check()
    with pytest.raises(UserError) as refused:
        Momentum(nesterov=True, momentum=0.0).check()
    assert str(refused.value) == (
        "optimizer.momentum: Nesterov's form requires a momentum above 0\n"
        "  For instance: optimizer.momentum=0.9, or optimizer.nesterov=false"
    )
    with pytest.raises(UserError, match="not a pattern"):
        Momentum(layer_rates=("stem",)).check()


def test_layer_rate_is_a_pattern_and_a_non_negative_factor() -> None:
    assert rate_of("classifier=10") == ("classifier", 10.0)
    assert rate_of(" stem.* = 0.5 ") == ("stem.*", 0.5)
    assert rate_of("stem=0") == ("stem", 0.0)
    for wrong in ("stem=-0.001", "stem=inf", "stem=nan", "stem=x", "stem", "=1", "  =1"):
        with pytest.raises(UserError) as refused:
            rate_of(wrong)
        assert str(refused.value) == (
            f"optimizer.layer_rates: '{wrong}' is not a pattern and a factor of 0 or more\n"
            "  For instance: --set optimizer.layer_rates=classifier=10,stem=0.1"
        )


def test_lamb_ratio_is_1_for_zero_weights_or_step() -> None:
    zero, still = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.tensor([3.0, 4.0]))
    settings = Lamb(learning_rate=0.5, beta1=0.0, beta2=0.0, epsilon=1.0)
    optimizer = create_optimizer(settings, [zero, still], [], device_type="cpu")
    zero.grad, still.grad = torch.tensor([1.0, -3.0]), torch.zeros(2)
    optimizer.step()
    # Steps of g / (|g| + 1), times the rate.
    torch.testing.assert_close(zero.detach(), torch.tensor([-0.25, 0.375]))
    assert torch.equal(still.detach(), torch.tensor([3.0, 4.0]))


def test_closure_is_called_once_with_gradients_and_its_loss_returned() -> None:
    own = nn.Parameter(torch.tensor([2.0]))
    optimizer = TfLamb(
        [{"params": [own], "weight_decay": 0.0}],
        lr=0.5,
        betas=(0.0, 0.0),
        epsilon=0.0,
        corrected=False,
        exponents={},
    )
    calls: list[float] = []

    def closure() -> float:
        loss = 3.0 * own.sum()
        loss.backward()
        calls.append(loss.item())
        return loss.item()

    with torch.no_grad():
        assert optimizer.step(closure) == 6.0
    assert calls == [6.0]
    torch.testing.assert_close(own.detach(), torch.tensor([1.0]))
    own.grad = None
    assert optimizer.step() is None
    assert own.item() == 1.0


def test_decoupled_decay_with_correction_is_left_to_torch() -> None:
    with pytest.raises(ValueError, match=r"with bias correction is torch\.optim\.AdamW"):
        TfAdam(
            [{"params": [nn.Parameter(torch.zeros(1))]}],
            lr=0.1,
            betas=(0.9, 0.999),
            epsilon=1e-8,
            corrected=True,
            decoupled=True,
            fused=False,
        )
