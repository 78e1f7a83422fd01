"""Precision of a run: modes, op lists, loss scale; no other package mentions float16."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from jumar.precision.recording.dumping import Dumping
    from jumar.precision.sensitivity.measuring import By, Sensitivity


def dump(
    folder: Path | str,
    *,
    steps: Iterable[int] = (0,),
    level: Literal["modules", "statistics", "tensors"] = "statistics",
    counts: bool = True,
    parameters: bool = True,
    ops: Sequence[str] = (),
    layers: Sequence[str] = (),
    max_gib: float = 10.0,
    sample: int = 0,
    digests: bool = False,
    model: "nn.Module | None" = None,
    optimizer: "Optimizer | None" = None,
) -> "Dumping":
    """Dump steps of a training loop: `with jumar.precision.dump("x"):` around the loop.

    A step ends when `step()` of the returned object is called. If that is never called, it ends
    with each step of the optimizer, or of the first optimizer if there are several.

    Args:
        folder: Folder for the dumps, with a subfolder per step and rank.
        steps: The steps to dump, counted from 0.
        level: `modules` only, with `statistics` of ops, or with `tensors` as well.
        counts: Whether zeros and elements outside float16's range are counted.
        parameters: Whether parameters, gradients, the optimizer state and updates are recorded.
        ops: Globs of ops, by aten name or CANN type; empty for all.
        layers: Globs of layers' paths; empty for all.
        max_gib: Maximum size of a step's tensors.
        sample: Maximum number of elements stored per tensor, evenly spaced; 0 for all.
        digests: Whether a hash of every tensor is recorded.
        model: The module relative to which layers are named; by default, the outermost module that
            is called.
        optimizer: The optimizer whose step ends a step, if there are several.

    Raises:
        UserError: The folder cannot be written to or contains a dump, or a setting is not allowed;
            or, at the end of the block, a step was not reached.
    """
    from jumar.precision.recording.dumping import Dumping
    from jumar.precision.recording.recorder import RecordSettings

    return Dumping(
        folder,
        steps=steps,
        settings=RecordSettings(
            level=level,
            counts=counts,
            parameters=parameters,
            ops=ops,
            layers=layers,
            max_gib=max_gib,
            sample=sample,
            digests=digests,
        ),
        model=model,
        optimizer=optimizer,
    )


def noise(
    model: "nn.Module",
    step: "Callable[[], Tensor]",
    *,
    dtype: Literal["float16", "bfloat16"] = "bfloat16",
    by: "By" = "group",
    backward: bool = True,
    seed: int = 0,
    say: Callable[[str], None] | None = None,
) -> "Sensitivity":
    """Measure the effect of each op's rounding errors on a step's loss and gradients.

    The step is repeated once for each group of ops, with noise of the size of rounding to `dtype`
    added to their outputs. The model's buffers and the random state are restored before each pass,
    gradients after the last one; weights do not change.

    Args:
        model: The network; its gradients are compared.
        step: Runs forward and backward on one batch and returns the loss, without an update.
        dtype: `float16` or `bfloat16`.
        by: The ops that get noise in one pass: `group` (an op type in a layer), `layer`, `op` (an
            op type) or `call`.
        backward: Whether ops of the backward pass get noise too.
        seed: Seed of the noise.
        say: Called with a line about the number of passes and their time.

    Raises:
        UserError: A setting is not allowed, or the step has no gradients or no finite loss.
    """
    from jumar.precision.sensitivity.measuring import NoiseSettings, parameter_passes, sensitivity

    gradients = [weight.grad for weight in model.parameters()]
    try:
        return sensitivity(
            parameter_passes(model, step),
            modules=dict(model.named_modules()),
            settings=NoiseSettings(dtype=dtype, by=by, backward=backward, seed=seed),
            buffers=list(model.buffers()),
            say=say,
        )
    finally:
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient
