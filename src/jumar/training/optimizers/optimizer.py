"""What every kind of optimizer has, and an optimizer made of its settings.

Parameters come in two groups, decayed first.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from jumar.settings import Component, setting


@dataclass(frozen=True, kw_only=True)
class Trained:
    """The parameters that an optimizer is to update.

    Attributes:
        groups: Decayed and undecayed ones, each with `params`, `weight_decay` and
            `decoupled_weight_decay`.
        order: All of them in the order of their creation.
        device_type: Where they are, for instance `cpu`, `cuda` or `npu`.
    """

    groups: list[dict[str, Any]]
    order: Sequence[nn.Parameter]
    device_type: str


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings(Component, ABC):
    """Which optimizer updates the parameters of an objective, and its constants.

    One of your own is a subclass with `kind="name"` that gives `build`.

    Attributes:
        slots: What is kept of each parameter, from its name in the optimizer's state to what
            TensorFlow's optimizer appends to the variable's name.
        decoupled: Whether weight decay is added to the step instead of the gradient.
    """

    slots: ClassVar[Mapping[str, str]] = {}
    decoupled: ClassVar[bool] = False

    learning_rate: float = setting(
        0.1, "base learning rate, which the schedule multiplies", minimum=0.0
    )
    weight_decay: float = setting(
        0.0,
        "L2 decay of the decayed parameters, added to their gradients; adamw and lamb add it to "
        "the step instead",
        minimum=0.0,
    )

    @abstractmethod
    def build(self, trained: Trained) -> Optimizer:
        """The optimizer of these parameters.

        Raises:
            UserError: The device lacks what is asked for.
        """


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
        order: All parameters in the order of their creation; decayed first where it is left out.

    Raises:
        UserError: The device lacks what is asked for, such as a fused kernel.
    """
    groups = [
        {
            "params": list(parameters),
            "weight_decay": weight_decay,
            "decoupled_weight_decay": settings.decoupled,
        }
        for parameters, weight_decay in ((decayed, settings.weight_decay), (undecayed, 0.0))
    ]
    optimizer = settings.build(
        Trained(groups=groups, order=order or [*decayed, *undecayed], device_type=device_type)
    )
    kept = [
        {key: group.get(key) for key in ("fused", "foreach", "capturable")}
        for group in optimizer.param_groups
    ]
    optimizer.register_load_state_dict_post_hook(lambda loaded: _settle(loaded, kept))
    return optimizer


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
