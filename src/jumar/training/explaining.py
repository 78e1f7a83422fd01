"""Finding the op behind a skipped update by repeating the step's passes with every op recorded.

The repetition is local to each rank and has no side effects: the weights are unchanged, since the
update was skipped, and buffers and loss scale are reset before it and restored afterwards.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

from torch import Tensor

from jumar.ground.text import time_text
from jumar.precision.overflow.origin import origin_of
from jumar.precision.overflow.wording import origin_lines
from jumar.precision.recording.recorder import RecordSettings, StepRecorder
from jumar.precision.recording.restoring import copy_into, restored
from jumar.training.guard import Guard
from jumar.training.lanes import Lane
from jumar.training.parallel.ranks import Ranks
from jumar.training.profiling.ranges import named_layers
from jumar.training.state import TrainState

MAX_EXPLAINED: Final = 3
"""Maximum number of skipped updates to explain per run."""


class Explainer:
    """Explains the first skipped updates of a run, and the one that stops it.

    Args:
        state: The state of the training.
        guard: Determines whether the run will stop.
        ranks: The ranks; each explains its own passes.
        say: Prints a line of the run, on the first rank only.
        say_here: Prints a line on every rank.
    """

    def __init__(
        self,
        state: TrainState,
        guard: Guard,
        ranks: Ranks,
        *,
        say: Callable[[str], None],
        say_here: Callable[[str], None],
    ) -> None:
        self._state, self._guard, self._ranks = state, guard, ranks
        self._say, self._say_here = say, say_here
        self._buffers: tuple[Sequence[Tensor], Sequence[Tensor]] = ((), ())
        self._scale: Tensor | None = None
        self._num_explained = 0
        self._is_stopped = False

    def prepare(self, buffers: Sequence[Tensor]) -> None:
        """Save the state that the passes of a step change."""
        if self._is_stopped:
            return
        scale = self._state.policy.loss_scale
        self._scale = None if scale is None else scale.scale.clone()
        self._buffers = buffers, [buffer.detach().clone() for buffer in buffers]

    def explain(self, lane: Lane, blocked: Tensor, passes: Callable[[], object]) -> None:
        """Explain an update if it was skipped; waits for the device.

        All ranks agree on whether it was, and each repeats its own part of the batch.

        Args:
            lane: The objective that was trained.
            blocked: Whether its update was skipped (0-dim).
            passes: Repeats forward and backward without the other ranks.
        """
        if self._is_stopped or not blocked.item():
            return
        stops = bool(self._guard.blocked.item())
        if not stops and self._num_explained == MAX_EXPLAINED:
            return
        self._is_stopped = stops
        self._num_explained += not stops
        began = time.monotonic()
        step = self._state.step + 1
        scale = "none" if self._scale is None else f"{self._scale.item():g}"
        outcome = "the run stops" if stops else "skipped"
        self._say(
            f"step {step}: no update of '{lane.objective.name}' ({outcome}), loss scale {scale}"
        )
        if not self._describe(lane, passes):
            self._say(f"rank {self._ranks.rank}: every recorded op gave finite values")
        self._say(f"repeated with every op recorded in {time_text(time.monotonic() - began)}")
        if not stops and self._num_explained == MAX_EXPLAINED:
            self._say(f"{MAX_EXPLAINED} skipped updates were explained; further ones are not")
        self._buffers = (), ()

    def _describe(self, lane: Lane, passes: Callable[[], object]) -> bool:
        """Repeat the passes and print where the overflow began; returns whether on this rank."""
        state, scale = self._state, self._state.policy.loss_scale
        recorder = StepRecorder(
            None,
            RecordSettings(),
            rank=self._ranks.rank,
            modules={"": state.task.model, **named_layers(state.task.model, state.task.objectives)},
        )
        scale_now = None if scale is None else scale.scale.clone()
        with restored(self._buffers[0]):
            try:
                copy_into(*self._buffers)
                if scale is not None and self._scale is not None:
                    scale.scale.copy_(self._scale)
                recorder.begin(state.step)
                passes()
                origin = origin_of(recorder.take(lane.optimizer))
            finally:
                recorder.stop()
                state.drop_gradients()
                if scale is not None and scale_now is not None:
                    scale.scale.copy_(scale_now)
        for line in () if origin is None else origin_lines(self._ranks.rank, origin):
            self._say_here(line)
        return origin is not None
