"""What an optimizer keeps of each parameter, by the parameter's name: for state from elsewhere.

A run's own checkpoint holds the state of an optimizer by the order of its parameters, which only
the same recipe has. State that comes from a TensorFlow checkpoint, or goes into one, is held by
names.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from jumar.weights.adam_powers import power_after, updates_made

Slots = Mapping[str, Mapping[str, torch.Tensor]]
"""By the name of a parameter, what is kept of it: `exp_avg` and `exp_avg_sq`, ..."""


def names_by_group(optimizer: Optimizer, named: Mapping[nn.Parameter, str]) -> list[list[str]]:
    """The names of an optimizer's parameters, in the order of its `state_dict`."""
    return [[named[parameter] for parameter in group["params"]] for group in optimizer.param_groups]


def load_slots(
    optimizer: Optimizer,
    named: Mapping[nn.Parameter, str],
    slots: Slots,
    powers: Mapping[str, Sequence[float]],
    step: int,
) -> None:
    """Let an optimizer go on from the state of another one of its kind.

    Args:
        optimizer: From `create_optimizer`.
        named: The name of each of its parameters.
        slots: What the other one kept.
        powers: By parameter, beta1 and beta2 to the power of one more than the number of updates;
            where they are unknown or have underflowed, `step` is taken for that number: then a
            correction by them is 1.
        step: Finished steps.

    Raises:
        KeyError: A parameter has no slots.
        ValueError: They have another shape.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            name = named[parameter]
            for key, value in slots[name].items():
                if value.shape != parameter.shape:
                    raise ValueError(
                        f"'{key}' of '{name}' is {tuple(value.shape)} and not "
                        f"{tuple(parameter.shape)}"
                    )
                kept = torch.empty_like(parameter, memory_format=torch.preserve_format)
                optimizer.state[parameter][key] = kept.detach().copy_(value)
        updates: torch.Tensor | None = group.get("updates")
        if updates is not None and group["params"]:
            told = updates_made(powers.get(named[group["params"][0]], (0.0, 0.0)), group["betas"])
            updates.fill_(step if told is None else told)


def stored_slots(
    state: Mapping[str, Any], groups: Sequence[Sequence[str]]
) -> dict[str, dict[str, torch.Tensor]]:
    """The slots in a stored `state_dict`, by the names that were stored beside it."""
    found: dict[str, dict[str, torch.Tensor]] = {}
    for group, names in zip(state["param_groups"], groups, strict=True):
        for index, name in zip(group["params"], names, strict=True):
            kept = state["state"].get(index, {})
            found[name] = {k: v for k, v in kept.items() if isinstance(v, torch.Tensor)}
    return found


def stored_powers(
    state: Mapping[str, Any], groups: Sequence[Sequence[str]]
) -> dict[str, tuple[float, float]]:
    """By the names of parameters, beta1 and beta2 to the power of one more than the updates."""
    found: dict[str, tuple[float, float]] = {}
    for group, names in zip(state["param_groups"], groups, strict=True):
        updates = group.get("updates")
        if updates is None:
            continue
        beta1, beta2 = group["betas"]
        made = int(updates)
        found |= dict.fromkeys(names, (power_after(beta1, made), power_after(beta2, made)))
    return found
