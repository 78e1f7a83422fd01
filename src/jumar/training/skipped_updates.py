"""Updates that the loss scale skips: a few are its way of working, all of them are no training."""

from collections.abc import Mapping

from jumar.ground.errors import UserError
from jumar.training.results import Outcome
from jumar.training.state import TrainState

_FEWEST_TOLD = 3
"""Skipped in a row: an exponential scale takes two overflows to sink."""


class NoUpdateError(UserError):
    """A run came to its end without one update of an objective.

    Attributes:
        step: The last one.
        objective: Its name.
        reason: For `results.json`.
    """

    def __init__(self, step: int, objective: str, *, scale: float, is_fixed: bool) -> None:
        lowers = ", or loss_scale=exponential, which lowers it" if is_fixed else ""
        super().__init__(
            f"no update of '{objective}' was made in {step} steps: the gradients overflowed at "
            f"every one under the loss scale, now {scale:g}",
            where="precision.loss_scale",
            todo="Its weights are those with which the run began. Start a new run with --set "
            f"precision.loss_scale.init_loss_scale=N, N below {scale:g}{lowers}. If no scale "
            "helps, precision.loss_scale=none stops at the step that is not finite.",
        )
        self.step = step
        self.objective = objective
        self.reason = self.what


class SkipWatch:
    """Says at log lines where no update was made since the last ones.

    Says so again only when twice as many were skipped in a row.
    """

    def __init__(self, state: TrainState) -> None:
        self._state = state
        self._updates = [int(lane.updates.item()) for lane in state.lanes]
        self._since = [lane.attempts for lane in state.lanes]
        self._next = [_FEWEST_TOLD] * len(state.lanes)

    def warnings(self) -> list[str]:
        """A line for each objective whose updates are all skipped; waits for the device."""
        scale = self._state.policy.loss_scale
        if scale is None:
            return []
        lines: list[str] = []
        for number, lane in enumerate(self._state.lanes):
            updates = int(lane.updates.item())
            if updates != self._updates[number]:
                self._updates[number], self._since[number] = updates, lane.attempts
                self._next[number] = _FEWEST_TOLD
            in_a_row = lane.attempts - self._since[number]
            if in_a_row >= self._next[number]:
                self._next[number] = 2 * in_a_row
                lines.append(
                    f"warning: the last {in_a_row} updates of '{lane.objective.name}' were "
                    f"skipped, since gradients overflow; the loss scale is {scale.scale.item():g}"
                )
        return lines


def ended(state: TrainState, metrics: Mapping[str, float]) -> Outcome:
    """How a run ends that came to its last step."""
    scale, missing = state.policy.loss_scale, state.without_update()
    if scale is None or not missing:
        return Outcome(state="finished", step=state.step, exit_code=0, metrics=metrics)
    failure = NoUpdateError(
        state.step, missing[0], scale=scale.scale.item(), is_fixed=scale.is_fixed
    )
    return Outcome(state="failed", step=state.step, exit_code=2, metrics=metrics, failure=failure)
