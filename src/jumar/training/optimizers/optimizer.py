"""The settings shared by all kinds of optimizer, and creating an optimizer from them.

There are two parameter groups, first the decayed one, and further groups with other learning rates.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from jumar.ground.errors import UserError
from jumar.settings import Component, setting


@dataclass(frozen=True, kw_only=True)
class Trained:
    """The parameters an optimizer updates.

    Attributes:
        groups: The decayed, the undecayed and further groups, each with `params`, `weight_decay`
            and `decoupled_weight_decay`.
        order: All parameters in creation order.
        device_type: The device they are on, for instance `cpu`, `cuda` or `npu`.
    """

    groups: list[dict[str, Any]]
    order: Sequence[nn.Parameter]
    device_type: str


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings(Component, ABC):
    """The optimizer that updates an objective's parameters, and its constants.

    To add your own, write a subclass with `kind="name"` that defines `build`.

    Attributes:
        slots: The tensors kept for each parameter: maps the name in the optimizer's state to the
            suffix that TensorFlow's optimizer appends to the variable's name.
        decoupled: Whether weight decay is added to the step instead of the gradient.
    """

    slots: ClassVar[Mapping[str, str]] = {}
    decoupled: ClassVar[bool] = False

    learning_rate: float = setting(0.1, "Base learning rate, scaled by the schedule.", minimum=0.0)
    weight_decay: float = setting(
        0.0,
        "L2 decay of the decayed parameters, added to their gradients; adamw and lamb add it to "
        "the step instead.",
        minimum=0.0,
    )
    layer_rates: tuple[str, ...] = setting(
        (),
        "Factors on the learning rate by name, name prefix or pattern of parameters, for instance "
        "classifier=10,stem=0.1; if several match, the last one counts.",
    )
    layer_decay: float = setting(
        1.0,
        "Factor on the learning rate of each layer relative to the one above it; 1: none.",
        minimum=0.0,
        maximum=1.0,
    )

    def check(self) -> None:
        """Check that every item of `layer_rates` is a pattern and a factor.

        Raises:
            UserError: An item is not.
        """
        for text in self.layer_rates:
            rate_of(text)

    @abstractmethod
    def build(self, trained: Trained) -> Optimizer:
        """Build the optimizer for these parameters.

        Raises:
            UserError: The device lacks something that the settings request.
        """


@dataclass(frozen=True, kw_only=True)
class ParameterGroup:
    """Parameters with the same weight decay and the same factor on the learning rate."""

    parameters: Sequence[nn.Parameter]
    is_decayed: bool
    rate_factor: float


def rate_of(text: str) -> tuple[str, float]:
    """The pattern and the factor of an item of `layer_rates`.

    Raises:
        UserError: The item is not of the form PATTERN=FACTOR.
    """
    pattern, _, number = text.partition("=")
    try:
        factor = float(number)
    except ValueError:
        factor = math.nan
    if not pattern.strip() or not 0 <= factor < math.inf:
        raise UserError(
            f"'{text}' is not a pattern and a factor of 0 or more",
            where="optimizer.layer_rates",
            todo="For instance: --set optimizer.layer_rates=classifier=10,stem=0.1",
        )
    return pattern.strip(), factor


def create_optimizer(
    settings: OptimizerSettings,
    decayed: Sequence[nn.Parameter],
    undecayed: Sequence[nn.Parameter],
    *,
    device_type: str,
    order: Sequence[nn.Parameter] = (),
    further: Sequence[ParameterGroup] = (),
) -> Optimizer:
    """Create an optimizer from its settings, with parameter groups: decayed, undecayed, further.

    Parameters must already be on their device and in their memory format. The optimizer's state
    dict can be loaded on any device, regardless of the kernels that the saving run used.

    Args:
        settings: Kind and constants.
        decayed: Parameters to which weight decay applies.
        undecayed: Parameters to which it does not.
        device_type: The device the parameters are on, for instance `cpu`, `cuda` or `npu`.
        order: All parameters in creation order; if omitted, the decayed ones are first.
        further: Groups of other parameters, with other learning rates.

    Raises:
        UserError: The device lacks something that the settings request, such as a fused kernel.
    """
    groups: list[dict[str, Any]] = [
        {
            "params": list(parameters),
            "weight_decay": weight_decay,
            "decoupled_weight_decay": settings.decoupled,
        }
        for parameters, weight_decay in ((decayed, settings.weight_decay), (undecayed, 0.0))
    ]
    groups += [
        {
            "params": list(group.parameters),
            "weight_decay": settings.weight_decay if group.is_decayed else 0.0,
            "decoupled_weight_decay": settings.decoupled,
            "rate_factor": group.rate_factor,
        }
        for group in further
    ]
    optimizer = settings.build(
        Trained(
            groups=groups,
            order=order or [parameter for group in groups for parameter in group["params"]],
            device_type=device_type,
        )
    )
    kernel_choices = [
        {key: group.get(key) for key in ("fused", "foreach", "capturable")}
        for group in optimizer.param_groups
    ]
    optimizer.register_load_state_dict_post_hook(
        lambda loaded: _adapt_loaded_state(loaded, kernel_choices)
    )
    return optimizer


def _adapt_loaded_state(optimizer: Optimizer, kernel_choices: Sequence[Mapping[str, Any]]) -> None:
    """Adapt a loaded state to this process's parameters.

    Loading adopts the saved choice of kernel, which this device may lack, and the saved memory
    format. Fused CPU kernels process parameter and state in storage order without checking their
    strides, so state in a different format would silently be scrambled.
    """
    for group, choice in zip(optimizer.param_groups, kernel_choices, strict=True):
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
                        f"the saved '{name}' has shape {list(value.shape)}, but the parameter has "
                        f"shape {list(parameter.shape)}"
                    )
                elif value.stride() != parameter.stride():
                    copy = torch.empty_like(parameter, dtype=value.dtype, requires_grad=False)
                    state[name] = copy.copy_(value)
        if isinstance(group.get("updates"), Tensor) and parameters:
            group["updates"] = group["updates"].to(parameters[0].device)
