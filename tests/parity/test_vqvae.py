"""VQ-VAE and its prior against the numbers of the original in TensorFlow 1.15.

The original takes its gradients without the gates of `Optimizer.minimize`, so TensorFlow may change
a kernel in place before the gradient has passed through it to the layer below. In the stored steps
that happened in the decoder's residual blocks, in both steps: of the 1024 ways in which the
kernels of the CIFAR-10 decoder can come first or last in each step, this one alone reproduces the
stored values. The replay of the steps does the same; all gradients are compared without it.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from jumar.models import pixelcnn, vqvae
from jumar.models.pixelcnn import PixelCNN
from jumar.models.tf_layout import TfVariable
from jumar.models.vqvae import VQVAE, Quantized, vq_losses
from jumar.training.clipping import clip_gradients
from jumar.training.optimizers import Adam, create_optimizer
from tests.parity.fixture import ParityCase
from tests.parity.update_race import train_step

Results = dict[str, NDArray[Any]]


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "vqvae.npz")


def network(case: ParityCase, variant: str) -> VQVAE:
    config = case.config[variant]
    model = VQVAE(variant=variant, codes=config["K"], width=config["D"])
    values = case.variables(variant)
    model.load_state_dict(
        {v.name: v.to_torch(values[v.tf_name]) for v in vqvae.tf_variables(model)}
    )
    return model


def prior(case: ParityCase) -> tuple[PixelCNN, torch.Tensor]:
    """The prior and the codebook, which is not trained."""
    config = case.config["pixelcnn"]
    model = PixelCNN(
        codes=config["K"],
        width=config["D"],
        layers=config["layers"],
        maps=config["maps"],
        classes=config["classes"],
    )
    values = case.variables("pixelcnn")
    model.load_state_dict(
        {v.name: v.to_torch(values[v.tf_name]) for v in pixelcnn.tf_variables(model)}
    )
    return model, torch.from_numpy(values["params/embed"])


def optimizer_for(model: nn.Module, rate: float) -> torch.optim.Optimizer:
    settings = Adam(learning_rate=rate)
    made = create_optimizer(settings, [], list(model.parameters()), device_type="cpu")
    for group in made.param_groups:
        group["lr"] = rate
    return made


def replay(case: ParityCase, variant: str, memory_format: torch.memory_format) -> Results:
    """Codes, losses and gradients of the first step, and the weights after two."""
    config = case.config[variant]
    model = network(case, variant).to(memory_format=memory_format)
    images = torch.from_numpy(case.input(f"images_{variant}").transpose(0, 3, 1, 2).copy())
    images = images.contiguous(memory_format=memory_format)
    create = partial(optimizer_for, rate=config["learning_rate"])
    differentiate = partial(backward, images=images, beta=config["beta"])
    optimizer = create(model)
    output, terms, loss = backward(model, images, config["beta"])
    result = {
        "z_e": output.features.detach().permute(0, 2, 3, 1).numpy().copy(),
        "codes": output.codes.numpy(),
        "reconstruction": output.reconstruction.detach().permute(0, 2, 3, 1).numpy().copy(),
        "nll": likelihood(output.reconstruction.detach(), config["K"]).numpy(),
        "loss": loss.detach().numpy(),
        **{f"loss_{name}": term.detach().numpy() for name, term in terms.items()},
        **gradients(model, vqvae.tf_variables(model)),
    }
    for _ in range(2):
        train_step(model, optimizer, create, differentiate, residual_kernels(model), passes=1)
    parameters = dict(model.named_parameters())
    for variable in vqvae.tf_variables(model):
        result[f"step2/{variable.tf_name}"] = variable.to_tensorflow(parameters[variable.name])
    return {f"{variant}/{key}": value for key, value in result.items()}


def residual_kernels(model: VQVAE) -> list[str]:
    """The convolutions of the decoder's residual blocks."""
    return [
        f"decoder.{name}"
        for name, layer in model.decoder.named_modules()
        if name.startswith("res_") and isinstance(layer, nn.Conv2d)
    ]


def backward(
    model: VQVAE, images: torch.Tensor, beta: float
) -> tuple[Quantized, Mapping[str, torch.Tensor], torch.Tensor]:
    """One batch forward and backward, from gradients of zero."""
    output = model(images)
    terms = vq_losses(images, output)
    loss = terms["recon"] + terms["vq"] + beta * terms["commit"]
    model.zero_grad()
    loss.backward()
    return output, terms, loss


def likelihood(shown: torch.Tensor, codes: int) -> torch.Tensor:
    """The original's bits per dimension, which take a pixel itself for its probability."""
    return -(shown.log().mean((1, 2, 3)) - math.log(codes)) / math.log(2)


def gradients(model: nn.Module, variables: Sequence[TfVariable]) -> Results:
    result: Results = {}
    parameters = dict(model.named_parameters())
    for variable in variables:
        gradient = parameters[variable.name].grad
        assert gradient is not None, variable.name
        result[f"grad/{variable.tf_name}"] = variable.to_tensorflow(gradient)
    return result


def replay_prior(case: ParityCase) -> Results:
    config = case.config["pixelcnn"]
    model, codebook = prior(case)
    codes = torch.from_numpy(case.input("codes").astype(np.int64))
    classes = torch.from_numpy(case.input("classes").astype(np.int64))
    logits = model(F.embedding(codes, codebook).permute(0, 3, 1, 2), classes)
    loss = F.cross_entropy(logits, codes, reduction="none").sum((1, 2)).mean()
    loss.backward()
    variables = pixelcnn.tf_variables(model)
    parameters = dict(model.named_parameters())
    result: Results = {
        "logits": logits.detach().permute(0, 2, 3, 1).numpy().copy(),
        "loss": loss.detach().numpy(),
        **gradients(model, variables),
    }
    clip_gradients(model.parameters(), "value", config["grad_clip"])
    optimizer_for(model, config["learning_rate"]).step()
    for variable in variables:
        result[f"step1/{variable.tf_name}"] = variable.to_tensorflow(parameters[variable.name])
    return {f"pixelcnn/{key}": value for key, value in result.items()}


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_every_result_matches_the_original_within_tolerance(
    case: ParityCase, layout: torch.memory_format
) -> None:
    result = replay_prior(case)
    for variant in vqvae.VARIANTS:
        result |= replay(case, variant, layout)
    assert case.check_all(result) == set()


@pytest.mark.parametrize("variant", vqvae.VARIANTS)
def test_variables_match_the_original_in_order(case: ParityCase, variant: str) -> None:
    model = network(case, variant)
    state = model.state_dict()
    variables = vqvae.tf_variables(model)
    ours = [(v.tf_name, v.to_tensorflow(state[v.name]).shape) for v in variables]
    assert ours == [(n, tuple(shape)) for n, shape, *_ in case.meta["variables"][variant]]
    assert {v.name for v in variables} == set(state)


def test_variables_of_the_prior_match_the_original_in_order(case: ParityCase) -> None:
    model, _ = prior(case)
    state = model.state_dict()
    variables = pixelcnn.tf_variables(model)
    ours = [(v.tf_name, v.to_tensorflow(state[v.name]).shape) for v in variables]
    originals = [(n, tuple(shape)) for n, shape, *_ in case.meta["variables"]["pixelcnn"]]
    assert ours == [row for row in originals if row[0] != "params/embed"]
    assert {v.name for v in variables} == set(state)
