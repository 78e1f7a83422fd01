"""ViDeNN's two networks against the numbers of the original in TensorFlow 1.15."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from jumar.models.videnn import SpatialCNN, Temp3CNN, tf_variables
from jumar.training.optimizers import Adam, create_optimizer
from tests.parity.fixture import ParityCase
from tests.parity.undecided import with_doubt

Results = dict[str, NDArray[Any]]
Model = SpatialCNN | Temp3CNN

STEPS = 2
MEMORY_FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


@pytest.fixture(scope="module", params=["videnn_spatial", "videnn_temp3"])
def case(parity: Path, request: pytest.FixtureRequest) -> ParityCase:
    return ParityCase(parity / f"{request.param}.npz")


def create(case: ParityCase) -> Model:
    return SpatialCNN() if case.config["channels"] == 3 else Temp3CNN()


def everything(case: ParityCase, memory_format: torch.memory_format) -> Results:
    """Everything that the original computed, computed here in float64, on any processor alike."""
    groups = case.meta["variables"]
    clean = case.input("clean")
    noisy = nchw(case.input("noise") + clean).contiguous(memory_format=memory_format).double()
    target = nchw(clean[..., 3:6] if clean.shape[-1] == 9 else clean).double()
    model = create(case).to(memory_format=memory_format).double()
    result: Results = {}

    def loss_of(output: torch.Tensor) -> torch.Tensor:
        return 0.5 * (target - output).square().sum() / case.config["loss_batch_size"]

    load(case, model, "eval")
    with torch.no_grad():
        output = model.eval()(noisy)
    result["eval/output"], result["eval/loss"] = nhwc(output), loss_of(output).numpy()

    load(case, model, "train" if "train" in groups else "eval")
    model.train()
    settings = Adam(learning_rate=case.config["learning_rate"])
    parameters = dict(model.named_parameters())
    optimizer = create_optimizer(settings, [], list(parameters.values()), device_type="cpu")
    for step in range(1, STEPS + 1):
        output = model(noisy)
        loss = loss_of(output)
        optimizer.zero_grad()
        loss.backward()
        if step == 1:
            result["train/output"] = nhwc(output.detach())
            result["train/loss"] = loss.detach().numpy()
        optimizer.step()
        state = model.state_dict()
        for variable in tf_variables(model):
            parameter = parameters.get(variable.name)
            if step == 1 and parameter is not None:
                assert parameter.grad is not None
                result[f"grad/{variable.tf_name}"] = variable.to_tensorflow(parameter.grad)
            if step == STEPS or parameter is None:
                values = variable.to_tensorflow(state[variable.name])
                result[f"step{step}/{variable.tf_name}"] = values
    return result


def load(case: ParityCase, model: Model, group: str) -> None:
    values = case.variables(group)
    state = {v.name: v.to_torch(values[v.tf_name]) for v in tf_variables(model)}
    counters = {n: v for n, v in model.state_dict().items() if n.endswith("num_batches_tracked")}
    model.load_state_dict(state | counters)


def nchw(values: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values.transpose(0, 3, 1, 2)))


def nhwc(values: torch.Tensor) -> NDArray[Any]:
    return values.permute(0, 2, 3, 1).numpy()


def test_every_result_matches_the_original_within_tolerance(case: ParityCase) -> None:
    # Of the temporal network tests/models/test_videnn.py compares the formats, on small frames.
    names = MEMORY_FORMATS if case.config["channels"] == 3 else ("contiguous",)
    for name in names:
        result, doubt = with_doubt(lambda name=name: everything(case, MEMORY_FORMATS[name]))
        assert case.check_all(result, doubt) == set(), name


def test_variables_match_the_original_in_order(case: ParityCase) -> None:
    model = create(case)
    group = next(iter(case.meta["variables"].values()))
    originals = [(name, tuple(shape)) for name, shape, *_ in group]
    state = model.state_dict()
    ours = [(v.tf_name, v.to_tensorflow(state[v.name]).shape) for v in tf_variables(model)]
    assert ours == originals
    unmapped = set(state) - {v.name for v in tf_variables(model)}
    assert all(name.endswith("num_batches_tracked") for name in unmapped)
