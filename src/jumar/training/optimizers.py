"""Optimizers by their settings, with torch's fused kernels where the device has them.

Parameters come in two groups, decayed first. Kinds that torch computes as TensorFlow does are
torch's own; the others are in `tensorflow_optimizers`.
"""

# Torch documents its list functions and fused kernels under these names but does not export them.
# pyright: reportPrivateImportUsage=false

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adagrad, AdamW, Optimizer

from jumar.ground.errors import UserError
from jumar.settings import setting
from jumar.training.tensorflow_optimizers import Adam, Lamb, RmsProp

_KERNELS = {
    "sgd": "_fused_sgd_",
    "momentum": "_fused_sgd_",
    "adam": "_fused_adam_.tensor_lr",
    "adamw": "_fused_adamw_",
    "adagrad": "_fused_adagrad_",
}
_DISPATCH_KEYS = {"cpu": "CPU", "cuda": "CUDA", "mps": "MPS", "xpu": "XPU", "hpu": "HPU"}


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings:
    """Which optimizer updates the parameters of an objective, and its constants."""

    kind: str = setting(
        "momentum",
        "rule of the update; all but adamw with step correction are as in TensorFlow",
        choices=("sgd", "momentum", "adam", "adamw", "lamb", "rmsprop", "adagrad"),
    )
    learning_rate: float = setting(
        0.1, "base learning rate, which the schedule multiplies", minimum=0.0
    )
    momentum: float = setting(
        0.9, "decay of the gathered steps of momentum and rmsprop", minimum=0.0, maximum=1.0
    )
    nesterov: bool = setting(False, "Nesterov's form of momentum")
    beta1: float = setting(
        0.9,
        "decay of the average of gradients of adam, adamw and lamb",
        minimum=0.0,
        maximum=0.9999999,
    )
    beta2: float = setting(
        0.999,
        "decay of the average of squared gradients of adam, adamw, lamb and rmsprop",
        minimum=0.0,
        maximum=0.9999999,
    )
    epsilon: float = setting(
        1e-8, "what keeps adam, adamw, lamb and rmsprop from dividing by zero", minimum=0.0
    )
    bias_correction: str = setting(
        "step",
        "correction of adam, adamw and lamb for averages that start at zero: by the number of "
        "updates, none (the BERT scripts), or by the number of the variable (Ascend's LAMB)",
        choices=("step", "none", "variable"),
    )
    initial_accumulator: float = setting(
        0.1, "what adagrad's sum of squared gradients starts from", minimum=1e-30
    )
    weight_decay: float = setting(
        0.0,
        "L2 decay of the decayed parameters, added to their gradients; adamw and lamb add it to "
        "the step instead",
        minimum=0.0,
    )
    fused: str = setting(
        "auto",
        "update with one fused kernel; auto: where the device has it",
        choices=("auto", "true", "false"),
    )

    def check(self) -> None:
        """Rules across the fields.

        Raises:
            UserError: A correction by variable that is not LAMB's, or Nesterov without momentum.
        """
        if self.bias_correction == "variable" and self.kind != "lamb":
            raise UserError(
                f"'variable' is a correction of lamb, not of {self.kind}",
                where="optimizer.bias_correction",
                todo="Allowed here: step, none.",
            )
        if self.nesterov and self.kind == "momentum" and self.momentum == 0.0:
            raise UserError(
                "Nesterov's form needs a momentum above 0",
                where="optimizer.momentum",
                todo="For instance: optimizer.momentum=0.9, or optimizer.nesterov=false",
            )


