"""ResNeXt-50 against the numbers of the original in TensorFlow 1.15.

Both ways of computing the 1x1 convolutions are replayed: with channels_last they are matrix
products on a CPU. What is trained is replayed in float64, since the sign of a ReLU input next to
zero is chance in float32.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from jumar.models.resnext import ResNeXt50, decays, tf_variables
from tests.parity.fixture import ParityCase
from tests.parity.undecided import with_doubt

Results = dict[str, NDArray[Any]]
Replay = tuple[Results, Callable[[], Results]]
"""What was computed, and how far it may be off."""

MEMORY_FORMATS = {
    "contiguous": torch.contiguous_format,
    "channels_last": torch.channels_last,
}


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "resnext50.npz")


@pytest.fixture(scope="module", params=list(MEMORY_FORMATS))
def replay(case: ParityCase, request: pytest.FixtureRequest) -> Replay:
    """Everything that the original computed, in one memory format, and how far it may be off."""
    memory_format = MEMORY_FORMATS[request.param]
    model = ResNeXt50(num_classes=case.config["num_classes"]).to(memory_format=memory_format)
    images = torch.from_numpy(case.input("images").transpose(0, 3, 1, 2).copy())
    images = images.contiguous(memory_format=memory_format)
    labels = torch.from_numpy(case.input("labels").astype(np.int64))
    result: Results = {}
    evaluate(case, model, images, labels, result)
    model.double()

    def trained() -> Results:
        results: Results = {}
        model.zero_grad()
        train(case, model, images.double(), labels, results)
        return results

    ours, doubt = with_doubt(trained)
    return result | ours, doubt


@pytest.fixture
def results(replay: Replay) -> Results:
    return replay[0]


def evaluate(
    case: ParityCase,
    model: ResNeXt50,
    images: torch.Tensor,
    labels: torch.Tensor,
    result: Results,
) -> None:
    """Logits, loss and every activation with the moving statistics."""
    model.load_state_dict(imported(case, model, "eval"))
    model.eval()
    names = activation_names()

    def record(module: Any, inputs: Any, output: torch.Tensor) -> None:
        result[f"eval/act/{next(names)}"] = output.permute(0, 2, 3, 1).numpy().copy()

    watched = [m for m in model.modules() if isinstance(m, torch.nn.ReLU)] + [model.pool]
    handles = [module.register_forward_hook(record) for module in watched]
    with torch.no_grad():
        logits = model(images)
    for handle in handles:
        handle.remove()
    result["eval/logits"] = logits.numpy()
    result["eval/loss"] = smoothed(case, logits, labels).numpy()


def train(
    case: ParityCase,
    model: ResNeXt50,
    images: torch.Tensor,
    labels: torch.Tensor,
    result: Results,
) -> None:
    """Losses, gradients, moving statistics and one optimizer step with batch statistics."""
    config = case.config
    model.load_state_dict(imported(case, model, "train"))
    model.train()
    parameters = dict(model.named_parameters())
    decayed = [p for name, p in parameters.items() if decays(name, p)]
    kept = [p for name, p in parameters.items() if not decays(name, p)]
    logits = model(images)
    loss = smoothed(case, logits, labels)
    l2 = config["weight_decay"] * torch.stack([0.5 * p.square().sum() for p in decayed]).sum()
    (loss * config["loss_scale"]).backward()
    result["train/logits"] = logits.detach().numpy()
    result["train/loss"] = loss.detach().numpy()
    result["train/l2"] = l2.detach().numpy()
    result["train/total_loss"] = (loss + l2).detach().numpy()
    for p in parameters.values():
        assert p.grad is not None
        p.grad /= config["loss_scale"]
    variables = tf_variables(model)
    state = model.state_dict()
    for variable in variables:
        if "/moving_" in variable.tf_name:
            values = variable.to_tensorflow(state[variable.name])
            result[f"stats1/{variable.tf_name}"] = values
        else:
            parameter = parameters[variable.name]
            gradient = parameter.grad
            assert gradient is not None
            if decays(variable.name, parameter):
                gradient = gradient + config["weight_decay"] * parameter.detach()
            result[f"grad/{variable.tf_name}"] = variable.to_tensorflow(gradient)
    torch.optim.SGD(
        [
            {"params": decayed, "weight_decay": config["weight_decay"]},
            {"params": kept, "weight_decay": 0.0},
        ],
        lr=config["learning_rate"],
        momentum=config["momentum"],
        nesterov=config["nesterov"],
    ).step()
    for variable in variables:
        key = f"step1/{variable.tf_name}"
        if key in case.meta["results"]:
            result[key] = variable.to_tensorflow(parameters[variable.name])


def imported(case: ParityCase, model: ResNeXt50, group: str) -> dict[str, torch.Tensor]:
    values = case.variables(group)
    state = {v.name: v.to_torch(values[v.tf_name]) for v in tf_variables(model)}
    counters = {
        name: counter
        for name, counter in model.state_dict().items()
        if name.endswith("num_batches_tracked")
    }
    return state | counters


def smoothed(case: ParityCase, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits, labels, label_smoothing=case.config["label_smoothing"])


def activation_names() -> Iterator[str]:
    """The original's names: a ReLU, the max-pooling, then three ReLUs a block."""
    yield "00_relu"
    yield "01_maxpool"
    for number in range(2, 50):
        yield f"{number:02d}_relu"


def test_every_result_matches_the_original_within_tolerance(
    case: ParityCase, replay: Replay
) -> None:
    noise = case.check_all(*replay)
    assert all(key.startswith("grad/") and key.endswith("/beta") for key in noise)


def test_gradients_that_are_zero_up_to_rounding_match(case: ParityCase, results: Results) -> None:
    """The stored values of these betas are rounding noise, since the next batch norm takes the
    mean away again. A few channels with a ReLU input below zero are not stored, but are the
    extremes that the fixture gives of the whole array."""
    kernel_of: dict[str, str] = {}
    kernel = ""
    for name, *_ in case.meta["variables"]["train"]:
        if "kernel" in name or "bottleneck" in name:
            kernel = name
        kernel_of[name] = kernel
    noise = [key for key in case.meta["results"] if case.tolerance(key) is None]
    assert noise
    for key in noise:
        limit = 1e-4 * np.abs(results[f"grad/{kernel_of[key.removeprefix('grad/')]}"]).max()
        lowest, highest = case.meta["results"][key]["stats"][3:]
        assert np.abs(case.picked(key, results[key])).max() < limit, key
        assert abs(results[key].min() - lowest) < limit, key
        assert abs(results[key].max() - highest) < limit, key


def test_variables_match_the_original_in_order(case: ParityCase) -> None:
    model = ResNeXt50(num_classes=case.config["num_classes"])
    originals = [(name, tuple(shape)) for name, shape, *_ in case.meta["variables"]["train"]]
    state = model.state_dict()
    ours = [
        (variable.tf_name, variable.to_tensorflow(state[variable.name]).shape)
        for variable in tf_variables(model)
    ]
    assert ours == originals
    unmapped = set(state) - {variable.name for variable in tf_variables(model)}
    assert all(name.endswith("num_batches_tracked") for name in unmapped)
