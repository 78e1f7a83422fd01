"""The number of training steps behind a TensorFlow file, despite its script's way of counting."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from jumar.models.tf_layout import TfCounting
from jumar.runs.weights_exchange import Network
from jumar.training.optimizers import Adam
from jumar.weights.adam_powers import have_underflowed, updates_made
from jumar.weights.matching import GLOBAL_STEP
from jumar.weights.slots import find_powers
from jumar.weights.tensor_bundle import TensorBundle
from jumar.weights.tensor_files import TensorFile
from jumar.weights.tensor_types import TensorEntry

_MAX_STEP = 2**53
"""The largest integer that all JSON readers represent exactly."""


@dataclass(frozen=True, kw_only=True)
class FinishedSteps:
    """The number of finished steps in a file.

    Attributes:
        step: Number of updates of the network, as in our runs.
        remark: An explanation of the number; empty if it is obvious.
    """

    step: int
    remark: str = ""


def finished_steps(
    file: TensorFile, entries: Mapping[str, TensorEntry], network: Network
) -> FinishedSteps:
    """Return the number of steps from Adam's powers, `global_step`, or the file's name.

    Scripts count `global_step` and the numbers in names in different ways, but the optimizer
    multiplies its powers exactly once per update.
    """
    counting = network.names.counting
    recorded_step, source = _counted(file, entries, counting)
    powers = [
        [float(file.read(name).item()) for name in names]
        for optimizer in network.names.optimizers
        if (names := find_powers(optimizer, entries)) is not None
    ]
    recipe = network.recipe
    if recipe is None or not powers:
        return FinishedSteps(step=recorded_step)
    if any(have_underflowed(pair) for pair in powers):
        return FinishedSteps(
            step=recorded_step,
            remark=f"step {recorded_step} by {source}: Adam's powers have underflowed",
        )
    optimizers = [settings.optimizer for settings in recipe.optimization().values()]
    betas = sorted({optimizer.betas for optimizer in optimizers if isinstance(optimizer, Adam)})
    counts = [
        next((n for betas_pair in betas if (n := updates_made(pair, betas_pair)) is not None), None)
        for pair in powers
    ]
    updates = [number for number in counts if number is not None]
    if len(updates) < len(counts):
        return FinishedSteps(
            step=recorded_step,
            remark=f"step {recorded_step} by {source}: Adam's powers have other betas",
        )
    # With several optimizers, one of them updates at every step.
    step = max(updates)
    if step == recorded_step:
        return FinishedSteps(step=step)
    return FinishedSteps(
        step=step, remark=f"step {step} by Adam's powers, although {recorded_step} by {source}"
    )


def _counted(
    file: TensorFile, entries: Mapping[str, TensorEntry], counting: TfCounting
) -> tuple[int, str]:
    """Return the number of steps according to the original's counter, and a name for it."""
    for name in (GLOBAL_STEP, *sorted(name for name in entries if name.endswith("/global_step"))):
        entry = entries.get(name)
        if entry is not None and entry.elements == 1 and entry.dtype in ("int32", "int64"):
            number = int(file.read(name).item())
            divisor = f" / {counting.global_step}" if counting.global_step > 1 else ""
            return _plausible(number // counting.global_step), f"{name}{divisor}"
    # Originals without the variable (ViDeNN) read the step from the name created by Saver.save.
    match = re.search(r"-(\d{1,15})$", file.prefix.name) if isinstance(file, TensorBundle) else None
    if match is None:
        return 0, "nothing"
    return _plausible(int(match[1]) - counting.first_number), "the file's name"


def _plausible(step: int) -> int:
    return step if 0 <= step < _MAX_STEP else 0
