"""Parameters that keep their initial values, for the whole run or until a step."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.training.durations import parse_duration
from jumar.training.name_patterns import check_patterns, matches_any
from jumar.training.settings import TransferSettings

_UNFREEZE_AT = "transfer.unfreeze_at"


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """The frozen parts of a network.

    Attributes:
        names: The frozen parameters.
        norms: Batch norms all of whose parameters are frozen, by name.
        keeps_averages: Whether those norms stay in evaluation mode, so that their averages do not
            change.
        until: The step, counted from 0, at which frozen parameters begin to train; None for never.
    """

    names: frozenset[str]
    norms: Mapping[str, nn.Module]
    keeps_averages: bool
    until: int | None

    def begin(self, model: nn.Module) -> None:
        """Exclude the frozen parameters from training."""
        for name, parameter in model.named_parameters():
            if name in self.names:
                parameter.requires_grad = False

    def end(self, model: nn.Module) -> None:
        """Let the frozen parameters train, with batch norms in the mode of the model."""
        for name, parameter in model.named_parameters():
            if name in self.names:
                parameter.requires_grad = True
        for norm in self.norms.values():
            norm.train(model.training)

    def set_modes(self) -> None:
        """Put the frozen batch norms into evaluation mode, if requested."""
        for norm in self.norms.values() if self.keeps_averages else ():
            norm.eval()


def find_frozen(
    model: nn.Module, settings: TransferSettings, *, steps_per_epoch: int
) -> Frozen | None:
    """The parts frozen by the settings; None if there are none.

    Args:
        model: The network.
        settings: The patterns.
        steps_per_epoch: Steps per epoch, to convert `unfreeze_at` to steps.

    Raises:
        UserError: A pattern matches nothing, or `unfreeze_at` is not a number of steps or epochs.
    """
    if not settings.freeze:
        for name in ("freeze_batch_norms", "unfreeze_at"):
            if getattr(settings, name):
                raise UserError(
                    "nothing is frozen",
                    where=f"transfer.{name}",
                    todo="Choose what to freeze: --set transfer.freeze=PATTERN",
                )
        return None
    all_names = [name for name, _ in model.named_parameters()]
    check_patterns(settings.freeze, all_names, where="transfer.freeze")
    names = frozenset(name for name in all_names if matches_any(name, settings.freeze))
    norms = {
        name: module
        for name, module in model.named_modules()
        if isinstance(getattr(module, "running_mean", None), torch.Tensor)
        and all(matches_any(part, settings.freeze) for part in _parts_of(name, module))
    }
    return Frozen(
        names=names,
        norms=norms,
        keeps_averages=settings.freeze_batch_norms,
        until=_unfreezing_step(settings.unfreeze_at, steps_per_epoch),
    )


def parameter_lines(
    model: nn.Module, settings: TransferSettings, frozen: Frozen | None
) -> list[str]:
    """Lines with the number of trained parameters and a description of the frozen ones."""
    parameters = list(model.named_parameters())
    total = sum(parameter.numel() for _, parameter in parameters)
    frozen_parameters = [parameter for _, parameter in parameters if not parameter.requires_grad]
    if not frozen_parameters:
        return [f"{total:,} parameters, all trained"]
    trained = total - sum(parameter.numel() for parameter in frozen_parameters)
    lines = [
        f"{total:,} parameters, {trained:,} trained, "
        f"{total - trained:,} frozen in {counted(len(frozen_parameters), 'tensor')}"
    ]
    if frozen is None:
        return lines
    if frozen.until is not None:
        lines[0] += f" until step {frozen.until}"
    if frozen.norms:
        effect = (
            "normalise with their averages, which do not change"
            if frozen.keeps_averages
            else "normalise by the batch and update their averages "
            "(transfer.freeze_batch_norms=true keeps them)"
        )
        lines.append(f"batch norms of frozen parts ({len(frozen.norms)}): {effect}")
    if not settings.start_from:
        lines.append("warning: frozen parameters stay random, because transfer.start_from is empty")
    return lines


def _parts_of(name: str, module: nn.Module) -> list[str]:
    """The full names of a norm's parameters, or of its averages if it has none."""
    part_names = [part_name for part_name, _ in module.named_parameters()] or ["running_mean"]
    return [f"{name}.{part_name}" if name else part_name for part_name in part_names]


def _unfreezing_step(text: str, steps_per_epoch: int) -> int | None:
    if not text:
        return None
    duration = parse_duration(text, field=_UNFREEZE_AT)
    if duration.unit not in ("it", "ep"):
        raise UserError(
            f"'{text}' is neither steps nor epochs",
            where=_UNFREEZE_AT,
            todo="A resumed run must unfreeze at the same step. For instance: 500it or 2ep.",
        )
    return duration.steps(steps_per_epoch, None)
