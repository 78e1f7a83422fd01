"""The outcome of a check, with everything that a report shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from jumar.ground.text import Text
from jumar.porting.check.losses import Comparison
from jumar.porting.check.wording import NOTHING

Status = Literal["passed", "failed", "not reached"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage with its outcome, duration and reason.

    `key` identifies the stage for programs, in every language. `details` are the last lines of the
    script's output, which help to explain the reason.
    """

    key: str
    name: Text
    status: Status
    seconds: float
    reason: Text = NOTHING
    details: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The outcome of a check.

    `notes` are observations that belong to no stage; `standin` are the events recorded
    by the stand-in for npu_bridge.
    """

    stages: tuple[Stage, ...]
    comparison: Comparison | None
    standin: tuple[Mapping[str, Any], ...]
    notes: tuple[Text, ...]
    command: tuple[str, ...]
    interpreter: str
    seconds: float

    @property
    def passed(self) -> bool:
        return all(stage.status == "passed" for stage in self.stages)
