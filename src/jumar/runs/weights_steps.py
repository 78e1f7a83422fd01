"""How many steps of training a TensorFlow file has behind it, and how its original counts them."""

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
"""What JSON's readers keep exactly."""


@dataclass(frozen=True, kw_only=True)
class FinishedSteps:
    """The steps behind a file.

    Attributes:
        step: As a run counts them here: one for each update of the network.
        remark: Where they were taken from, if that needs to be known; or "".
    """

    step: int
    remark: str = ""


def finished_steps(
    file: TensorFile, entries: Mapping[str, TensorEntry], network: Network
) -> FinishedSteps:
    """Count the steps: by Adam's powers, by `global_step`, by the number in the file's name.

    Scripts count `global_step` and the numbers in names as they like; a power is multiplied once
    an update by the optimizer itself.
    """
    counting = network.names.counting
    counted, source = _counted(file, entries, counting)
    powers = [
        [float(file.read(name).item()) for name in names]
        for optimizer in network.names.optimizers
        if (names := find_powers(optimizer, entries)) is not None
    ]
    recipe = network.recipe
    if recipe is None or not powers:
        return FinishedSteps(step=counted)
    if any(have_underflowed(pair) for pair in powers):
        return FinishedSteps(
            step=counted, remark=f"step {counted} by {source}: Adam's powers have underflowed"
        )
    optimizers = [one.optimizer for one in recipe.optimization().values()]
    betas = sorted({one.betas for one in optimizers if isinstance(one, Adam)})
    made = [
        next((n for pair in betas if (n := updates_made(told, pair)) is not None), None)
        for told in powers
    ]
    updates = [number for number in made if number is not None]
    if len(updates) < len(made):
        return FinishedSteps(
            step=counted, remark=f"step {counted} by {source}: Adam's powers are of other betas"
        )
    # Of several optimizers the one that makes an update at every step.
    step = max(updates)
    if step == counted:
        return FinishedSteps(step=step)
    return FinishedSteps(
        step=step, remark=f"step {step} by Adam's powers, where {source} says {counted}"
    )


def _counted(
    file: TensorFile, entries: Mapping[str, TensorEntry], counting: TfCounting
) -> tuple[int, str]:
    """The steps by the original's own counter, and what to call that."""
    for name in (GLOBAL_STEP, *sorted(name for name in entries if name.endswith("/global_step"))):
        entry = entries.get(name)
        if entry is not None and entry.elements == 1 and entry.dtype in ("int32", "int64"):
            number = int(file.read(name).item())
            of = f" / {counting.global_step}" if counting.global_step > 1 else ""
            return _plausible(number // counting.global_step), f"{name}{of}"
    # Originals without the variable (ViDeNN) read the step from the name that Saver.save made.
    named = re.search(r"-(\d{1,15})$", file.prefix.name) if isinstance(file, TensorBundle) else None
    if named is None:
        return 0, "nothing"
    return _plausible(int(named[1]) - counting.first_number), "the file's name"


def _plausible(step: int) -> int:
    return step if 0 <= step < _LARGEST_STEP else 0
