"""An optimizer's state keyed by parameter name, for checkpoints and for TensorFlow.

torch's `state_dict` numbers the parameters; the numbers are stable only for the same code and
settings.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from jumar.ground.errors import UserError
from jumar.training.checkpoint_state import SavedState
from jumar.weights.adam_powers import power_after, updates_made

Slots = Mapping[str, Mapping[str, torch.Tensor]]
"""The tensors kept for each parameter, by its name: `exp_avg` and `exp_avg_sq`, ..."""


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
    """Load the state of another optimizer of the same kind.

    Args:
        optimizer: An optimizer returned by `create_optimizer`.
        named: The names of its parameters.
        slots: The other optimizer's slots.
        powers: By parameter, beta1 and beta2 to the power of one more than the number of updates;
            if they are unknown or have underflowed, `step` is used as the number of updates, for
            which the correction is practically 1.
        step: Finished steps.

    Raises:
        KeyError: A parameter has no slots.
        ValueError: The slots have a different shape.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            name = named[parameter]
            for key, value in slots[name].items():
                if value.shape != parameter.shape:
                    raise ValueError(
                        f"'{key}' of '{name}' has shape {tuple(value.shape)}, not "
                        f"{tuple(parameter.shape)}"
                    )
                slot = torch.empty_like(parameter, memory_format=torch.preserve_format)
                optimizer.state[parameter][key] = slot.detach().copy_(value)
        updates: torch.Tensor | None = group.get("updates")
        if updates is not None and group["params"]:
            count = updates_made(powers.get(named[group["params"][0]], (0.0, 0.0)), group["betas"])
            updates.fill_(step if count is None else count)


def named_state(
    state: Mapping[str, Any], names: Sequence[Sequence[str]], objective: str
) -> tuple[dict[str, torch.Tensor], list[dict[str, Any]]]:
    """An optimizer's `state_dict`, keyed by parameter name.

    Args:
        state: The `state_dict`.
        names: The result of `names_by_group`.
        objective: The objective whose parameters the optimizer updates.

    Returns:
        The tensors in the form of `SavedState.slots`; and for each group `parameters` and `values`,
        the non-tensor state of each parameter and of the group.

    Raises:
        UserError: The optimizer's state has something that a checkpoint cannot contain.
    """
    tensors: dict[str, torch.Tensor] = {}

    def without_tensors(entries: Mapping[str, Any], owner: str) -> dict[str, Any]:
        tensors.update(
            {f"{owner}/{k}": v for k, v in entries.items() if isinstance(v, torch.Tensor)}
        )
        plain = {k: v for k, v in entries.items() if not isinstance(v, torch.Tensor)}
        bad = [key for key, value in plain.items() if not _is_plain(value)]
        if bad:
            raise UserError(
                f"the optimizer keeps a {type(plain[bad[0]]).__name__} as '{bad[0]}' of '{owner}', "
                "which a checkpoint cannot contain",
                todo="A custom optimizer may keep tensors, numbers, strings and lists of them.",
            )
        return plain

    groups: list[dict[str, Any]] = []
    for number, (group, group_names) in enumerate(zip(state["param_groups"], names, strict=True)):
        values = {key: value for key, value in group.items() if key != "params"}
        groups.append(
            {
                "values": without_tensors(values, _group_key(objective, number)),
                "parameters": {
                    name: without_tensors(state["state"].get(index, {}), f"{objective}/{name}")
                    for index, name in zip(group["params"], group_names, strict=True)
                },
            }
        )
    return tensors, groups


def restore_optimizer(
    optimizer: Optimizer,
    named: Mapping[nn.Parameter, str],
    objective: str,
    slots: Mapping[str, Mapping[str, torch.Tensor]],
    groups: Sequence[Mapping[str, Any]],
) -> None:
    """Load a state returned by `named_state`.

    Args:
        optimizer: An optimizer returned by `create_optimizer`.
        named: The names of its parameters.
        objective: The objective whose parameters the optimizer updates.
        slots: The result of `SavedState.by_owner`.
        groups: The groups returned by `named_state`.

    Raises:
        ValueError: The state belongs to other parameters; the message names one of them.
    """
    current, names = optimizer.state_dict(), names_by_group(optimizer, named)
    for group_names, saved_group in zip(names, groups, strict=True):
        mismatched = sorted(set(group_names) ^ set(saved_group["parameters"]))
        if mismatched:
            raise ValueError(
                f"'{objective}' trains other parameters than the saved state: '{mismatched[0]}'"
            )
    state: dict[int, dict[str, Any]] = {}
    new_groups: list[dict[str, Any]] = []
    for number, (group, saved_group) in enumerate(
        zip(current["param_groups"], groups, strict=True)
    ):
        for index, name in zip(group["params"], names[number], strict=True):
            entries = saved_group["parameters"][name] | _copies(slots, f"{objective}/{name}")
            missing = sorted(set(current["state"].get(index, {})) - set(entries))
            if missing:
                raise ValueError(f"'{missing[0]}' of '{name}' is missing")
            if entries:
                state[index] = entries
        values = {
            # JSON has lists but no tuples.
            key: tuple(value) if isinstance(group.get(key), tuple) else value
            for key, value in saved_group["values"].items()
        }
        tensors = _copies(slots, _group_key(objective, number))
        new_groups.append({**group, **values, **tensors, "params": group["params"]})
    optimizer.load_state_dict({"state": state, "param_groups": new_groups})


def stored_slots(state: SavedState) -> dict[str, dict[str, torch.Tensor]]:
    """The slots of a saved state, keyed by parameter name."""
    by_owner = state.by_owner()
    if "objectives" not in state.values:
        return by_owner
    return {
        name: by_owner.get(f"{objective}/{name}", {})
        for objective, objective_state in state.values["objectives"].items()
        for group in objective_state["groups"]
        for name in group["parameters"]
    }


def stored_powers(state: SavedState) -> dict[str, Sequence[float]]:
    """By parameter name, beta1 and beta2 to the power of one more than the number of updates."""
    powers: dict[str, Sequence[float]] = dict(state.values.get("powers", {}))
    for objective, objective_state in state.values.get("objectives", {}).items():
        for number, group in enumerate(objective_state["groups"]):
            updates = state.slots.get(f"{_group_key(objective, number)}/updates")
            if updates is not None:
                beta1, beta2 = group["values"]["betas"]
                count = int(updates)
                powers_after = (power_after(beta1, count), power_after(beta2, count))
                powers |= dict.fromkeys(group["parameters"], powers_after)
    return powers


def _group_key(objective: str, number: int) -> str:
    return f"{objective}/group {number}"


def _copies(slots: Mapping[str, Mapping[str, torch.Tensor]], owner: str) -> dict[str, torch.Tensor]:
    """Copies in memory, because tensors mapped from a file would keep its disk space in use."""
    return {key: value.clone() for key, value in slots.get(owner, {}).items()}


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))  # pyright: ignore[reportUnknownArgumentType]
    return value is None or isinstance(value, (bool, int, float, str))
