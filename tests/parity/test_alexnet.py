"""AlexNet against the numbers of the original in TensorFlow 1.15.

In a run of the original the update of a kernel may come before the gradient has passed through it
(`update_race.py`). Whether it did shows in the weights of the layers below.
"""

from collections.abc import Collection, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from jumar.models.alexnet import AlexNet, decays, tf_variables
from tests.parity.fixture import ParityCase
from tests.parity.update_race import train_step

Results = dict[str, NDArray[Any]]
Races = Mapping[int, Collection[str]]
"""By step, the layers whose kernels changed before the gradient had passed through them."""


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "alexnet.npz")


def replay(case: ParityCase, races: Races) -> Results:
    """Everything that the original computed, computed here."""
    config = case.config
    model = AlexNet(num_classes=config["num_classes"], dropout=0.0)
    model.load_state_dict(imported(case, model))
    # Float32 kernels of other processors move a value near zero across the step of a ReLU, which
    # changes gradients a hundred times as much as the tolerance allows.
    model.double()
    images = torch.from_numpy(case.input("images").transpose(0, 3, 1, 2).copy()).double()
    labels = torch.from_numpy(case.input("labels").astype(np.int64))
    found: Results = {}

    def base_loss(logits: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(logits, labels, label_smoothing=config["label_smoothing"])

    handles = watch_activations(model, found)
    logits = model(images)
    base = base_loss(logits)
    found["logits"] = logits.detach().numpy()
    for handle in handles:
        handle.remove()
    l2 = config["weight_decay"] * sum(0.5 * p.square().sum() for p in model.parameters())
    base.backward(retain_graph=True)
    without_decay = [parameter.grad.clone() for parameter in model.parameters()]
    l2.backward()
    for name, value in {"base": base, "l2": l2, "total": base + l2}.items():
        found[f"loss/{name}"] = value.detach().numpy()
    parameters = dict(model.named_parameters())
    for variable in tf_variables(model):
        gradient = parameters[variable.name].grad
        assert gradient is not None
        found[f"grad/{variable.tf_name}"] = variable.to_tensorflow(gradient)

    def backward(model: AlexNet) -> None:
        model.zero_grad()
        base_loss(model(images)).backward()

    def create(model: AlexNet) -> torch.optim.Optimizer:
        return torch.optim.SGD(
            [p for name, p in model.named_parameters() if decays(name, p)],
            lr=config["learning_rate"],
            momentum=config["momentum"],
            nesterov=config["nesterov"],
            weight_decay=config["weight_decay"],
        )

    optimizer = create(model)
    for step in (1, 2):
        if step == 1 and not races.get(1):
            for parameter, gradient in zip(model.parameters(), without_decay, strict=True):
                parameter.grad = gradient
            optimizer.step()
        else:
            train_step(model, optimizer, create, backward, races.get(step, ()))
        for variable in tf_variables(model):
            values = variable.to_tensorflow(parameters[variable.name])
            found[f"step{step}/{variable.tf_name}"] = values.copy()
    with torch.no_grad():
        found["loss_after/base"] = base_loss(model(images)).numpy()
    return found


def replay_with_races(case: ParityCase) -> Results:
    """The replay with those races that bring the layers below closer to the original."""
    races: dict[int, list[str]] = {1: [], 2: []}
    best = replay(case, races)
    with torch.device("meta"):
        model = AlexNet(num_classes=case.config["num_classes"])
    kernels = {v.name.removesuffix(".weight"): v.tf_name for v in tf_variables(model)}
    for step, layers in races.items():
        for layer, lower in pairwise(reversed(model.layer_order())):
            key = f"step{step}/{kernels[lower]}"
            if case.error(key, best[key]) <= (case.tolerance(key) or 0.0):
                continue
            other = replay(case, {**races, step: [*layers, layer]})
            if case.error(key, other[key]) < case.error(key, best[key]):
                layers.append(layer)
                best = other
    return best


def imported(case: ParityCase, model: AlexNet) -> dict[str, torch.Tensor]:
    values = case.variables("all")
    return {v.name: v.to_torch(values[v.tf_name]) for v in tf_variables(model)}


def watch_activations(model: AlexNet, found: Results) -> list[Any]:
    """Record the outputs of the seven hidden ReLUs and the three poolings, channels last."""
    counts = {"relu": 0, "pool": 0}

    def record(kind: str) -> Any:
        def hook(module: Any, inputs: Any, output: torch.Tensor) -> None:
            counts[kind] += 1
            if kind == "relu" and counts[kind] > 7:
                return
            values = output.detach().numpy().copy()
            found[f"{kind}{counts[kind]}"] = values if values.ndim == 2 else channels_last(values)

        return hook

    return [
        model.relu.register_forward_hook(record("relu")),
        model.pool.register_forward_hook(record("pool")),
    ]


def channels_last(values: NDArray[Any]) -> NDArray[Any]:
    return values.transpose(0, 2, 3, 1)


def test_every_result_matches_the_original_within_tolerance(case: ParityCase) -> None:
    results = replay(case, {})
    try:
        assert case.check_all(results) == set()
    except AssertionError:
        assert case.check_all(replay_with_races(case)) == set()


def test_variables_match_the_original_in_order(case: ParityCase) -> None:
    with torch.device("meta"):
        model = AlexNet(num_classes=case.config["num_classes"])
    originals = [(name, tuple(shape)) for name, shape, *_ in case.meta["variables"]["all"]]
    state = model.state_dict()
    ours: list[tuple[str, tuple[int, ...]]] = []
    for variable in tf_variables(model):
        exported = variable.to_tensorflow(torch.empty(state[variable.name].shape))
        ours.append((variable.tf_name, exported.shape))
    assert ours == originals
    assert sorted(v.name for v in tf_variables(model)) == sorted(state)
