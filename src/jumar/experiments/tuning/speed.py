"""Search for faster settings of a recipe, and report the result."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from jumar.experiments.tuning.bench import Bench, Command
from jumar.experiments.tuning.bottleneck import Facts, Limit
from jumar.experiments.tuning.clock import Clock
from jumar.experiments.tuning.journal import Journal
from jumar.experiments.tuning.knobs import (
    MATHEMATICS,
    Choice,
    Start,
    choices_for,
    variables_set_by_user,
)
from jumar.experiments.tuning.result import Found, Tried
from jumar.experiments.tuning.search import SearchPlan, SpeedSearch
from jumar.ground.errors import UserError
from jumar.ground.files import remove_folder
from jumar.ground.paths import is_file, is_folder
from jumar.ground.text import counted
from jumar.recipes.tuned import FILE, Tuned, Validity, read_tuned

ROUNDING_KNOBS: Final = "threads.intra_op, training.channels_last, fused optimizers, compile"
_SCRATCH: Final = ".scratch"


@dataclass(frozen=True, kw_only=True)
class SpeedTuning:
    """The options of a tuning.

    Attributes:
        what: The recipe's name or the run, as named by the user.
        validity: The recipe, machine and versions.
        allow_rounding: Whether the weights may round differently.
        minutes: Time limit.
        folder: Output folder.
        command: Returns the command of a measured process.
    """

    what: str
    validity: Validity
    allow_rounding: bool
    minutes: float
    folder: Path
    command: Command


def tune_speed(tuning: SpeedTuning, say: Callable[[str], None]) -> Found | None:
    """Search for the fastest settings and write `tuned.json`.

    Args:
        tuning: The options.
        say: Prints a line.

    Returns:
        The outcome; None if the same tuning is already finished.

    Raises:
        UserError: The recipe cannot be trained, or the result cannot be written.
    """
    _refuse_foreign(tuning.folder)
    earlier = _earlier(tuning)
    if earlier is not None and not earlier.measured.get("unfinished"):
        say(f"already tuned on {earlier.measured.get('date')}: {tuning.folder / FILE}")
        say(f"  {_result_text(earlier)}")
        say(f"to measure again, remove {tuning.folder} or choose another --to")
        return None
    key = {"validity": asdict(tuning.validity), "rounding": tuning.allow_rounding}
    journal = Journal(tuning.folder, key)
    _say_reuse(journal, say)
    scratch = tuning.folder / _SCRATCH
    remove_folder(scratch)
    clock = Clock(60 * tuning.minutes)
    start = Start(fields=tuning.validity.fields, environment=os.environ)

    def choices(facts: Facts, limits: Sequence[Limit]) -> Sequence[Choice]:
        return choices_for(start, facts, limits, allow_rounding=tuning.allow_rounding)

    plan = SearchPlan(
        bench=Bench(tuning.command, scratch),
        journal=journal,
        clock=clock,
        choices=choices,
        allow_rounding=tuning.allow_rounding,
        say=say,
    )
    result = SpeedSearch(plan).run()
    for line in (*_scope_lines(start, tuning), *_end_lines(result)):
        say(line)
    _write(tuning, result, clock, say)
    return result


def _refuse_foreign(folder: Path) -> None:
    if is_file(folder / "recipe.json"):
        raise UserError(
            f"'{folder}' is the directory of a run",
            where="--to",
            todo="Give another folder for the tuning.",
        )


def _earlier(tuning: SpeedTuning) -> Tuned | None:
    """Return the result of the same tuning if it was finished."""
    if not is_folder(tuning.folder) or not is_file(tuning.folder / FILE):
        return None
    earlier = read_tuned(tuning.folder)
    is_same = (
        earlier.state == "finished"
        and earlier.measured.get("allow_rounding") == tuning.allow_rounding
        and not earlier.validity.differences(tuning.validity)
    )
    return earlier if is_same else None


def _say_reuse(journal: Journal, say: Callable[[str], None]) -> None:
    if len(journal):
        say(f"reusing {counted(len(journal), 'comparison')} of an earlier call")
    if journal.discarded:
        say(
            f"not reusing {counted(journal.discarded, 'earlier comparison')}, since recipe, "
            "machine or versions have changed"
        )


def _scope_lines(start: Start, tuning: SpeedTuning) -> list[str]:
    lines = [
        f"never tried: {', '.join(MATHEMATICS)}, which change the training itself, and "
        "communication between ranks, since only one process is measured"
    ]
    if not tuning.allow_rounding:
        lines.append(f"not tried without --allow rounding: {ROUNDING_KNOBS}")
    user_set = variables_set_by_user(start)
    if user_set:
        lines.append(f"not changed, since set in this shell: {', '.join(user_set)}")
    return lines


def _end_lines(result: Found) -> list[str]:
    lines: list[str] = []
    if result.left_out:
        labels = ", ".join(choice.label for choice in result.left_out)
        continuation = "the same command continues with them"
        if result.min_time_s:
            minutes = math.ceil(result.min_time_s / 60)
            continuation = (
                f"the first of them needs --minutes {minutes} here, including its confirmation"
            )
        lines.append(f"not tried for lack of time: {labels}; {continuation}")
    if result.interrupted:
        return lines
    if result.best.choices and result.confirmed is None:
        return [
            *lines,
            "not confirmed: the settings are not changed; the same command tries again",
        ]
    if result.confirmed is None:
        return [*lines, "no faster setting was found: the settings are not changed"]
    confirmed_text = f"{result.confirmed.text()} in {result.confirmed.pairs} pairs of new processes"
    if not result.is_faster:
        return [*lines, f"not confirmed: {confirmed_text}; the settings are not changed"]
    weights = "identical" if result.weights == "identical" else "rounded differently"
    return [
        *lines,
        f"confirmed: {confirmed_text}; weights {weights}",
        *(f"  {tried.choice.label}: {_gain_text(tried)}" for tried in result.kept),
    ]


def _gain_text(tried: Tried) -> str:
    return "" if tried.measured is None else tried.measured.text()


def _write(tuning: SpeedTuning, result: Found, clock: Clock, say: Callable[[str], None]) -> None:
    """Write the result, and print the command that uses it."""
    path = tuning.folder / FILE
    is_partial = result.interrupted
    if is_partial and not result.best.choices:
        say("stopped: no faster setting has been found yet; the same command continues from here")
        return
    applies = result.is_faster or is_partial
    Tuned(
        state="partial" if is_partial else "finished",
        validity=tuning.validity,
        settings=result.best.settings if applies else {},
        environment=result.best.environment if applies else {},
        weights=result.weights if applies else "identical",
        measured=_measured(tuning, result, clock),
    ).write(path)
    if is_partial:
        say("stopped before the confirmation; the same command continues from here")
        say(f"written: {path}, with the faster settings so far: {', '.join(result.best.labels)}")
    else:
        say(f"written: {path}")
    if applies:
        say(f"to use it: jumar train {tuning.validity.recipe} --tuned {path}")


def _measured(tuning: SpeedTuning, result: Found, clock: Clock) -> dict[str, Any]:
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "seconds": round(clock.elapsed(), 1),
        "allow_rounding": tuning.allow_rounding,
        "start": None if result.facts is None else asdict(result.facts),
        "limits": [asdict(limit) for limit in result.limits],
        "noise": None if result.noise is None else asdict(result.noise),
        "reproducible": result.reproducible,
        "confirmed": None if result.confirmed is None else asdict(result.confirmed),
        "knobs": [_row(tried) for tried in result.tried],
        "left_out": [choice.label for choice in result.left_out],
        "unfinished": bool(result.left_out)
        or bool(result.best.choices and result.confirmed is None),
    }


def _row(tried: Tried) -> dict[str, Any]:
    row = asdict(tried)
    choice: Mapping[str, Any] = row.pop("choice")
    return {**choice, **row}


def _result_text(earlier: Tuned) -> str:
    confirmed = earlier.measured.get("confirmed")
    chosen_settings = [*earlier.assignments, *(f"{k}={v}" for k, v in earlier.environment.items())]
    if not chosen_settings:
        return "no faster setting was found"
    ratio = confirmed.get("ratio") if isinstance(confirmed, dict) else None
    speed_text = f"{ratio:.3f} times as fast: " if isinstance(ratio, float) else ""
    return speed_text + " ".join(chosen_settings)