def create_optimizer(
    settings: OptimizerSettings,
    decayed: Sequence[nn.Parameter],
    undecayed: Sequence[nn.Parameter],
    *,
    device_type: str,
    order: Sequence[nn.Parameter] = (),
) -> Optimizer:
    """The optimizer of these settings, with two parameter groups: decayed, undecayed.

    Parameters must be on their device and in their memory format already. A state dict of it
    loads on any device, whichever kernels the run used that saved it.

    Args:
        settings: Kind and constants.
        decayed: Parameters to which weight decay applies.
        undecayed: Parameters to which it does not.
        device_type: Where the parameters are, for instance `cpu`, `cuda` or `npu`.
        order: All parameters in the order of their creation; only LAMB's correction by variable
            asks for it.

    Raises:
        UserError: The settings do not fit together, or a fused kernel is asked for that the
            device lacks.
    """
    settings.check()
    fused = _uses_fused(settings, device_type)
    groups = [
        {
            "params": list(parameters),
            "weight_decay": weight_decay,
            "decoupled_weight_decay": settings.kind in ("adamw", "lamb"),
        }
        for parameters, weight_decay in ((decayed, settings.weight_decay), (undecayed, 0.0))
    ]
    optimizer = _create(settings, groups, fused, order, device_type)
    kept = [
        {key: group.get(key) for key in ("fused", "foreach", "capturable")}
        for group in optimizer.param_groups
    ]
    optimizer.register_load_state_dict_post_hook(lambda loaded: _settle(loaded, kept))
    return optimizer


def set_learning_rate(optimizer: Optimizer, rate: float) -> None:
    """Let the next steps of an optimizer use this learning rate in all groups."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def step_unless(optimizer: Optimizer, found_bad: Tensor | None) -> None:
    """Update the parameters, except where a device tensor says that gradients are not finite.

    Nothing waits for the device: fused kernels read the tensor there, and the others update and
    take it back. A CPU's tensor is read.

    Args:
        optimizer: From `create_optimizer`.
        found_bad: A float32 scalar on the parameters' device, 1.0 to leave the update out;
            None to update in any case.
    """
    if found_bad is None:
        optimizer.step()
    elif getattr(optimizer, "_step_supports_amp_scaling", False):
        # The same two attributes by which torch.amp.GradScaler speaks to fused optimizers.
        optimizer.found_inf = found_bad  # pyright: ignore[reportAttributeAccessIssue]
        optimizer.grad_scale = None  # pyright: ignore[reportAttributeAccessIssue]
        try:
            optimizer.step()
        finally:
            del optimizer.found_inf  # pyright: ignore[reportAttributeAccessIssue]
            del optimizer.grad_scale  # pyright: ignore[reportAttributeAccessIssue]
    elif found_bad.device.type != "cpu":
        step_and_take_back(optimizer, found_bad)
    elif not found_bad.item():
        optimizer.step()


@torch.no_grad()
def step_and_take_back(optimizer: Optimizer, found_bad: Tensor) -> None:
    """Update, and put everything back on the device where the step was a bad one.

    For optimizers without a kernel that can leave a step out. To read the tensor instead would
    make the host wait at every step; this costs a copy of weights and slots.

    Args:
        optimizer: From `create_optimizer`.
        found_bad: As in `step_unless`.
    """
    device = found_bad.device
    before = {id(tensor): tensor.clone() for tensor in _state_of(optimizer, device)}
    optimizer.step()
    bad = found_bad > 0
    for tensor in _state_of(optimizer, device):
        # Torch makes a slot in the first step that needs it, and every slot begins at zero.
        earlier = before.get(id(tensor))
        tensor.copy_(torch.where(bad, 0 if earlier is None else earlier, tensor))


def _state_of(optimizer: Optimizer, device: torch.device) -> Iterator[Tensor]:
    """All that an update changes on the device: weights that have a gradient, slots, counters."""
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
    """The L2 loss whose gradient the weight decay is: sum of weight_decay * |v|^2 / 2.

    Decoupled decay (adamw, lamb) is the gradient of no loss and adds nothing.

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


def _uses_fused(settings: OptimizerSettings, device_type: str) -> bool:
    kernel = _KERNELS.get(settings.kind)
    key = _DISPATCH_KEYS.get(device_type, "PrivateUse1")
    # Asked of the dispatcher, because torch's own list of devices with fused kernels names every
    # registered back end, whether or not it brought the kernel.
    there = kernel is not None and torch._C._dispatch_has_kernel_for_dispatch_key(
        f"aten::{kernel}", key
    )
    if settings.fused == "true" and not there:
        raise UserError(
            f"there is no fused kernel for '{settings.kind}' on {device_type}",
            where="optimizer.fused",
            todo="Use optimizer.fused=auto, which updates lists of tensors at once instead.",
        )
    return there and settings.fused != "false"


