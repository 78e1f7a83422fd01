"""Exponential moving average of a model's weights."""

# Torch documents its list functions and fused kernels under these names but does not export them.
# pyright: reportPrivateImportUsage=false

import contextlib
from collections.abc import Generator, Mapping

import torch
from torch import Tensor, nn

from jumar.ground.errors import UserError


def ema_decay(decay: float, step: int, *, warm_up: bool) -> float:
    """The share of the old average that stays at a step.

    Args:
        decay: Its value in the long run.
        step: The optimizer step, counted from 0.
        warm_up: At most (1 + step) / (10 + step), as tf.train.ExponentialMovingAverage with a
            step: early weights fade soon.
    """
    return min(decay, (1 + step) / (10 + step)) if warm_up else decay


class Ema:
    """Averages of a model's floating-point parameters.

    Parameters are averaged. Buffers are not: batch-norm statistics are averages already, and
    evaluating with the model's own needs no second copy of them. Parameters in 16 bits have
    averages in 32, because one step's part is below the rounding of 16.

    Args:
        model: On its device; the averages start from its weights.
        averaged: The part of the model that is averaged; None for all of it.
        decay: Share of the old average that stays at each step.
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
        """Take the weights after a step into the averages.

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
        """Put the averages into the model for as long as this context lasts.

        Afterwards the model's own weights are back, bit for bit, also after an error.
        """
        if self._swapped:
            raise RuntimeError("the averages are in the model already")
        with torch.no_grad():
            own = [parameter.detach().clone() for parameter in self._parameters]
        self._swapped = True
        try:
            self._put(self._averages)
            yield
        finally:
            self._put(own)
            self._swapped = False

    def state_dict(self) -> dict[str, Tensor]:
        """The model's whole state with the averages for its parameters: weights to evaluate.

        Tensors are the live ones, not copies, as in a model's `state_dict`.
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
        """Take the averages out of what `state_dict` gave; buffers in it are left alone.

        Raises:
            UserError: An average is missing or has another shape.
        """
        names: dict[int, list[str]] = {}
        for name, parameter in self._model.named_parameters(remove_duplicate=False):
            names.setdefault(id(parameter), []).append(name)
        for parameter, average in zip(self._parameters, self._averages, strict=True):
            aliases = names[id(parameter)]
            # A file holds a weight that two layers share under one of its names only.
            saved = next((state[name] for name in aliases if name in state), None)
            if saved is None or saved.shape != average.shape:
                found = "missing" if saved is None else f"of shape {list(saved.shape)}"
                raise UserError(
                    f"the averaged weight '{aliases[0]}' of shape {list(average.shape)} is {found}",
                    todo="Resume with the recipe and settings that wrote the checkpoint.",
                )
            average.copy_(saved)

    @torch.no_grad()
    def _put(self, values: list[Tensor]) -> None:
        for parameter, value in zip(self._parameters, values, strict=True):
            parameter.copy_(value)
