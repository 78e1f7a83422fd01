"""Hashes of everything that a step changes, for a running training and for a checkpoint.

Values that only describe the run so far are left out: the clock, and the sums of the log line.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import torch

from jumar.observer import Observer
from jumar.precision.dumps.digest import digest_of, digest_of_text
from jumar.training.checkpoint import Checkpoint, load_state, load_weights
from jumar.training.checkpoint_state import SavedState
from jumar.training.state import TrainState

PARTS: Final = ("weights", "averages", "optimizer", "counters")
"""`averages` are those of the weights; `counters` are loss scale, updates and optimizer settings.
"""
_IGNORED: Final = ("window",)
Hashes = Mapping[str, str]
"""Hashes by part and name, such as `weights/conv1.weight`."""


def live_hashes(state: TrainState) -> Hashes:
    """The hashes of a run's current state; waits for the device."""
    averages = {} if state.ema is None else state.ema.state_dict()
    return dict(_hashes(state.task.model.state_dict(), averages, state.capture()))


def checkpoint_hashes(checkpoint: Checkpoint) -> Hashes:
    """The hashes of the state in a checkpoint.

    Raises:
        UserError: A file of the checkpoint is missing or damaged.
    """
    checkpoint.check(with_state=True)
    averages = load_weights(checkpoint.model_file(ema=True)) if checkpoint.has_ema else {}
    model = load_weights(checkpoint.model_file(ema=False))
    return dict(_hashes(model, averages, load_state(checkpoint)))


def combined(hashes: Hashes) -> dict[str, str]:
    """One hash per part."""
    combined_hashes = {part: hashlib.sha256() for part in PARTS}
    for name, digest in sorted(hashes.items()):
        combined_hashes[name.partition("/")[0]].update(f"{name} {digest}\n".encode())
    return {part: combined.hexdigest()[:16] for part, combined in combined_hashes.items()}


class StepHashes(Observer):
    """Hashes the state after each step of a run.

    Args:
        span: Number of steps.
        first: Number of steps before the first hashed one.

    Attributes:
        state: The state to hash; must be set before the first step.
        steps: One hash per part, by the number of finished steps.
        last: The hashes after the last step so far.
    """

    def __init__(self, span: int, first: int = 0) -> None:
        self.span, self._left_out = span, first
        self.state: TrainState | None = None
        self.steps: dict[int, dict[str, str]] = {}
        self.last: Hashes = {}

    def end_step(self) -> None:
        """See `Observer.end_step`."""
        assert self.state is not None
        if self._left_out > 0:
            self._left_out -= 1
            return
        self.last = live_hashes(self.state)
        self.steps[self.state.step] = combined(self.last)


def _hashes(
    model: Mapping[str, torch.Tensor], averages: Mapping[str, torch.Tensor], saved: SavedState
) -> Iterator[tuple[str, str]]:
    for part, tensors in (("weights", model), ("averages", averages), ("optimizer", saved.slots)):
        for name, tensor in tensors.items():
            form = f"{tensor.dtype} {tuple(tensor.shape)}"
            yield f"{part}/{name}", f"{form} {digest_of(tensor)}"
    objectives: Mapping[str, Mapping[str, Any]] = saved.values.get("objectives", {})
    counters: dict[str, Any] = {
        name: {key: value for key, value in objective_state.items() if key not in _IGNORED}
        for name, objective_state in objectives.items()
    }
    counters["loss scale"] = saved.values.get("loss_scale")
    for name, value in counters.items():
        yield f"counters/{name}", digest_of_text(json.dumps(value, sort_keys=True))
