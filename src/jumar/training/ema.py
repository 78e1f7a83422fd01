"""Exponential moving average of a model's weights."""

# Torch documents its list functions and fused kernels under these names but does not export them.
# pyright: reportPrivateImportUsage=false

import contextlib
from collections.abc import Generator, Mapping

import torch
from torch import Tensor, nn

from jumar.ground.errors import UserError
from jumar.precision.recording.restoring import copy_into


def ema_decay(decay: float, step: int, *, warm_up: bool) -> float:
    """The fraction of the old average that is kept at a step.

    Args:
        decay: The long-run value of this fraction.
        step: The optimizer step, counted from 0.
        warm_up: Whether to limit it to (1 + step) / (10 + step), as
            tf.train.ExponentialMovingAverage does if it gets a step, so that early weights fade
            quickly.
    """
    return min(decay, (1 + step) / (10 + step)) if warm_up else decay


class Ema:
    """Averages of a model's floating-point parameters.

    Buffers are not averaged: batch-norm statistics are already averages, and evaluation uses those
    of the model. 16-bit parameters have 32-bit averages, because one step's contribution would be
    lost in 16-bit rounding.

    Args:
        model: The model, already on its device; the averages start from its weights.
        averaged: The part of the model to average; None for all of it.
        decay: The fraction of the old average that is kept at each step.
        warm_up: See `ema_decay`.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        averaged: nn.Module | None = None,
        decay: float,
        warm_up: bool = False,
    ) -> None:
        self.decay = decay
        self.warm_up = warm_up
        self._model = model
        self._parameters = [p for p in (averaged or model).parameters() if p.is_floating_point()]
        self._averages = [
            p.detach().to(torch.promote_types(p.dtype, torch.float32), copy=True)
            for p in self._parameters
        ]
        self._swapped = False

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Update the averages with the weights after a step.

        Args:
            step: The optimizer step just finished, counted from 0.
        """
        share = 1.0 - ema_decay(self.decay, step, warm_up=self.warm_up)
        by_dtype: dict[torch.dtype, tuple[list[Tensor], list[Tensor]]] = {}
        for average, parameter in zip(self._averages, self._parameters, strict=True):
            averages, values = by_dtype.setdefault(average.dtype, ([], []))
            averages.append(average)
            values.append(parameter.detach().to(average.dtype))
        for averages, values in by_dtype.values():
            torch._foreach_lerp_(averages, values, share)

    @contextlib.contextmanager
    def swapped(self) -> Generator[None, None, None]:
        """Context in which the model has the averages as its weights.

        Afterwards the model's own weights are restored bit for bit, even after an error.
        """
        if self._swapped:
            raise RuntimeError("the averages are already in the model")
        with torch.no_grad():
            weights = [parameter.detach().clone() for parameter in self._parameters]
        self._swapped = True
        try:
            copy_into(self._parameters, self._averages)
            yield
        finally:
            copy_into(self._parameters, weights)
            self._swapped = False

    def state_dict(self) -> dict[str, Tensor]:
        """The model's full state for evaluation, with averages in place of its parameters.

        As in a model's `state_dict`, the tensors are not copies.
        """
        by_identity = {
            id(parameter): average
            for parameter, average in zip(self._parameters, self._averages, strict=True)
        }
        return {
            name: by_identity[id(value)] if id(value) in by_identity else value.detach()
            for name, value in self._model.state_dict(keep_vars=True).items()
        }

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Load the averages from a state returned by `state_dict`, ignoring its buffers.

        Raises:
            UserError: An average is missing or has another shape.
        """
        names: dict[int, list[str]] = {}
        for name, parameter in self._model.named_parameters(remove_duplicate=False):
            names.setdefault(id(parameter), []).append(name)
        for parameter, average in zip(self._parameters, self._averages, strict=True):
            aliases = names[id(parameter)]
            # In a file, a weight shared by two layers has only one of its names.
            saved = next((state[name] for name in aliases if name in state), None)
            if saved is None or saved.shape != average.shape:
                shape = "missing" if saved is None else f"of shape {list(saved.shape)}"
                raise UserError(
                    f"the averaged weight '{aliases[0]}' of shape {list(average.shape)} is {shape}",
                    todo="Resume with the recipe and settings that wrote the checkpoint.",
                )
            average.copy_(saved)
