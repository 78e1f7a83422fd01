"""An optimizer step: its learning rate, skipping an update, and the loss of the weight decay."""

# Torch documents its list functions under these names but does not export them.
# pyright: reportPrivateImportUsage=false

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from jumar.devices.registry import device_kind


def set_learning_rate(optimizer: Optimizer, rate: float) -> None:
    """Set the learning rate of all parameter groups for the next steps.

    Args:
        optimizer: From `create_optimizer`.
        rate: The rate of a group without a factor of its own.
    """
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("rate_factor", 1.0)


def step_unless(optimizer: Optimizer, found_bad: Tensor | None) -> None:
    """Update the parameters unless a device tensor says that gradients are not finite.

    Nothing waits for the device: fused kernels read the tensor there, and the other optimizers
    update and then undo the update. On a CPU the tensor is simply read.

    Args:
        optimizer: From `create_optimizer`.
        found_bad: A float32 scalar on the parameters' device, 1.0 to skip the update; None to
            update unconditionally.
    """
    if found_bad is None:
        optimizer.step()
    elif getattr(optimizer, "_step_supports_amp_scaling", False):
        # The two attributes that torch.amp.GradScaler sets on fused optimizers.
        optimizer.found_inf = found_bad  # pyright: ignore[reportAttributeAccessIssue]
        optimizer.grad_scale = None  # pyright: ignore[reportAttributeAccessIssue]
        try:
            optimizer.step()
        finally:
            del optimizer.found_inf  # pyright: ignore[reportAttributeAccessIssue]
            del optimizer.grad_scale  # pyright: ignore[reportAttributeAccessIssue]
    elif not device_kind(found_bad.device.type).reads_at_once:
        step_and_take_back(optimizer, found_bad)
    elif not found_bad.item():
        optimizer.step()


@torch.no_grad()
def step_and_take_back(optimizer: Optimizer, found_bad: Tensor) -> None:
    """Update, then restore everything on the device if the step was bad.

    For optimizers without a kernel that can skip a step. Reading the tensor instead would make
    the host wait at every step; this costs a copy of weights and slots.

    Args:
        optimizer: From `create_optimizer`.
        found_bad: As in `step_unless`.
    """
    device = found_bad.device
    before = {id(tensor): tensor.clone() for tensor in _state_of(optimizer, device)}
    optimizer.step()
    bad = found_bad > 0
    for tensor in _state_of(optimizer, device):
        # Torch creates a slot in the first step that needs it, and every slot starts at zero.
        earlier = before.get(id(tensor))
        tensor.copy_(torch.where(bad, 0 if earlier is None else earlier, tensor))


def _state_of(optimizer: Optimizer, device: torch.device) -> Iterator[Tensor]:
    """Everything an update changes on the device: weights with a gradient, slots, counters."""
    for group in optimizer.param_groups:
        for value in group.values():
            if isinstance(value, Tensor) and value.device == device:
                yield value
        for parameter in group["params"]:
            if parameter.grad is None:
                continue
            yield parameter
            for value in optimizer.state.get(parameter, {}).values():
                if isinstance(value, Tensor) and value.device == device:
                    yield value


@torch.no_grad()
def regularization(groups: Iterable[Mapping[str, Any]]) -> Tensor:
    """The L2 loss whose gradient is the weight decay: sum of weight_decay * |v|^2 / 2.

    Decoupled decay (adamw, lamb) is not the gradient of a loss and adds nothing.

    Args:
        groups: An optimizer's `param_groups`.

    Returns:
        A float32 scalar on the parameters' device.
    """
    total: Tensor | None = None
    device: torch.device | None = None
    for group in groups:
        parameters: list[Tensor] = group["params"]
        if parameters:
            device = parameters[0].device
        if parameters and group["weight_decay"] and not group["decoupled_weight_decay"]:
            norms = torch.stack(torch._foreach_norm(parameters, 2, dtype=torch.float32))
            term = norms.square().sum() * (0.5 * group["weight_decay"])
            total = term if total is None else total + term
    return torch.zeros((), device=device) if total is None else total
