"""The race of the original's updates: kernels that change before a gradient has passed through.

TensorFlow 1.15 updates a variable once its own gradient is known. The gradient of the layer's input
reads the kernel too, and nothing makes it come first.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


@contextmanager
def changed_early(model: nn.Module, after: nn.Module, layers: Iterable[str]) -> Iterator[None]:
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
