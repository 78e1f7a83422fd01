"""The race of the original's updates: kernels that change before a gradient has passed through.

TensorFlow 1.15 updates a variable once its own gradient is known. The gradient of the layer's input
reads the kernel too, and nothing makes it come first.
"""

import copy
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import nn

Model = TypeVar("Model", bound=nn.Module)


def train_step(
    model: Model,
    optimizer: torch.optim.Optimizer,
    create: Callable[[Model], torch.optim.Optimizer],
    backward: Callable[[Model], object],
    raced: Collection[str],
    *,
    passes: int | None = None,
) -> None:
    """Update a model, with gradients that pass through the changed kernels of some layers.

    What a kernel becomes depends on the races above it, so each pass makes one more of them right.

    Args:
        model: The model.
        optimizer: Its optimizer.
        create: Creates such an optimizer for a copy of the model.
        backward: Computes the gradients of a model from gradients of zero.
        raced: The layers whose kernels change early.
        passes: How often the changed kernels are computed; one for each layer if not given.
    """

    def updated(layers: Collection[str], after: Model) -> Model:
        other = copy.deepcopy(model)
        its_optimizer = create(other)
        its_optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        with changed_early(other, after, layers):
            backward(other)
        its_optimizer.step()
        return other

    after = model
    for number in range(len(raced) if passes is None else passes):
        after = updated(raced if number else (), after)
    with changed_early(model, after, raced):
        backward(model)
    optimizer.step()


@contextmanager
def changed_early(model: nn.Module, after: nn.Module, layers: Collection[str]) -> Iterator[None]:
    """Let gradients pass through some layers' kernels as they are in `after`.

    Outputs and the kernels' own gradients stay those of `model`.
    """

    def early(name: str) -> torch.utils.hooks.RemovableHandle:
        later = after.get_submodule(name)

        def hook(layer: Any, inputs: tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
            passed = later(inputs[0])
            return layer.forward(inputs[0].detach()) + (passed - passed.detach())

        return model.get_submodule(name).register_forward_hook(hook)

    handles = [early(name) for name in layers]
    yield
    for handle in handles:
        handle.remove()