def _create(
    settings: OptimizerSettings,
    groups: list[dict[str, Any]],
    fused: bool,
    order: Sequence[nn.Parameter],
    device_type: str,
) -> Optimizer:
    rate, betas = settings.learning_rate, (settings.beta1, settings.beta2)
    corrected = settings.bias_correction == "step"
    if settings.kind in ("sgd", "momentum"):
        return _sgd(settings, groups, fused)
    if settings.kind == "adagrad":
        return Adagrad(
            groups,
            lr=rate,
            initial_accumulator_value=settings.initial_accumulator,
            eps=0.0,
            fused=fused,
            foreach=not fused,
        )
    if settings.kind == "rmsprop":
        return RmsProp(
            groups,
            lr=rate,
            decay=settings.beta2,
            momentum=settings.momentum,
            epsilon=settings.epsilon,
        )
    if settings.kind == "lamb":
        return Lamb(
            groups,
            lr=rate,
            betas=betas,
            epsilon=settings.epsilon,
            corrected=corrected,
            exponents=_exponents(settings, groups, order),
        )
    if settings.kind == "adamw" and corrected:
        return AdamW(
            groups,
            lr=rate,
            betas=betas,
            eps=settings.epsilon,
            fused=fused,
            foreach=not fused,
            # The count of updates then lies on the device, where one can be taken back.
            capturable=not fused and device_type != "cpu",
        )
    return Adam(
        groups,
        lr=rate,
        betas=betas,
        epsilon=settings.epsilon,
        corrected=corrected,
        decoupled=settings.kind == "adamw",
        fused=fused,
    )


def _sgd(settings: OptimizerSettings, groups: list[dict[str, Any]], fused: bool) -> Optimizer:
    momentum = settings.momentum if settings.kind == "momentum" else 0.0
    optimizer = SGD(
        groups,
        lr=settings.learning_rate,
        momentum=momentum,
        nesterov=settings.nesterov and momentum > 0.0,
        fused=fused,
        foreach=not fused,
    )
    if momentum:
        # Torch makes the buffers in the first step and lets the kernel fill them. A kernel that
        # leaves out that step because of an overflow leaves them as uninitialised memory.
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(
                    parameter, memory_format=torch.preserve_format
                )
    return optimizer


def _exponents(
    settings: OptimizerSettings, groups: list[dict[str, Any]], order: Sequence[nn.Parameter]
) -> dict[nn.Parameter, int]:
    if settings.bias_correction != "variable":
        return {}
    exponents = {parameter: number for number, parameter in enumerate(order, start=1)}
    if any(parameter not in exponents for group in groups for parameter in group["params"]):
        raise ValueError("the correction by variable needs every parameter in `order`")
    return exponents


def _settle(optimizer: Optimizer, kept: Sequence[Mapping[str, Any]]) -> None:
    """Fit a loaded state to the parameters that are here.

    Loading takes over the saved choice of kernel, which this device may lack, and the saved
    memory format. Fused kernels on a CPU walk parameter and state in storage order without
    asking for their strides, so state in another format would silently be mixed up.
    """
    for group, choice in zip(optimizer.param_groups, kept, strict=True):
        group.update({key: value for key, value in choice.items() if key in group})
        parameters: list[Tensor] = group["params"]
        for parameter in parameters:
            state = optimizer.state.get(parameter, {})
            for name, value in state.items():
                if not isinstance(value, Tensor):
                    continue
                if name == "step":
                    on_device = group.get("fused") or group.get("capturable")
                    state[name] = value.to(parameter.device if on_device else "cpu")
                elif value.shape != parameter.shape:
                    raise ValueError(
                        f"the saved '{name}' of shape {list(value.shape)} belongs to another "
                        f"parameter than one of shape {list(parameter.shape)}"
                    )
                elif value.stride() != parameter.stride():
                    fitting = torch.empty_like(parameter, dtype=value.dtype, requires_grad=False)
                    state[name] = fitting.copy_(value)
        if isinstance(group.get("updates"), Tensor) and parameters:
            group["updates"] = group["updates"].to(parameters[0].device)
