"""The record of one run of a script, read back from its event lines."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jumar.porting.check.supervision import Ended

RunStage = Literal["imports", "graph", "step"]


@dataclass(frozen=True, kw_only=True)
class StepLosses:
    """The losses of one training step, by the names of their tensors."""

    step: int
    losses: tuple[tuple[str, float], ...]


@dataclass(frozen=True, kw_only=True)
class ScriptError:
    """What the script raised: its type, text, and the frames from the outside in."""

    type: str
    message: str
    module: str
    frames: tuple[tuple[str, int], ...]


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run of a script.

    `reached` has the seconds after the start at which a stage was reached; `finished` says that
    all steps ran (`steps`) or that the script came to its end before (`script`).
    """

    ended: Ended
    reached: Mapping[RunStage, float]
    num_ops: int
    losses: tuple[StepLosses, ...]
    error: ScriptError | None
    exit_code: str
    finished: Literal["steps", "script", ""]
    restored: tuple[str, ...]
    standin: tuple[Mapping[str, Any], ...]

    @property
    def num_steps(self) -> int:
        return len(self.losses)


def read_record(ended: Ended, events: Path, standin: Path) -> Record:
    """A run as recorded by its events; the last line of a killed script may be half a line."""
    reached: dict[RunStage, float] = {}
    losses: list[StepLosses] = []
    restored: list[str] = []
    error: ScriptError | None = None
    exit_code, num_ops = "", 0
    finished: Literal["steps", "script", ""] = ""
    for event in json_lines(events):
        seconds = float(event.get("seconds", 0.0))
        match event.get("event"):
            case "imports":
                reached["imports"] = seconds
            case "graph":
                reached.setdefault("graph", seconds)
                num_ops = int(event["ops"])
            case "step":
                reached.setdefault("graph", seconds)
                reached.setdefault("step", seconds)
                losses.append(_step(event))
            case "restored":
                restored.append(str(event["path"]))
            case "error":
                error = _error(event)
            case "exit":
                exit_code = str(event["code"])
            case "end":
                finished = "steps" if event["reason"] == "steps" else "script"
            case _:
                pass
    return Record(
        ended=ended,
        reached=reached,
        num_ops=num_ops,
        losses=tuple(losses),
        error=error,
        exit_code=exit_code,
        finished=finished,
        restored=tuple(restored),
        standin=tuple(json_lines(standin)),
    )


def json_lines(path: Path) -> Iterable[dict[str, Any]]:
    """The JSON objects of a file, one a line; other lines are left out."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _step(event: Mapping[str, Any]) -> StepLosses:
    pairs = tuple((str(name), _number(str(value))) for name, value in event["losses"])
    return StepLosses(step=int(event["step"]), losses=pairs)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _error(event: Mapping[str, Any]) -> ScriptError:
    return ScriptError(
        type=str(event["type"]),
        message=str(event["message"]),
        module=str(event.get("module") or ""),
        frames=tuple((str(name), int(line)) for name, line in event["frames"]),
    )
