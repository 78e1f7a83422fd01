"""NLRN against the numbers of the original in TensorFlow 1.15."""

import re
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

STATE = re.compile(r"eval(\d+)/state(\d+)_(\d+)")
"""The fixture calls them states after that many recurrences; by their values they are sums of the
graph with that number, of which each recurrence has two: one at the end of its non-local part and
one at its own end."""
OUTPUT, STEP = re.compile(r"eval(\d+)/output(\d+)"), re.compile(r"train(\d+)/step(\d+)/")
AFTER = re.compile(r"train(\d+)/loss_after(\d+)")

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
    result: Results = {}
    for recurrences in {int(matched[1]) for matched in matches(case, OUTPUT)}:
        evaluate(case, recurrences, result)
    for recurrences in {int(matched[1]) for matched in matches(case, STEP)}:
        train(case, recurrences, result)
    return result


def matches(case: ParityCase, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """The names of results with a form."""
    return [matched for key in case.meta["results"] if (matched := pattern.match(key))]


def evaluate(case: ParityCase, recurrences: int, result: Results) -> None:
    """Outputs and some states, with the moving statistics."""
    model = NLRN(steps=recurrences, filters=case.config["num_filters"]).eval()
    load(case, model, f"steps{recurrences}")
    sums: list[torch.Tensor] = []
    for module in (model.recurrence.non_local, model.recurrence):
        module.register_forward_hook(lambda _module, _inputs, output: sums.append(output.clone()))
    for number in {int(matched[2]) for matched in matches(case, OUTPUT)}:
        sums.clear()
        with torch.no_grad():
            output = model(nchw(case.input(f"image{number}")))
        result[f"eval{recurrences}/output{number}"] = nhwc(output)
        for matched in matches(case, STATE):
            if (int(matched[1]), int(matched[2])) == (recurrences, number):
                result[matched[0]] = nhwc(sums[int(matched[3]) - 1])


def train(case: ParityCase, recurrences: int, result: Results) -> None:
    """Clipped steps of Adam across the boundaries of the learning rate."""
    config, prefix = case.config, f"train{recurrences}"
    kept = {int(matched[2]) for matched in matches(case, STEP)}
    steps = max(kept | {int(matched[2]) for matched in matches(case, AFTER)})
    model = NLRN(steps=recurrences, filters=config["num_filters"]).train()
    load(case, model, f"steps{recurrences}")
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
    for step in range(steps):
        output = model(source)
        loss = central_loss(output, target)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            result[f"{prefix}/output"] = nhwc(output.detach())
            result[f"{prefix}/loss"] = loss.detach().numpy()
            for variable in tf_variables(model):
                if variable.name in parameters:
                    gradient = parameters[variable.name].grad
                    assert gradient is not None
                    key = f"{prefix}/grad/{variable.tf_name}"
                    result[key] = variable.to_tensorflow(gradient)
        clip_gradients(parameters.values(), "norm", config["clip_norm"])
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(
                schedule, base, step, steps_per_epoch=steps, total_steps=steps
            )
        optimizer.step()
        if step + 1 in kept:
            state = model.state_dict()
            for variable in tf_variables(model):
                key = f"{prefix}/step{step + 1}/{variable.tf_name}"
                result[key] = variable.to_tensorflow(state[variable.name])
    with torch.no_grad():
        result[f"{prefix}/loss_after{steps}"] = central_loss(model(source), target).numpy()


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


def test_every_result_matches_the_original_within_tolerance(
    case: ParityCase, results: Results
) -> None:
    noise = case.check_all(results)
    assert zero_but_for_rounding(case) <= noise
    assert len(noise) <= 0.1 * len(results)


def test_gradients_that_are_zero_up_to_rounding_match(case: ParityCase, results: Results) -> None:
    for key in zero_but_for_rounding(case):
        prefix, _, name = key.partition("/grad/")
        limit = 1e-4 * np.abs(results[f"{prefix}/grad/{ZERO_BUT_FOR_ROUNDING[name]}"]).max()
        assert np.abs(results[key]).max() < limit, key


def zero_but_for_rounding(case: ParityCase) -> set[str]:
    prefixes = {matched[1] for matched in matches(case, STEP)}
    return {f"train{prefix}/grad/{name}" for prefix in prefixes for name in ZERO_BUT_FOR_ROUNDING}


def test_variables_match_the_original_in_order(case: ParityCase) -> None:
    for group in case.meta["variables"]:
        in_order(case, group)


def in_order(case: ParityCase, group: str) -> None:
    """The variables of a group of the fixture are ours."""
    model = NLRN(steps=int(group.removeprefix("steps")), filters=case.config["num_filters"])
    originals = [(name, tuple(shape)) for name, shape, *_ in case.meta["variables"][group]]
    state = model.state_dict()
    ours = [(v.tf_name, v.to_tensorflow(state[v.name]).shape) for v in tf_variables(model)]
    assert ours == originals
    unmapped = set(state) - {v.name for v in tf_variables(model)}
    assert all(name.endswith("num_batches_tracked") for name in unmapped)
