"""Record optimizer steps: parameters, gradients, the optimizer state and the updates."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.hooks import RemovableHandle

from jumar.precision.recording.calls import Calls, Entry
from jumar.precision.recording.contents import Contents, unrecorded
from jumar.precision.recording.layers import Layers
from jumar.precision.recording.ops import OpRecorder


class UpdateRecorder:
    """Records the steps of all optimizers from `begin` to `stop`.

    The hooks remain from `install` to `remove`, because a running hook cannot remove itself.

    Args:
        calls: Receives the recorded calls.
        contents: Measures tensors.
        layers: Names parameters.
        ops: The recorder of ops, which is paused during optimizer steps.
        is_enabled: Whether to record steps, or only to pause `ops`.

    Attributes:
        num_updates: Number of optimizer steps since `begin`.
    """

    def __init__(
        self, calls: Calls, contents: Contents, layers: Layers, ops: OpRecorder, *, is_enabled: bool
    ) -> None:
        self._calls, self._contents, self._layers, self._ops = calls, contents, layers, ops
        self._is_enabled, self._is_active = is_enabled, False
        self._handles: list[RemovableHandle] = []
        self._before: list[tuple[Tensor, Tensor, Entry]] = []
        self.num_updates = 0

    def install(self) -> None:
        """Hook into all optimizers."""
        self._handles = [
            register_optimizer_step_pre_hook(self._begin),
            register_optimizer_step_post_hook(self._end),
        ]

    def remove(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def begin(self) -> None:
        """Start recording."""
        self._is_active, self.num_updates = True, 0

    def stop(self) -> None:
        """Stop recording."""
        self._is_active = False
        self._before.clear()

    def record_parameters(self, optimizer: Optimizer) -> list[tuple[Tensor, Entry]]:
        """Record the current parameters and gradients of an optimizer."""
        record = self._contents.record
        entries: list[tuple[Tensor, Entry]] = []
        for path, name, parameter in self._trained(optimizer):
            entry = self._calls.entry("parameter", name, path, "update")
            if entry is not None:
                entry.values += [
                    record("parameter", "0", parameter),
                    record("gradient", "0", parameter.grad),  # pyright: ignore[reportArgumentType]
                ]
                entries.append((parameter, entry))
        return entries

    def _begin(self, optimizer: Optimizer, arguments: tuple[Any, ...], options: Any) -> None:
        closure = arguments[1] if len(arguments) > 1 else options.get("closure")
        if closure is not None or not self._is_active:  # A closure runs both passes.
            return
        self._ops.is_paused = True
        if not self._is_enabled:
            return
        self._before.clear()
        for parameter, entry in self.record_parameters(optimizer):
            with unrecorded():
                self._before.append((parameter, parameter.clone(), entry))

    def _end(self, optimizer: Optimizer, arguments: Any, options: Any) -> None:
        del arguments, options
        if not self._is_active:
            return
        self._ops.is_paused = False
        self.num_updates += 1
        # Fused updates change parameters without raising their version.
        self._contents.forget()
        record = self._contents.record
        for parameter, before, entry in self._before:
            entry.values += [
                record("state", name, value)
                for name, value in optimizer.state.get(parameter, {}).items()
                if isinstance(value, Tensor)
            ]
            with unrecorded():
                change = parameter - before
            entry.values.append(record("change", "0", change))
        self._before.clear()

    def _trained(self, optimizer: Optimizer) -> list[tuple[str, str, Tensor]]:
        """Return the layer, name and tensor of every parameter with a gradient."""
        parameters = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        trained: list[tuple[str, str, Tensor]] = []
        for number, parameter in enumerate(parameters):
            if parameter.grad is not None and parameter.grad.layout == torch.strided:
                path, name = self._layers.parameter_of(parameter) or ("", f"parameter {number}")
                trained.append((path, name, parameter))
        return trained


def on_update(called: Callable[[Optimizer], None]) -> RemovableHandle:
    """Call a function after every step of an optimizer."""

    def hook(optimizer: Optimizer, arguments: Any, options: Any) -> None:
        del arguments, options
        called(optimizer)

    return register_optimizer_step_post_hook(hook)
