"""The request and the progress of a sweep: `sweep.json`."""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from jumar.experiments.grid import MAX_RUNS, parse_vary, run_name
from jumar.experiments.run_reading import read_run
from jumar.experiments.table import Combination, baseline_index
from jumar.ground.errors import UserError
from jumar.ground.paths import is_file
from jumar.settings import field_of
from jumar.training.run_directory import read_json, write_json

FILE = "sweep.json"

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A run of a sweep.

    Attributes:
        name: Name of its directory in the sweep's directory.
        varied: The assignments that distinguish it from the other combinations.
        assignments: All assignments passed to the run: common, varied, seed.
        exit_code: Exit code of its process, negative for a signal; None until it ends.
        note: The reason why it has no results, if it is more specific than the exit code.
    """

    name: str
    varied: tuple[str, ...]
    assignments: tuple[str, ...]
    exit_code: int | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """A sweep as it is stored in `sweep.json`."""

    recipe: str
    vary: tuple[str, ...]
    common: tuple[str, ...]
    baseline: tuple[str, ...]
    repeats: int
    runs: tuple[PlannedRun, ...] = field(default=())
    search: Mapping[str, str] = field(default_factory=dict[str, str])
    """Sampler, pruner and metric of a hyperparameter search; empty for a grid."""

    def with_exit_code(self, name: str, exit_code: int | None, note: str = "") -> "SweepPlan":
        """Return the plan with the exit code of a run's process."""
        runs = (
            replace(run, exit_code=exit_code, note=note) if run.name == name else run
            for run in self.runs
        )
        return replace(self, runs=tuple(runs))


def plan_sweep(
    recipe: str,
    *,
    vary: Sequence[str],
    common: Sequence[str],
    baseline: Sequence[str],
    repeats: int,
    first_seed: int,
) -> SweepPlan:
    """Plan the runs of a sweep: all combinations with the first seed, then with the next.

    The first seed is the recipe's own and is not part of the name, so that adding repeats later
    reuses the existing runs.

    Raises:
        UserError: `vary` or `baseline` is not valid, a field is both varied and set, or the seed is
            both varied and repeated.
    """
    combinations = parse_vary(vary)
    _check(vary, common, repeats, len(combinations))
    baseline_index(combinations, baseline)
    seeds = [(), *((f"seed={first_seed + repeat}",) for repeat in range(1, repeats))]
    runs = tuple(
        PlannedRun(
            name=run_name([*varied, *seed]),
            varied=tuple(varied),
            assignments=(*common, *varied, *seed),
        )
        for seed in seeds
        for varied in combinations
    )
    return SweepPlan(
        recipe=recipe,
        vary=tuple(vary),
        common=tuple(common),
        baseline=tuple(baseline),
        repeats=repeats,
        runs=runs,
    )


def save_plan(plan: SweepPlan, directory: Path) -> None:
    """Write `sweep.json` atomically."""
    write_json(directory / FILE, asdict(plan))


def read_plan(directory: Path) -> SweepPlan:
    """Read the plan in a sweep directory.

    Raises:
        UserError: There is no plan, or it is damaged.
    """
    path = directory / FILE
    if not is_file(path):
        raise UserError(
            f"'{directory}' is not a sweep directory: it has no {FILE}",
            todo="Give a directory written by `jumar sweep`.",
        )
    data = read_json(path)
    try:
        return SweepPlan(
            recipe=str(data["recipe"]),
            vary=_texts(data["vary"]),
            common=_texts(data["common"]),
            baseline=_texts(data["baseline"]),
            repeats=int(data["repeats"]),
            runs=tuple(_planned(run) for run in data["runs"]),
            search={str(name): str(value) for name, value in data.get("search", {}).items()},
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise UserError(
            f"is damaged: {type(error).__name__} {error}",
            where=str(path),
            todo="Delete this file and repeat the sweep's command: finished runs are kept.",
        ) from None


def combinations_of(plan: SweepPlan, directory: Path) -> list[Combination]:
    """Return the current state of a sweep's runs, grouped by combination."""
    runs_by_combination: dict[tuple[str, ...], list[PlannedRun]] = {}
    for run in plan.runs:
        runs_by_combination.setdefault(run.varied, []).append(run)
    return [
        Combination(
            assignments=varied,
            runs=tuple(read_run(directory / run.name) for run in runs),
            ends=tuple(run.note or exit_text(run.exit_code) for run in runs),
        )
        for varied, runs in runs_by_combination.items()
    ]


def stopping_signal(exit_code: int) -> int:
    """Return the signal that asked a process to stop; 0 if it ended for another reason."""
    number = -exit_code if exit_code < 0 else exit_code - 128
    return number if number in _STOP_SIGNALS else 0


def exit_text(exit_code: int | None) -> str:
    """Return the reason why a run has no results, from the exit code of its process.

    The reason is empty if the process was asked to stop, since the run's own files are more
    specific then.
    """
    if exit_code is None or stopping_signal(exit_code):
        return ""
    if exit_code < 0 or exit_code > 128:
        number = -exit_code if exit_code < 0 else exit_code - 128
        try:
            name = signal.Signals(number).name
        except ValueError:
            return f"its process ended with exit code {exit_code}"
        hint = ", often for lack of memory" if name == "SIGKILL" else ""
        return f"its process was ended by {name}{hint}"
    if exit_code == 2:
        return "rejected with exit code 2; see its message"
    return f"its process ended with exit code {exit_code} and no results"


def _check(vary: Sequence[str], common: Sequence[str], repeats: int, combinations: int) -> None:
    if repeats < 1:
        raise UserError(f"cannot be {repeats}", where="--repeats", todo="Allowed: 1 or more.")
    if repeats * combinations > MAX_RUNS:
        raise UserError(
            f"cannot be {repeats}: {combinations} combinations are {repeats * combinations} runs",
            where="--repeats",
            todo=f"At most {MAX_RUNS // combinations}, for {MAX_RUNS} runs or fewer.",
        )
    varied_fields = [field_of(item) for item in vary]
    conflicting = [name for name in varied_fields if name in {field_of(item) for item in common}]
    if conflicting:
        raise UserError(
            f"'{conflicting[0]}' is both varied and set",
            where="--vary",
            todo=f"Omit --set {conflicting[0]}=... or --vary {conflicting[0]}=...",
        )
    if repeats > 1 and "seed" in varied_fields:
        raise UserError(
            "the seed is both varied and repeated",
            where="--repeats",
            todo="Omit --vary seed=... : --repeats N runs every combination with N seeds.",
        )


def _planned(data: Mapping[str, Any]) -> PlannedRun:
    name, code = str(data["name"]), data.get("exit_code")
    if Path(name).name != name:
        raise ValueError(f"'{name}' is not the name of a directory")
    return PlannedRun(
        name=name,
        varied=_texts(data["varied"]),
        assignments=_texts(data["assignments"]),
        exit_code=None if code is None else int(code),
        note=str(data.get("note", "")),
    )


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return tuple(str(item) for item in cast("list[Any]", value))
