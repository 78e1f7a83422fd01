"""Determine the running layer: by hooks in the forward pass, by sequence numbers in the backward.

Autograd assigns the current sequence number to the node of an op before the op runs, so the op's
layer is that of the node with the previous number. An op in the backward pass belongs to the layer
of the forward op that created its node. The sum of gradients of a tensor with several users, which
no node computes, belongs to the previous layer, and the accumulation of a parameter's gradient to
the layer of the parameter.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

from jumar.precision.dumps.dump import Phase

_C: Any = torch._C  # Its stubs lack the functions used here.
_WRAPPERS: Final = ("DistributedDataParallel", "DataParallel", "OptimizedModule")


class Layers:
    """The paths of all modules, and the module that is running.

    Args:
        modules: The modules by path; None to name them by their path in the outermost module that
            is called.

    Attributes:
        stack: The paths of the running modules, innermost last.
        is_compiled: Whether a compiled module was called.
    """

    def __init__(self, modules: Mapping[str, nn.Module] | None = None) -> None:
        self._discovers = modules is None
        self._paths: dict[int, str] = {}
        self._parameters: dict[int, tuple[str, str]] = {}
        self._roots: list[nn.Module] = []
        self._nodes: dict[int, str] = {}
        self._backward = ""
        self._has_differentiated = False
        self.stack: list[str] = []
        self.is_compiled = False
        for path, module in (modules or {}).items():
            self._add(path, module)

    def begin(self) -> None:
        """Forget the previous step."""
        self.stack.clear()
        self._nodes.clear()
        self._backward = ""
        self._has_differentiated = False

    def path_of(self, module: nn.Module) -> str | None:
        """Return the path of a module that starts to run; None if it is not recorded."""
        name = type(module).__name__
        if name == "OptimizedModule":
            self.is_compiled = True
        if not self.stack and self._discovers and id(module) not in self._paths:
            if name in _WRAPPERS:  # The wrapped module counts as the outermost one.
                return None
            self._discover(module)
        return self._paths.get(id(module))

    def enter(self, path: str) -> None:
        """Record that a module starts to run."""
        self.stack.append(path)
        if _C._current_graph_task_id() == -1:
            self._has_differentiated = False

    @contextmanager
    def followed(self) -> Generator[None]:
        """Return a context in which hooks update `stack`, for use without a `ModuleRecorder`."""
        running: list[str | None] = []

        def before(module: nn.Module, arguments: Any) -> None:
            del arguments
            running.append(self.path_of(module))
            if running[-1] is not None:
                self.enter(running[-1])

        def after(*_: Any) -> None:
            if running and running.pop() is not None:
                self.stack.pop()

        handles = [
            register_module_forward_pre_hook(before),
            register_module_forward_hook(after, always_call=True),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def parameter_of(self, parameter: torch.Tensor) -> tuple[str, str] | None:
        """Return the path of a parameter's layer and its full name; None if it is unknown."""
        return self._parameters.get(id(parameter))

    def current(self) -> tuple[Phase, str]:
        """Return the phase and the layer of the op that runs now."""
        if _C._current_graph_task_id() == -1:
            layer = self.stack[-1] if self.stack else ""
            self._nodes.setdefault(_C._autograd._get_sequence_nr() - 1, layer)
            return "update" if self._has_differentiated else "forward", layer
        self._has_differentiated = True
        if self.stack:  # Activations are being recomputed.
            self._nodes.setdefault(_C._autograd._get_sequence_nr() - 1, self.stack[-1])
            return "backward", self.stack[-1]
        node = _C._current_autograd_node()
        if node is not None:
            variable = getattr(node, "variable", None)
            owner = None if variable is None else self._parameters.get(id(variable))
            if owner is not None:
                return "backward", owner[0]
            self._backward = self._nodes.get(node._sequence_nr(), self._backward)
        return "backward", self._backward

    def _discover(self, root: nn.Module) -> None:
        """Name the modules within an outermost module."""
        new_paths = {
            ".".join(part for part in path.split(".") if part != "_orig_mod"): module
            for path, module in root.named_modules()
            if id(module) not in self._paths and type(module).__name__ not in _WRAPPERS
        }
        clashes = set(new_paths) & set(self._paths.values())
        self._roots.append(root)
        for path, module in new_paths.items():
            prefix = type(root).__name__ if path in clashes else ""
            self._add(".".join(filter(None, (prefix, path))), module)

    def _add(self, path: str, module: nn.Module) -> None:
        self._paths[id(module)] = path
        for name, parameter in module.named_parameters(recurse=False):
            full_name = f"{path}.{name}" if path else name
            self._parameters.setdefault(id(parameter), (path, full_name))
