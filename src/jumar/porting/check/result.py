"""The outcome of a check: its stages, and everything a report shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from jumar.ground.text import Text
from jumar.porting.check.losses import Comparison
from jumar.porting.check.wording import NOTHING

Status = Literal["passed", "failed", "not reached"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage: its outcome, how long it took, and why.

    `key` is the stage's name for programs, the same in every language. `details` are lines that
    help explain why: the last ones of the script's output.
    """

    key: str
    name: Text
    status: Status
    seconds: float
    reason: Text = NOTHING
    details: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """A whole check.

    `notes` are sentences about observations besides the stages; `standin` are the events recorded
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
