"""Inputs from the data of a run, as its evaluation passes them to the network."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from jumar.data.samples import Batch, SampleKey
from jumar.ground.errors import UserError
from jumar.models.unfilled import Unfilled
from jumar.recipes.recipe import Recipe
from jumar.runs.exporting.network import Exportable

_NUM_SAMPLES = 3
_MAX_SIDE = 320
"""Crop size of larger images, enough to compare two programs."""


class _Captured(Exception):
    """Raised when the inputs of a module are known, to skip the rest of the computation."""


def real_inputs(exportable: Exportable, recipe: Recipe) -> tuple[Tensor, ...]:
    """Return the inputs of up to three samples, from the evaluation data if there is any.

    Args:
        exportable: The network.
        recipe: The run's recipe, with the current paths of its data.

    Raises:
        UserError: The data is missing, or its samples do not fit the network.
    """
    assert exportable.entrance is not None
    with Unfilled():
        task = recipe.build_task(lambda _: None)
    data, run = task.eval_data, task.evaluate_batch
    if data is None:
        # Training batches of detectors and denoisers cannot be scored, but have a loss.
        data, run = task.train_data, task.objectives[0].sums
    batch = data.fetch([SampleKey(0, index) for index in range(min(_NUM_SAMPLES, len(data)))]).batch
    inputs = _received_inputs(task.model, exportable.entrance(task), run, batch) if batch else ()
    inputs = tuple(
        _cut(tensor[:_NUM_SAMPLES].contiguous(), port.shape)
        for tensor, port in zip(inputs, exportable.inputs, strict=False)
    )
    if exportable.lengths_of(inputs) is None:
        raise UserError("its samples do not have lengths that the file accepts")
    return inputs


def _received_inputs(
    model: nn.Module, entrance: nn.Module, run: Callable[[Batch], object], batch: Batch
) -> tuple[Tensor, ...]:
    """Return the inputs that a module receives for a batch, without computing anything after it."""
    captured: list[tuple[Tensor, ...]] = []

    def capture(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        captured.append(inputs)
        raise _Captured

    model.eval()
    handle = entrance.register_forward_pre_hook(capture)
    try:
        with torch.no_grad():
            run(batch)
    except _Captured:
        pass
    finally:
        handle.remove()
    return tuple(tensor.detach().cpu() for tensor in captured[0]) if captured else ()


def _cut(tensor: Tensor, shape: Any) -> Tensor:
    """Return the upper left part of large images, if the network accepts images of any size."""
    if "height" not in shape:
        return tensor
    return tensor[..., :_MAX_SIDE, :_MAX_SIDE].contiguous()
