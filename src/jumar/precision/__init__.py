"""Precision of a run: modes, op lists, loss scale; nothing outside mentions float16."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from jumar.precision.recording.dumping import Dumping


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
    """Dump steps of a training loop, as a context around it: `with jumar.precision.dump("x"):`.

    A step ends where `step()` of the returned object is called, or, if it never is, with each step
    of the optimizer; of several, with that of the first.

    Args:
        folder: Where dumps go, a folder a step and rank.
        steps: Which steps, counted from 0.
        level: `modules`, or `statistics` of ops too, or `tensors` as well.
        counts: Whether zeros and elements out of float16's range are counted.
        parameters: Whether parameters, gradients, the optimizer's state and updates are recorded.
        ops: Globs of ops, by aten name or CANN type; none for all.
        layers: Globs of layers' paths; none for all.
        max_gib: Largest size of a step's tensors.
        sample: How many elements of a larger tensor are kept, evenly spaced; 0 for all.
        digests: Whether a hash of every tensor is recorded.
        model: Its modules are named by their path in it; by default by their path in the outermost
            module that is called.
        optimizer: The optimizer whose step ends a step, where there are several.

    Raises:
        UserError: The folder cannot be written to or holds a dump, or a setting is not allowed;
            when the block ends, that a step did not come.
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
