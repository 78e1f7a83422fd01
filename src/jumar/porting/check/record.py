"""The record of one run of a script, read from its event lines."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from jumar.porting.check.children import json_lines
from jumar.porting.check.supervision import Ended

RunStage = Literal["imports", "graph", "step"]


@dataclass(frozen=True, kw_only=True)
class StepLosses:
    """The losses of one training step, by the names of their tensors.

    `process` numbers the processes that trained, in the order of their names.
    """

    step: int
    losses: tuple[tuple[str, float], ...]
    process: int = 0


@dataclass(frozen=True, kw_only=True)
class ScriptError:
    """An exception that the script raised: its type, text, and frames, outermost first.

    `in_child` is true if a process started by the script raised it.
    """

    type: str
    message: str
    module: str
    frames: tuple[tuple[str, int], ...]
    in_child: bool = False


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run of a script.

    `reached` maps each stage that was reached to the seconds since the start; `finished` is `steps`
    if all steps ran, `script` if the script ended before. `children` is the number of processes
    started by the script that trained, `unwatched` the commands of processes not watched.
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
    children: int = 0
    unwatched: tuple[str, ...] = ()

    @property
    def num_steps(self) -> int:
        """The number of steps of the process that completed the most."""
        return max(Counter(step.process for step in self.losses).values(), default=0)


_Process = tuple[tuple[int, ...], int]
"""A process: the numbers in its name, and its index among the processes of that name."""

_NOT_FINISHED: Literal["steps", "script", ""] = ""
_PYTHON = re.compile(r"(^|[\s/;&|'\"])python[0-9.]*(\s|$)|\.py(\s|$)")
_REMOTE_PROGRAMS = frozenset(
    {"ssh", "docker", "podman", "kubectl", "srun", "sbatch", "singularity"}
)


def read_record(ended: Ended, events: Path, standin: Path) -> Record:
    """Read the record of a run; the last line of a killed script may be incomplete."""
    lines = list(json_lines(events))
    reached: dict[RunStage, float] = {}
    losses: list[tuple[_Process, StepLosses]] = []
    restored: list[str] = []
    errors: list[ScriptError] = []
    exit_code, num_ops, finished = "", 0, _NOT_FINISHED
    process_numbers: dict[tuple[str, int], int] = {}
    for event in lines:
        seconds, is_script = float(event.get("seconds", 0.0)), "process" not in event
        if not is_script and event.get("event") == "graph":
            # A child may train before the last import of the script itself.
            reached.setdefault("imports", seconds)
        match event.get("event"):
            case "imports" if is_script:
                reached["imports"] = seconds
            case "graph":
                reached.setdefault("graph", seconds)
                num_ops = int(event["ops"])
            case "step":
                reached.setdefault("graph", seconds)
                reached.setdefault("step", seconds)
                losses.append((_process(event, process_numbers), _step(event)))
            case "restored":
                restored.append(str(event["path"]))
            case "error":
                errors.append(_error(event))
            case "exit" if is_script:
                exit_code = str(event["code"])
            case "end" if event["reason"] == "steps":
                finished = "steps"
            case "end" if is_script and not finished:
                finished = "script"
            case _:
                pass
    processes = sorted({process for process, _ in losses})
    return Record(
        ended=ended,
        reached=reached,
        num_ops=num_ops,
        losses=tuple(
            replace(step, process=processes.index(process))
            for process, step in sorted(losses, key=lambda item: item[0])
        ),
        error=next((error for error in errors if error.in_child), errors[-1] if errors else None),
        exit_code=exit_code,
        finished=finished,
        restored=tuple(dict.fromkeys(restored)),
        standin=tuple(json_lines(standin)),
        children=sum(1 for name, _ in processes if name),
        unwatched=tuple(_unwatched(lines, cut_short=ended.how == "done")),
    )


def _process(event: Mapping[str, Any], process_numbers: dict[tuple[str, int], int]) -> _Process:
    name, pid = str(event.get("process", "")), int(event.get("pid", 0))
    next_number = sum(1 for known_name, _ in process_numbers if known_name == name)
    number = process_numbers.setdefault((name, pid), next_number)
    return tuple(int(part) for part in name.split(".") if part), number


def _unwatched(lines: Iterable[Mapping[str, Any]], *, cut_short: bool) -> Iterable[str]:
    """Yield the commands that run Python but whose processes never reported being watched.

    If the check ended the script because a process had completed its steps (`cut_short`), processes
    started after that may have had no time to report. They are left out, since a note already says
    that the rest of the script did not run.
    """
    watched_names = {
        str(event.get("process", "")) for event in lines if event.get("event") == "child"
    }
    versions = {
        str(event.get("process", "")): str(event["what"])
        for event in lines
        if event.get("event") == "unwatched"
    }
    steps_done = False
    for event in lines:
        steps_done |= cut_short and event.get("event") == "end" and event["reason"] == "steps"
        if event.get("event") != "started" or event["child"] in watched_names:
            continue
        command = [str(word) for word in event["command"]]
        name = str(event["child"])
        text = " ".join(command)
        program = text.split()[0].rpartition("/")[2] if text.split() else ""
        if name in versions:
            yield f"{text} ({versions[name]})"
        elif not steps_done and (program in _REMOTE_PROGRAMS or _PYTHON.search(text)):
            yield text


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
        in_child="process" in event,
    )
