"""Ten steps of each of the originals' optimizers, clipping and averages, from `optimizers.npz`."""

import re
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

KINDS: Mapping[str, dict[str, Any]] = {
    "sgd": {"kind": "sgd"},
    "momentum": {"kind": "momentum"},
    "nesterov": {"kind": "momentum", "nesterov": True},
    "adam": {"kind": "adam"},
    "rmsprop": {"kind": "rmsprop"},
    "adagrad": {"kind": "adagrad"},
    "bert_adamw": {"kind": "adamw", "bias_correction": "none"},
    "bert_lamb": {"kind": "lamb", "bias_correction": "variable"},
}
"""What the name of a case is, or begins with before an underscore."""
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


def kind_of(name: str) -> dict[str, Any]:
    """The optimizer of a case."""
    (kind,) = (kind for kind in KINDS if name == kind or name.startswith(f"{kind}_"))
    return KINDS[kind]


def ways(case: ParityCase) -> Iterator[tuple[str, str]]:
    for name in case.config:
        yield name, "false"
        if kind_of(name)["kind"] in FUSED:
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


def test_every_fixture_result_is_reproduced(case: ParityCase) -> None:
    names = list(case.variables("all"))
    replayed = {f"{kind}/{name}" for kind in case.config for name in names}
    others = set(case.meta["results"]) - replayed
    slots = {key for key in others if key.split("/")[1] == "slot"}
    known = {f"slot/{name}/{slot}" for name in names for slot in SLOTS}
    powers = {"slot/beta1_power", "slot/beta2_power"}
    assert {key.split("/", 1)[1] for key in slots} <= known | powers
    assert {key.split("/")[0] for key in others - slots} == {"clip", "ema"}


def test_steps_and_slots_match_the_original_in_every_case(case: ParityCase) -> None:
    for name, fused in ways(case):
        steps_and_slots(case, name, fused)


def steps_and_slots(case: ParityCase, name: str, fused: str) -> None:
    """Make the steps of a case and compare each of them, and then the optimizer's state."""
    config = case.config[name]
    own = parameters(case)
    fields = {FIELDS[k]: v for k, v in config.items() if k in FIELDS}
    settings = of_kind(OptimizerSettings, **kind_of(name), fused=fused, **fields)
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
    for step in range(len(case.input(f"grad:{next(iter(own))}"))):
        for key, parameter in own.items():
            parameter.grad = gradient(case, key, step)
        optimizer.step()
        for key, parameter in own.items():
            trajectories[key].append(parameter.detach().numpy().copy())
    for key in own:
        assert case.check(f"{name}/{key}", np.stack(trajectories[key])), (name, fused)
        assert case.error(f"{name}/{key}", np.stack(trajectories[key])) < 1e-6, (name, fused)
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


def test_clipped_gradients_match_the_original(case: ParityCase) -> None:
    prefixes = {key.split("/")[1] for key in case.meta["results"] if key.startswith("clip/")}
    prefixes.remove("global_norm")
    for prefix in prefixes:
        matched = re.fullmatch(r"(small_)?by_(norm|global_norm)_([\d.]+)", prefix)
        assert matched, prefix
        own, factor = parameters(case), 1e-3 if matched[1] else 1.0
        for name, parameter in own.items():
            parameter.grad = gradient(case, name, 6) * np.float32(factor)
        norm = clip_gradients(own.values(), matched[2], float(matched[3]))
        compared = [name for name in own if f"clip/{prefix}/{name}" in case.meta["results"]]
        for name in compared:
            grad = own[name].grad
            assert grad is not None
            assert case.check(f"clip/{prefix}/{name}", grad.numpy())
        assert compared
        assert norm is not None
        if factor == 1.0:
            assert case.check("clip/global_norm", norm.numpy())
    assert prefixes


def test_averages_match_the_original(case: ParityCase) -> None:
    keys = [key for key in case.meta["results"] if key.startswith("ema/")]
    for key in keys:
        decay, _, with_step = key.removeprefix("ema/decay").partition("_")
        averaged(case, key, float(decay), bool(with_step))
    assert keys


def averaged(case: ParityCase, key: str, decay: float, warm_up: bool) -> None:
    """Average a case's values and compare each average."""
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
