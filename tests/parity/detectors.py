"""What the fixtures of PSENet and EAST have in common: one backbone, one way of training."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jumar.models.slim_convolution import decays
from jumar.models.tf_layout import TfVariable
from tests.parity.fixture import ParityCase

Results = dict[str, NDArray[Any]]

MEMORY_FORMATS = {
    "contiguous": torch.contiguous_format,
    "channels_last": torch.channels_last,
}
ACTIVATIONS = {
    "pool1": "pool1/MaxPool",
    "block1.1": "block1/unit_2/bottleneck_v1/Relu",
    "block1.2": "block1/unit_3/bottleneck_v1/Relu",
    "block2.3": "block2/unit_4/bottleneck_v1/Relu",
    "block3.5": "block3/unit_6/bottleneck_v1/Relu",
    "block4.2": "block4/unit_3/bottleneck_v1/Relu",
}


def as_images(values: NDArray[Any]) -> Tensor:
    """float32 [N, channels, height, width] of [N, height, width, channels]."""
    return torch.from_numpy(values.transpose(0, 3, 1, 2).astype(np.float32))


def to_nhwc(maps: Tensor) -> NDArray[Any]:
    return maps.detach().permute(0, 2, 3, 1).numpy().copy()


def loss_targets(maps: NDArray[Any]) -> Tensor:
    """The batch of two that the fixtures' losses are computed with, [2, channels, 64, 64]."""
    both = np.stack([maps, np.roll(maps, (40, -24), axis=(0, 1))])
    return as_images(both[:, ::4, ::4])


def load(case: ParityCase, model: nn.Module, variables: Sequence[TfVariable], group: str) -> None:
    values = case.variables(group)
    state = {v.name: v.to_torch(values[v.tf_name]) for v in variables}
    missing = model.load_state_dict(state, strict=False)
    assert not missing.unexpected_keys
    assert all(name.endswith("num_batches_tracked") for name in missing.missing_keys)


def evaluated(
    case: ParityCase, model: nn.Module, variables: Sequence[TfVariable]
) -> tuple[Any, Results]:
    """The output with the moving statistics, and the backbone's activations."""
    load(case, model, variables, "eval")
    model.eval()
    ours: Results = {}

    def recorder(key: str) -> Callable[..., None]:
        def record(module: nn.Module, inputs: Any, output: Tensor) -> None:
            ours[key] = to_nhwc(output)

        return record

    handles = [
        model.get_submodule(f"backbone.{name}").register_forward_hook(
            recorder(f"eval/act/resnet_v1_50/{tf_name}")
        )
        for name, tf_name in ACTIVATIONS.items()
    ]
    with torch.no_grad():
        output = model(as_images(case.input("image")))
    for handle in handles:
        handle.remove()
    return output, ours


def trained(
    case: ParityCase,
    model: nn.Module,
    variables: Sequence[TfVariable],
    outputs_and_loss: Callable[[Any], tuple[dict[str, Tensor], Tensor]],
) -> Results:
    """Outputs, losses, gradients and statistics after one forward with batch statistics."""
    load(case, model, variables, "train")
    model.train()
    images = as_images(case.input("train_images"))
    memory_format = (
        torch.channels_last
        if next(model.parameters()).is_contiguous(memory_format=torch.channels_last)
        else torch.contiguous_format
    )
    outputs, loss = outputs_and_loss(model(images.contiguous(memory_format=memory_format)))
    ours = {f"train/{name}": to_nhwc(output) for name, output in outputs.items()}
    parameters = dict(model.named_parameters())
    decay = case.config["weight_decay"]
    decayed = [p for name, p in parameters.items() if decays(name, p)]
    regularization = decay * torch.stack([0.5 * p.square().sum() for p in decayed]).sum()
    (loss + regularization).backward()
    ours["train/model_loss"] = loss.detach().numpy()
    ours["train/regularization"] = regularization.detach().numpy()
    state = model.state_dict()
    gradients: Results = {}
    for variable in variables:
        if "/moving_" in variable.tf_name:
            key = f"train/stats1/{variable.tf_name}"
            values = variable.to_tensorflow(state[variable.name])
        else:
            gradient = parameters[variable.name].grad
            assert gradient is not None, variable.name
            key = f"train/grad/{variable.tf_name}"
            values = gradients[variable.tf_name] = variable.to_tensorflow(gradient)
        if key in case.meta["results"]:
            ours[key] = values
    ours["train/grad_norms"] = np.array(
        [
            np.linalg.norm(gradients[name].astype(np.float64))
            for name in case.config["grad_norm_variables"]
        ]
    )
    return ours


def check_variables(case: ParityCase, model: nn.Module, variables: Sequence[TfVariable]) -> None:
    """Assert that names, shapes and order are those of the original's graph."""
    originals = [(name, tuple(shape)) for name, shape, *_ in case.meta["variables"]["train"]]
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    ours = [(v.tf_name, v.to_tensorflow(torch.empty(shapes[v.name])).shape) for v in variables]
    assert ours == originals
    unmapped = set(shapes) - {v.name for v in variables}
    assert all(name.endswith("num_batches_tracked") for name in unmapped)
