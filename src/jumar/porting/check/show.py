"""A check as text, Markdown and JSON."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from jumar import __version__
from jumar.porting.check.losses import Comparison, LossPair
from jumar.porting.check.result import CheckResult

_MARKS = {"passed": "pass", "failed": "FAIL", "not reached": "-"}
_OPTIONS_SHOWN = 6
_HEAD_STEPS = 3


def as_lines(result: CheckResult) -> Iterator[str]:
    """The report for a terminal or a log, without colours."""
    width = max(len(stage.name) for stage in result.stages)
    for stage in result.stages:
        mark = _MARKS[stage.status]
        time = f"{stage.seconds:7.1f} s" if stage.status != "not reached" else " " * 9
        yield f"{mark:4}  {stage.name:{width}}  {time}  {stage.reason}".rstrip()
        for line in stage.details:
            yield f"        | {line}"
    if result.comparison is not None and result.comparison.pairs:
        yield ""
        yield from _loss_lines(result.comparison)
    standin = list(_standin_lines(result.standin))
    if standin:
        yield ""
        yield from standin
    if result.notes:
        yield ""
        yield from (f"note: {note}" for note in result.notes)
    yield ""
    yield f"command: {' '.join(result.command)}"
    yield f"with: {result.interpreter}"
    outcome = "all stages passed" if result.passed else "not all stages passed"
    yield f"{outcome} in {result.seconds:.1f} s"


def _loss_lines(comparison: Comparison) -> Iterator[str]:
    yield f"{'step':>6}  {'original':>14}  {'port':>14}  {'difference':>10}  loss"
    shown = _pairs_to_show(comparison)
    before: LossPair | None = None
    for pair in shown:
        if before is not None and pair.step > before.step + 1:
            yield f"{'...':>6}"
        yield (
            f"{pair.step:6}  {pair.original:14.8g}  {pair.port:14.8g}  "
            f"{pair.relative_difference:10.1e}  {pair.name}"
        )
        before = pair


def _pairs_to_show(comparison: Comparison) -> list[LossPair]:
    """The first steps, the last, and where both sides diverge."""
    last = comparison.pairs[-1].step
    apart = comparison.first_different
    steps = {*range(1, _HEAD_STEPS + 1), last, *([apart.step] if apart else [])}
    return [pair for pair in comparison.pairs if pair.step in steps]


def _standin_lines(events: tuple[Mapping[str, Any], ...]) -> Iterator[str]:
    """What was passed to npu_bridge: sessions with their options, and calls without effect."""
    sessions: Counter[str] = Counter()
    others: Counter[str] = Counter()
    problems: dict[str, None] = {}
    for event in events:
        kind = str(event.get("kind", ""))
        if kind == "session":
            sessions[_session_text(event)] += 1
        elif kind in ("ignored option", "refused option"):
            problems[f"{kind}: {event.get('text', event.get('key', ''))}"] = None
        else:
            others[f"{kind} {event['call']}" if "call" in event else kind] += 1
    yield from (f"session: {text}" + _times(count) for text, count in sessions.items())
    yield from problems
    yield from (f"npu_bridge: {text}" + _times(count) for text, count in others.items())


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""


def _session_text(event: Mapping[str, Any]) -> str:
    if "iterations_per_loop" in event:
        return f"runs {event['iterations_per_loop']} steps a run"
    if not event.get("npu"):
        return "without NpuOptimizer, stays on the host"
    blocks: list[Mapping[str, Any]] = list(event.get("options", ()))
    options = [f"{key}={value}" for block in blocks for key, value in block.items()]
    shown = ", ".join(options[:_OPTIONS_SHOWN])
    more = f", and {len(options) - _OPTIONS_SHOWN} more" if len(options) > _OPTIONS_SHOWN else ""
    return f"NpuOptimizer with {shown}{more}" if options else "NpuOptimizer without options"


def as_markdown(result: CheckResult) -> str:
    """The report as a Markdown page."""
    lines = ["# Port check", "", f"`{' '.join(result.command)}`", "", result.interpreter, ""]
    lines += ["| stage | result | seconds | why |", "|---|---|---|---|"]
    lines += [
        f"| {stage.name} | {stage.status} | {stage.seconds:.1f} | {_cell(stage.reason)} |"
        for stage in result.stages
    ]
    for stage in result.stages:
        if stage.details:
            lines += ["", f"Last lines of output where it {stage.status}:", "", "```"]
            lines += [*(line.replace("```", "'''") for line in stage.details), "```"]
    if result.comparison is not None and result.comparison.pairs:
        lines += ["", "| step | original | port | relative difference | loss |"]
        lines += ["|---|---|---|---|---|"]
        lines += [
            f"| {pair.step} | {pair.original:.9g} | {pair.port:.9g} | "
            f"{pair.relative_difference:.1e} | {_cell(pair.name)} |"
            for pair in result.comparison.pairs
        ]
    standin = list(_standin_lines(result.standin))
    lines += ["", *(f"- {_cell(line)}" for line in [*standin, *result.notes])]
    return "\n".join([*lines, "", f"jumar {__version__}, {result.seconds:.1f} s", ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def as_json(result: CheckResult) -> str:
    """The report for programs; numbers that JSON lacks are null."""
    comparison = result.comparison
    value: dict[str, Any] = {
        "version": __version__,
        "passed": result.passed,
        "command": list(result.command),
        "interpreter": result.interpreter,
        "seconds": round(result.seconds, 3),
        "stages": [
            {
                "name": stage.name,
                "status": stage.status,
                "seconds": round(stage.seconds, 3),
                "reason": stage.reason,
                "output": list(stage.details),
            }
            for stage in result.stages
        ],
        "losses": None if comparison is None else _losses(comparison),
        "npu_bridge": [dict(event) for event in result.standin],
        "notes": list(result.notes),
    }
    return json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n"


def _losses(comparison: Comparison) -> dict[str, Any]:
    apart = comparison.first_different
    return {
        "tolerance": comparison.tolerance,
        "equal": comparison.equal,
        "largest_relative_difference": _finite(comparison.largest_difference),
        "first_different_step": apart.step if apart else None,
        "mismatch": comparison.mismatch,
        "steps": [
            {
                "step": pair.step,
                "name": pair.name,
                "original": _finite(pair.original),
                "port": _finite(pair.port),
                "relative_difference": _finite(pair.relative_difference),
            }
            for pair in comparison.pairs
        ],
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
