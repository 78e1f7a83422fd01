"""What an optimizer keeps, by the names of its parameters: for checkpoints and TensorFlow.

torch's `state_dict` counts parameters, which only the same code with the same settings does alike.
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


def named_state(
    state: Mapping[str, Any], names: Sequence[Sequence[str]], objective: str
) -> tuple[dict[str, torch.Tensor], list[dict[str, Any]]]:
    """An optimizer's `state_dict` by the names of its parameters.

    Args:
        state: The `state_dict`.
        names: From `names_by_group`.
        objective: Whose parameters the optimizer updates.

    Returns:
        The tensors, as `SavedState.slots` has them; and by group `parameters` and `values`, what
        is kept of each parameter and of the group that is no tensor.

    Raises:
        UserError: The optimizer keeps something that a checkpoint has no form for.
    """
    tensors: dict[str, torch.Tensor] = {}

    def without_tensors(kept: Mapping[str, Any], place: str) -> dict[str, Any]:
        tensors.update({f"{place}/{k}": v for k, v in kept.items() if isinstance(v, torch.Tensor)})
        plain = {k: v for k, v in kept.items() if not isinstance(v, torch.Tensor)}
        odd = [key for key, value in plain.items() if not _is_plain(value)]
        if odd:
            raise UserError(
                f"the optimizer keeps a {type(plain[odd[0]]).__name__} as '{odd[0]}' of '{place}', "
                "which a checkpoint cannot hold",
                todo="An optimizer of your own keeps tensors, numbers, texts and lists of them.",
            )
        return plain

    groups: list[dict[str, Any]] = []
    for number, (group, own) in enumerate(zip(state["param_groups"], names, strict=True)):
        values = {key: value for key, value in group.items() if key != "params"}
        groups.append(
            {
                "values": without_tensors(values, _group_place(objective, number)),
                "parameters": {
                    name: without_tensors(state["state"].get(index, {}), f"{objective}/{name}")
                    for index, name in zip(group["params"], own, strict=True)
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
    """Let an optimizer go on from what `named_state` gave.

    Args:
        optimizer: From `create_optimizer`.
        named: The name of each of its parameters.
        objective: Whose parameters the optimizer updates.
        slots: From `SavedState.by_place`.
        groups: As `named_state` gave them.

    Raises:
        ValueError: It belongs to other parameters; the text names one of them.
    """
    own, names = optimizer.state_dict(), names_by_group(optimizer, named)
    for present, saved in zip(names, groups, strict=True):
        odd = sorted(set(present) ^ set(saved["parameters"]))
        if odd:
            raise ValueError(f"the parameters that '{objective}' trains differ in '{odd[0]}'")
    state: dict[int, dict[str, Any]] = {}
    loaded: list[dict[str, Any]] = []
    for number, (group, saved) in enumerate(zip(own["param_groups"], groups, strict=True)):
        for index, name in zip(group["params"], names[number], strict=True):
            kept = saved["parameters"][name] | _copies(slots, f"{objective}/{name}")
            lacking = sorted(set(own["state"].get(index, {})) - set(kept))
            if lacking:
                raise ValueError(f"'{lacking[0]}' of '{name}' is missing")
            if kept:
                state[index] = kept
        values = {
            # JSON has lists alone.
            key: tuple(value) if isinstance(group.get(key), tuple) else value
            for key, value in saved["values"].items()
        }
        tensors = _copies(slots, _group_place(objective, number))
        loaded.append({**group, **values, **tensors, "params": group["params"]})
    optimizer.load_state_dict({"state": state, "param_groups": loaded})


def stored_slots(state: SavedState) -> dict[str, dict[str, torch.Tensor]]:
    """The slots of a saved state by the names of parameters."""
    places = state.by_place()
    if "objectives" not in state.values:
        return places
    return {
        name: places.get(f"{objective}/{name}", {})
        for objective, saved in state.values["objectives"].items()
        for group in saved["groups"]
        for name in group["parameters"]
    }


def stored_powers(state: SavedState) -> dict[str, Sequence[float]]:
    """By the names of parameters, beta1 and beta2 to the power of one more than the updates."""
    powers: dict[str, Sequence[float]] = dict(state.values.get("powers", {}))
    for objective, saved in state.values.get("objectives", {}).items():
        for number, group in enumerate(saved["groups"]):
            updates = state.slots.get(f"{_group_place(objective, number)}/updates")
            if updates is not None:
                beta1, beta2 = group["values"]["betas"]
                made = int(updates)
                told = (power_after(beta1, made), power_after(beta2, made))
                powers |= dict.fromkeys(group["parameters"], told)
    return powers


def _group_place(objective: str, number: int) -> str:
    return f"{objective}/group {number}"


def _copies(slots: Mapping[str, Mapping[str, torch.Tensor]], place: str) -> dict[str, torch.Tensor]:
    """In memory of their own: what is read from a file would keep that on the disk for ever."""
    return {key: value.clone() for key, value in slots.get(place, {}).items()}


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))  # pyright: ignore[reportUnknownArgumentType]
    return value is None or isinstance(value, (bool, int, float, str))
