"""The request of a search, and checks of its directory and fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumar.experiments.hyperparameters.ranges import Range
from jumar.experiments.reporting import SWEEP_FILES
from jumar.experiments.sweep_plan import FILE, SweepPlan, read_plan
from jumar.ground.errors import UserError
from jumar.ground.paths import check_no_file, exists, is_folder
from jumar.settings import field_of


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """The options of a search.

    Attributes:
        recipe: The recipe of all runs.
        ranges: `section.field=low:high`, `...:log` or `section.field=value,value`, one per field.
        common: `section.field=value` for all runs.
        sampler: Name of the sampler that proposes settings.
        pruner: Name of the rule that stops unpromising runs, or `none`.
        metric: `NAME`, `NAME:max` or `NAME:min`; empty for the recipe's main metric.
        trials: Number of trials, including those of earlier calls.
        directory: Directory for runs, journal and tables.
        imports: Modules that the recipe needs.
    """

    recipe: str
    ranges: Sequence[str]
    common: Sequence[str]
    sampler: str
    pruner: str
    metric: str
    trials: int
    directory: Path
    imports: Sequence[str] = ()


def plan_of(request: SearchRequest) -> SweepPlan:
    """Return the plan of a search, without trials."""
    return SweepPlan(
        recipe=request.recipe,
        vary=tuple(request.ranges),
        common=tuple(request.common),
        baseline=(),
        repeats=1,
        search={
            "sampler": request.sampler,
            "pruner": request.pruner,
            "metric": request.metric,
        },
    )


def refuse_set_and_searched(request: SearchRequest, ranges: Sequence[Range]) -> None:
    """Reject a field that is both searched and set for all runs."""
    fixed = set(map(field_of, request.common))
    field = next((item.field for item in ranges if item.field in fixed), None)
    if field is not None:
        raise UserError(
            f"'{field}' is both searched and set",
            where="--range",
            todo=f"Omit --set {field}=... or --range {field}=...",
        )


def refuse_foreign(directory: Path, plan: SweepPlan) -> None:
    """Reject a directory that contains anything other than this search."""
    check_no_file(directory, "--to")
    if not is_folder(directory):
        return
    if not exists(directory / FILE):
        foreign = [name for name in ("recipe.json", *SWEEP_FILES) if exists(directory / name)]
        if foreign:
            raise UserError(
                f"it contains '{foreign[0]}', which was not written by a search",
                where=str(directory),
                todo="Choose another directory with --to.",
            )
        return
    earlier_plan = read_plan(directory)
    before: Mapping[str, Any] = _identity(earlier_plan)
    changes = [
        f"{name} was {before[name]} and is now {now}"
        for name, now in _identity(plan).items()
        if before[name] != now
    ]
    if not earlier_plan.search or changes:
        raise UserError(
            f"it contains another search: {'; '.join(changes)}"
            if earlier_plan.search
            else "it contains a sweep of a grid, not a search",
            where=str(directory),
            todo="Repeat the command of that search, with any --trials, or choose another "
            "directory with --to.",
        )


def _identity(plan: SweepPlan) -> dict[str, str]:
    return {
        "recipe": plan.recipe,
        "--range": " ".join(plan.vary),
        "--set": " ".join(plan.common),
        **{name: plan.search.get(name, "") for name in ("sampler", "pruner", "metric")},
    }
