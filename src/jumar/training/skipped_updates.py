"""Detecting that the loss scale skips all updates; a few skipped updates are normal."""

from collections.abc import Mapping

from jumar.ground.errors import UserError
from jumar.training.results import Outcome
from jumar.training.state import TrainState

_MIN_REPORTED = 3
"""Minimum number of skipped updates in a row to report: an exponential scale is lowered only after
two overflows."""


class NoUpdateError(UserError):
    """A run reached its end without a single update of an objective.

    Attributes:
        step: The last step.
        objective: Name of the objective.
        reason: The reason given in `results.json`.
    """

    def __init__(self, step: int, objective: str, *, scale: float, is_fixed: bool) -> None:
        lowers = ", or loss_scale=exponential, which lowers it" if is_fixed else ""
        super().__init__(
            f"'{objective}' was never updated in {step} steps: at every step the gradients "
            f"overflowed under the loss scale, now {scale:g}",
            where="precision.loss_scale",
            todo="Its weights have not changed. Start a new run with --set "
            f"precision.loss_scale.init_loss_scale=N, with N below {scale:g}{lowers}. If no scale "
            "helps, precision.loss_scale=none stops at the first non-finite step.",
        )
        self.step = step
        self.objective = objective
        self.reason = self.what


class SkipWatch:
    """Warns at log lines about objectives whose last few updates were all skipped.

    Warns again only when twice as many updates in a row have been skipped.
    """

    def __init__(self, state: TrainState) -> None:
        self._state = state
        self._updates = [int(lane.updates.item()) for lane in state.lanes]
        self._since = [lane.attempts for lane in state.lanes]
        self._next = [_MIN_REPORTED] * len(state.lanes)

    def warnings(self) -> list[str]:
        """A warning for each objective whose updates are all skipped; waits for the device."""
        scale = self._state.policy.loss_scale
        if scale is None:
            return []
        lines: list[str] = []
        for number, lane in enumerate(self._state.lanes):
            updates = int(lane.updates.item())
            if updates != self._updates[number]:
                self._updates[number], self._since[number] = updates, lane.attempts
                self._next[number] = _MIN_REPORTED
            in_a_row = lane.attempts - self._since[number]
            if in_a_row >= self._next[number]:
                self._next[number] = 2 * in_a_row
                lines.append(
                    f"warning: the last {in_a_row} updates of '{lane.objective.name}' were "
                    f"skipped because gradients overflow; the loss scale is {scale.scale.item():g}"
                )
        return lines


def ended(state: TrainState, metrics: Mapping[str, float]) -> Outcome:
    """The outcome of a run that reached its last step."""
    scale, missing = state.policy.loss_scale, state.without_update()
    if scale is None or not missing:
        return Outcome(state="finished", step=state.step, exit_code=0, metrics=metrics)
    failure = NoUpdateError(
        state.step, missing[0], scale=scale.scale.item(), is_fixed=scale.is_fixed
    )
    return Outcome(state="failed", step=state.step, exit_code=2, metrics=metrics, failure=failure)
