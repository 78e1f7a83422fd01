"""Profiler ranges around the forward pass of layers, which identify the layer of an op."""

from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Final

import torch
from torch import nn
from torch.profiler import record_function
from torch.utils.hooks import RemovableHandle

RANGE: Final = "module:"
"""Prefix of the names of module ranges."""


def named_layers(model: nn.Module, others: Sequence[nn.Module]) -> dict[str, nn.Module]:
    """All submodules of the model by path, then those that only the others have.

    Args:
        model: The network.
        others: Objectives, which may have further layers, such as a front end.
    """
    layers: dict[str, nn.Module] = {}
    ids = {id(model), *map(id, others)}
    for root in (model, *others):
        for path, module in root.named_modules():
            if path and id(module) not in ids:
                ids.add(id(module))
                layers[path if path not in layers else f"{type(root).__name__}.{path}"] = module
    return layers


class ModuleRanges:
    """Profiler ranges around the forward pass of modules, from `install` to `remove`.

    Args:
        modules: The modules by path.
    """

    def __init__(self, modules: Mapping[str, nn.Module]) -> None:
        self._modules = modules
        self._handles: list[RemovableHandle] = []
        self._open: list[AbstractContextManager[object]] = []
        self._inputs: list[tuple[str, tuple[torch.Size, ...]]] = []

    def take_inputs(self) -> Hashable:
        """The input shapes of layers since the last call, in order; comparable between steps."""
        inputs = tuple(self._inputs)
        self._inputs.clear()
        return inputs

    def install(self) -> None:
        """Install hooks, which cost a few microseconds per module call until `remove`."""
        for path, module in self._modules.items():
            self._handles += [
                module.register_forward_pre_hook(partial(self._enter, RANGE + path)),
                module.register_forward_hook(self._leave, always_call=True),
            ]

    def remove(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _enter(self, name: str, module: nn.Module, arguments: object) -> None:
        del module
        values = arguments if isinstance(arguments, tuple) else (arguments,)
        shapes = tuple(value.shape for value in values if isinstance(value, torch.Tensor))
        self._inputs.append((name, shapes))
        range_ = record_function(name)
        range_.__enter__()
        self._open.append(range_)

    def _leave(self, module: nn.Module, arguments: object, result: object) -> None:
        del module, arguments, result
        if self._open:
            self._open.pop().__exit__(None, None, None)
