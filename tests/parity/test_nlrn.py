"""NLRN against the numbers of the original in TensorFlow 1.15."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from jumar.models.nlrn import NLRN, tf_variables
from jumar.training.clipping import clip_gradients
from jumar.training.optimizers import Adam, create_optimizer
from jumar.training.schedules import Piecewise, learning_rate
from tests.parity.fixture import ParityCase

Results = dict[str, NDArray[Any]]

STEPS = 5
RECORDED_SUMS = (1, 6, 12)
"""The fixture calls them states after that many recurrences; by their values they are the first,
sixth and twelfth sum of the graph, of which each recurrence has two: one at the end of its
non-local part and one at its own end."""

ZERO_BUT_FOR_ROUNDING = {
    # A bias before a batch norm, which takes the mean away again. `conv1` and `RB1_b` end in the
    # next step's norm, `g` in the norm after the non-local part.
    "conv1/bias": "conv1/kernel",
    "rnn/non_local_g/bias": "rnn/non_local_g/kernel",
    "rnn/RB1_a/bias": "rnn/RB1_a/kernel",
    "rnn/RB1_b/bias": "rnn/RB1_b/kernel",
    # One number added to a whole row of similarities, which the softmax takes away again.
    "rnn/non_local_phi/bias": "rnn/non_local_phi/kernel",
}


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "nlrn.npz")


@pytest.fixture(scope="module")
def results(case: ParityCase) -> Results:
    """Everything that the original computed, computed here."""
    found: Results = {}
    evaluate(case, found)
    train(case, found)
    return found


def evaluate(case: ParityCase, found: Results) -> None:
    """Outputs and three states of twelve recurrences, with the moving statistics."""
    model = NLRN(steps=12, filters=case.config["num_filters"]).eval()
    load(case, model, "steps12")
    sums: list[torch.Tensor] = []
    for module in (model.recurrence.non_local, model.recurrence):
        module.register_forward_hook(lambda _module, _inputs, output: sums.append(output.clone()))
    for number in (0, 1):
        sums.clear()
        with torch.no_grad():
            output = model(nchw(case.input(f"image{number}")))
        found[f"eval12/output{number}"] = nhwc(output)
        for position in RECORDED_SUMS:
            found[f"eval12/state{number}_{position}"] = nhwc(sums[position - 1])


def train(case: ParityCase, found: Results) -> None:
    """Five clipped steps of Adam across the boundaries of the learning rate."""
    config = case.config
    model = NLRN(steps=2, filters=config["num_filters"]).train()
    load(case, model, "steps2")
    source, target = nchw(case.input("source")), nchw(case.input("target"))
    parameters = dict(model.named_parameters())
    base = config["learning_rate_values"][0]
    optimizer = create_optimizer(
        Adam(learning_rate=base),
        [],
        list(parameters.values()),
        device_type="cpu",
    )
    schedule = Piecewise(
        boundaries=tuple(f"{step}it" for step in config["learning_rate_boundaries"]),
        values=tuple(rate / base for rate in config["learning_rate_values"]),
    )
    for step in range(STEPS):
        output = model(source)
        loss = central_loss(output, target)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            found["train2/output"] = nhwc(output.detach())
            found["train2/loss"] = loss.detach().numpy()
            for variable in tf_variables(model):
                if variable.name in parameters:
                    gradient = parameters[variable.name].grad
                    assert gradient is not None
                    key = f"train2/grad/{variable.tf_name}"
                    found[key] = variable.to_tensorflow(gradient)
        clip_gradients(parameters.values(), "norm", config["clip_norm"])
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(
                schedule, base, step, steps_per_epoch=STEPS, total_steps=STEPS
            )
        optimizer.step()
        if step + 1 in (1, STEPS):
            state = model.state_dict()
            for variable in tf_variables(model):
                key = f"train2/step{step + 1}/{variable.tf_name}"
                found[key] = variable.to_tensorflow(state[variable.name])
    with torch.no_grad():
        found["train2/loss_after5"] = central_loss(model(source), target).numpy()


def central_loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    top, left = output.shape[2] // 2 - 2, output.shape[3] // 2 - 2
    centre = (..., slice(top, top + 5), slice(left, left + 5))
    return (output[centre] - target[centre]).square().mean()


def load(case: ParityCase, model: NLRN, group: str) -> None:
    values = case.variables(group)
    state = {v.name: v.to_torch(values[v.tf_name]) for v in tf_variables(model)}
    counters = {n: v for n, v in model.state_dict().items() if n.endswith("num_batches_tracked")}
    model.load_state_dict(state | counters)


def nchw(values: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values.transpose(0, 3, 1, 2)))


def nhwc(values: torch.Tensor) -> NDArray[Any]:
    return values.permute(0, 2, 3, 1).numpy().copy()


def test_every_result_of_the_original_is_within_its_tolerance(
    case: ParityCase, results: Results
) -> None:
    noise = case.check_all(results)
    assert noise == {f"train2/grad/{name}" for name in ZERO_BUT_FOR_ROUNDING}


def test_gradients_that_are_zero_but_for_rounding_are_so_here(results: Results) -> None:
    for name, kernel in ZERO_BUT_FOR_ROUNDING.items():
        limit = 1e-4 * np.abs(results[f"train2/grad/{kernel}"]).max()
        assert np.abs(results[f"train2/grad/{name}"]).max() < limit, name


@pytest.mark.parametrize("steps", [2, 12])
def test_variables_are_those_of_the_original_in_its_order(case: ParityCase, steps: int) -> None:
    model = NLRN(steps=steps, filters=case.config["num_filters"])
    group = case.meta["variables"][f"steps{steps}"]
    originals = [(name, tuple(shape)) for name, shape, *_ in group]
    state = model.state_dict()
    ours = [(v.tf_name, v.to_tensorflow(state[v.name]).shape) for v in tf_variables(model)]
    assert ours == originals
    unmapped = set(state) - {v.name for v in tf_variables(model)}
    assert all(name.endswith("num_batches_tracked") for name in unmapped)
