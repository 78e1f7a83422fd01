"""How many training steps produced a TensorFlow file, and how the original script counts them."""

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

_LARGEST_STEP = 2**53
"""The largest integer that all JSON readers represent exactly."""


@dataclass(frozen=True, kw_only=True)
class FinishedSteps:
    """The number of finished steps in a file.

    Attributes:
        step: Counted as runs do here: one for each update of the network.
        remark: How the number was determined, if that is worth mentioning; otherwise "".
    """

    step: int
    remark: str = ""


def finished_steps(
    file: TensorFile, entries: Mapping[str, TensorEntry], network: Network
) -> FinishedSteps:
    """Count the steps from Adam's powers, `global_step`, or the number in the file's name.

    Scripts count `global_step` and the numbers in names in different ways; a power is multiplied
    once per update by the optimizer itself.
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
    betas = sorted({one.betas for one in optimizers if isinstance(one, Adam)})
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
    # With several optimizers, use the one that updates at every step.
    step = max(updates)
    if step == recorded_step:
        return FinishedSteps(step=step)
    return FinishedSteps(
        step=step, remark=f"step {step} by Adam's powers, although {source} says {recorded_step}"
    )


def _counted(
    file: TensorFile, entries: Mapping[str, TensorEntry], counting: TfCounting
) -> tuple[int, str]:
    """The steps according to the original's own counter, and a name for that counter."""
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
    return step if 0 <= step < _LARGEST_STEP else 0
