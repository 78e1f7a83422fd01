"""Ten steps of each of the originals' optimizers, clipping and averages, from `optimizers.npz`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from jumar.training.clipping import clip_gradients
from jumar.training.ema import Ema
from jumar.training.optimizers import OptimizerSettings, create_optimizer
from tests.components import of_kind
from tests.parity.fixture import ParityCase

STEPS = 10
NAMES = ("dense/kernel", "dense/bias", "LayerNorm/gamma")

KINDS: Mapping[str, dict[str, Any]] = {
    "sgd": {"kind": "sgd"},
    "momentum": {"kind": "momentum"},
    "nesterov": {"kind": "momentum", "nesterov": True},
    "adam": {"kind": "adam"},
    "adam_eps1e-3": {"kind": "adam"},
    "adam_biggan": {"kind": "adam"},
    "rmsprop": {"kind": "rmsprop"},
    "adagrad": {"kind": "adagrad"},
    "bert_adamw_google": {"kind": "adamw", "bias_correction": "none"},
    "bert_adamw_ascend": {"kind": "adamw", "bias_correction": "none"},
    "bert_lamb_ascend": {"kind": "lamb", "bias_correction": "variable"},
}
FIELDS = {
    "lr": "learning_rate",
    "momentum": "momentum",
    "beta1": "beta1",
    "beta2": "beta2",
    "epsilon": "epsilon",
    "decay": "beta2",
    "initial_accumulator": "initial_accumulator",
    "weight_decay": "weight_decay",
}
SLOTS = {
    "Momentum": "momentum_buffer",
    "Adam": "exp_avg",
    "Adam_1": "exp_avg_sq",
    "adam_m": "exp_avg",
    "adam_v": "exp_avg_sq",
    "Adagrad": "sum",
    "RMSProp": "square_avg",
    "RMSProp_1": "momentum_buffer",
}
FUSED = {"sgd", "momentum", "adam", "adamw", "adagrad"}


def ways() -> Iterator[tuple[str, str]]:
    for name, settings in KINDS.items():
        yield name, "false"
        if settings["kind"] in FUSED:
            yield name, "true"


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "optimizers.npz")


def gradient(case: ParityCase, name: str, step: int) -> Tensor:
    """The gradient of a step; step 3 is made tiny and step 6 large, in float32 (the notes)."""
    factor = {3: np.float32(0.001), 6: np.float32(20)}.get(step, np.float32(1))
    return torch.from_numpy(np.asarray(case.input(f"grad:{name}")[step] * factor))


def parameters(case: ParityCase) -> dict[str, nn.Parameter]:
    return {
        name: nn.Parameter(torch.from_numpy(value)) for name, value in case.variables("all").items()
    }


def test_every_result_of_the_fixture_is_replayed(case: ParityCase) -> None:
    replayed = {f"{kind}/{name}" for kind in KINDS for name in NAMES}
    others = set(case.meta["results"]) - replayed
    slots = {key for key in others if key.split("/")[1] == "slot"}
    known = {f"slot/{name}/{slot}" for name in NAMES for slot in SLOTS}
    powers = {"slot/beta1_power", "slot/beta2_power"}
    assert {key.split("/", 1)[1] for key in slots} <= known | powers
    assert {key.split("/")[0] for key in others - slots} == {"clip", "ema"}


@pytest.mark.parametrize(("name", "fused"), list(ways()))
def test_ten_steps_and_slots_are_the_originals(case: ParityCase, name: str, fused: str) -> None:
    config = case.config[name]
    own = parameters(case)
    fields = {FIELDS[k]: v for k, v in config.items() if k in FIELDS}
    settings = of_kind(OptimizerSettings, **KINDS[name], fused=fused, **fields)
    excluded = config.get("exclude", [])
    undecayed = [key for key in own if any(pattern in key for pattern in excluded)]
    optimizer = create_optimizer(
        settings,
        [value for key, value in own.items() if key not in undecayed],
        [own[key] for key in undecayed],
        device_type="cpu",
        order=[own[key] for key in config.get("variable_order", own)],
    )
    trajectories: dict[str, list[np.ndarray]] = {key: [] for key in own}
    for step in range(STEPS):
        for key, parameter in own.items():
            parameter.grad = gradient(case, key, step)
        optimizer.step()
        for key, parameter in own.items():
            trajectories[key].append(parameter.detach().numpy().copy())
    for key in own:
        assert case.check(f"{name}/{key}", np.stack(trajectories[key]))
        assert case.error(f"{name}/{key}", np.stack(trajectories[key])) < 1e-6
    slots = [key for key in case.meta["results"] if key.startswith(f"{name}/slot/")]
    assert slots or name == "sgd"
    for key in slots:
        variable, _, slot = key.removeprefix(f"{name}/slot/").rpartition("/")
        if variable:
            assert case.check(key, optimizer.state[own[variable]][SLOTS[slot]].numpy())
        else:
            updates = float(optimizer.param_groups[0]["updates"])
            # TensorFlow keeps beta^(t+1), a product in float32, after t updates.
            beta = config["beta1" if slot == "beta1_power" else "beta2"]
            assert case.check(key, np.array(beta ** (updates + 1)))


@pytest.mark.parametrize(
    ("kind", "key", "factor"),
    [
        ("norm", "clip/by_norm_1/{}", 1.0),
        ("global_norm", "clip/by_global_norm_1/{}", 1.0),
        ("norm", "clip/small_by_norm_1/{}", 1e-3),
    ],
)
def test_clipped_gradients_are_the_originals(
    case: ParityCase, kind: str, key: str, factor: float
) -> None:
    own = parameters(case)
    for name, parameter in own.items():
        parameter.grad = gradient(case, name, 6) * np.float32(factor)
    norm = clip_gradients(own.values(), kind, 1.0)
    compared = [name for name in own if key.format(name) in case.meta["results"]]
    for name in compared:
        grad = own[name].grad
        assert grad is not None
        assert case.check(key.format(name), grad.numpy())
    assert compared
    assert norm is not None
    if factor == 1.0:
        assert case.check("clip/global_norm", norm.numpy())


@pytest.mark.parametrize(
    ("key", "decay", "warm_up"),
    [("ema/decay0.9", 0.9, False), ("ema/decay0.997_with_step", 0.997, True)],
)
def test_averages_are_the_originals(
    case: ParityCase, key: str, decay: float, warm_up: bool
) -> None:
    values = torch.from_numpy(case.input("ema_values"))
    model = nn.ParameterList([nn.Parameter(values[0].clone())])
    ema = Ema(model, decay=decay, warm_up=warm_up)
    averages: list[np.ndarray] = []
    for step, value in enumerate(values):
        with torch.no_grad():
            model[0].copy_(value)
        ema.update(step)
        averages.append(ema.state_dict()["0"].numpy().copy())
    assert case.check(key, np.stack(averages))
