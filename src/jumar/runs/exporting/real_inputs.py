"""Inputs from the data of a run, as its evaluation gives them to the network."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from jumar.data.samples import Batch, SampleKey
from jumar.ground.errors import UserError
from jumar.models.unfilled import Unfilled
from jumar.recipes.recipe import Recipe
from jumar.runs.exporting.network import Exportable

_COUNT = 3
_LARGEST_SIDE = 320
"""Crop size of larger images, enough to compare two programs."""


class _Seen(Exception):
    pass


def real_inputs(exportable: Exportable, recipe: Recipe) -> tuple[Tensor, ...]:
    """Inputs of up to three samples, evaluation samples if there are any.

    Args:
        exportable: The network.
        recipe: The run's recipe, with its data in place.

    Raises:
        UserError: The data is missing, or its samples do not fit the network.
    """
    assert exportable.entrance is not None
    with Unfilled():
        task = recipe.build_task(lambda _: None)
    data, run = task.eval_data, task.evaluate_batch
    if data is None:
        # Training batches of detectors and denoisers lack what scoring needs.
        data, run = task.train_data, task.objectives[0].sums
    batch = data.fetch([SampleKey(0, index) for index in range(min(_COUNT, len(data)))]).batch
    inputs = _received_inputs(task.model, exportable.entrance(task), run, batch) if batch else ()
    inputs = tuple(
        _cut(tensor[:_COUNT].contiguous(), port.shape)
        for tensor, port in zip(inputs, exportable.inputs, strict=False)
    )
    if exportable.lengths_of(inputs) is None:
        raise UserError("its samples do not have the lengths that the file takes")
    return inputs


def _received_inputs(
    model: nn.Module, entrance: nn.Module, run: Callable[[Batch], object], batch: Batch
) -> tuple[Tensor, ...]:
    """The inputs that a module receives for a batch; nothing after it is computed."""
    captured: list[tuple[Tensor, ...]] = []

    def note(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        captured.append(inputs)
        raise _Seen

    model.eval()
    handle = entrance.register_forward_pre_hook(note)
    try:
        with torch.no_grad():
            run(batch)
    except _Seen:
        pass
    finally:
        handle.remove()
    return tuple(tensor.detach().cpu() for tensor in captured[0]) if captured else ()


def _cut(tensor: Tensor, shape: Any) -> Tensor:
    """The upper left part of large images, if a network takes images of any size."""
    if "height" not in shape:
        return tensor
    return tensor[..., :_LARGEST_SIDE, :_LARGEST_SIDE].contiguous()
