"""`jumar sweep`."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from jumar.cli.options import DeviceOption, ImportOption, OnOption, SetOption, repeated
from jumar.ground.errors import UserError

if TYPE_CHECKING:
    from jumar.experiments.sweep import RunRequest


def sweep(
    recipe: str,
    /,
    *,
    vary: Annotated[tuple[str, ...], Parameter(metavar="FIELD=VALUE,VALUE,...")] = (),
    set_: SetOption = (),
    baseline: Annotated[tuple[str, ...], Parameter(metavar="FIELD=VALUE")] = (),
    repeats: int = 1,
    search: Annotated[str | None, Parameter(metavar="SAMPLER")] = None,
    range_: Annotated[tuple[str, ...], Parameter(metavar="FIELD=LOW:HIGH[:log]")] = (),
    trials: int = 40,
    metric: Annotated[str, Parameter(metavar="SCORE")] = "",
    pruner: Annotated[str, Parameter(metavar="PRUNER")] = "median",
    to: Path | None = None,
    jobs: int | None = None,
    on: OnOption = "this",
    device: DeviceOption = "auto",
    import_: ImportOption = (),
) -> int:
    """Train a recipe with every combination of some fields and print a comparison.

    With --search, settings are sampled from ranges instead: each trial is a run, unpromising ones
    are stopped early, and the best settings are printed as a command.

    Failed combinations are listed in the table too; the exit code is 1 if all fail. Finished runs
    are not repeated, so the same command continues after an interruption.

    Parameters
    ----------
    recipe
        Name of the recipe.
    vary
        A field and its values, for example `--vary threads.intra_op=1,2`; may be repeated.
    set_
        Change a field in all runs; may be repeated.
    baseline
        The combination to compare with, for example `--baseline precision.mode=force_fp16`; by
        default the first one with `must_keep_origin_dtype`, or simply the first.
    repeats
        Number of runs of each combination, with successive seeds; differences within their spread
        count as equal.
    search
        The sampler of a search: tpe, random, gp or qmc.
    range_
        Values to choose from in a search: `--range optimizer.learning_rate=1e-4:1e-1:log` or
        `--range data.batch_size=16,32,64`; may be repeated.
    trials
        Number of trials of a search, including those of earlier calls.
    metric
        The score that a search optimises: NAME, NAME:max or NAME:min; by default the recipe's
        score.
    pruner
        The rule that stops unpromising runs of a search: median, halving, hyperband or none.
    to
        Folder for the runs and the table; by default `runs/RECIPE-sweep` or, with
        --search, `runs/RECIPE-search`.
    jobs
        Runs in parallel; by default one on this machine, and as many as fit on a cluster.
    on
        Where to compute the runs: this machine, ray, or ray://HOST:PORT.
    """
    from jumar.experiments.placing.chosen import check_place, open_place
    from jumar.experiments.sweep import run_sweep
    from jumar.recipes.registry import import_modules, recipe_settings

    # Before the folder is looked at: a folder that does not suit would hide these errors.
    check_place(on, jobs=jobs)
    import_modules(import_)
    resolve = partial(recipe_settings, recipe)
    place_opener = partial(open_place, on, jobs=jobs, device=device)
    if search is not None:
        _refuse_options("--search", vary=vary, baseline=baseline, repeats=repeats > 1)
        from jumar.experiments.hyperparameters import searching
        from jumar.experiments.hyperparameters.request import SearchRequest

        search_outcome = searching.search(
            SearchRequest(
                recipe=recipe,
                ranges=range_,
                common=set_,
                sampler=search,
                pruner=pruner,
                metric=metric,
                trials=trials,
                directory=to or Path("runs") / f"{recipe}-search",
                imports=import_,
            ),
            open_place=place_opener,
            command=partial(train_command, import_),
            resolve=resolve,
        )
        if search_outcome.stopped_by:
            return 128 + search_outcome.stopped_by
        return 0 if search_outcome.best is not None else 1
    _refuse_options("a sweep without --search", range=range_, metric=metric)
    if not vary and repeats == 1:
        raise UserError(
            "there is nothing to vary",
            todo="Give values with --vary FIELD=VALUE,VALUE, ranges with --search tpe --range ..., "
            "or several seeds with --repeats N. `jumar train` trains once.",
        )
    outcome = run_sweep(
        recipe,
        vary=vary,
        common_assignments=set_,
        baseline=baseline,
        directory=to or Path("runs") / f"{recipe}-sweep",
        repeats=repeats,
        open_place=place_opener,
        command=partial(train_command, import_),
        resolve=resolve,
    )
    if outcome.stopped_by:
        return 128 + outcome.stopped_by
    return 0 if any(row.num_finished for row in outcome.table.rows) else 1


def train_command(imports: Sequence[str], request: "RunRequest", on_device: str) -> Sequence[str]:
    """Return the `jumar train` command of one run."""
    return [
        *(sys.executable, "-m", "jumar", "train", request.recipe_name),
        *("--run-dir", str(request.directory), "--device", on_device),
        *repeated("--set", request.assignments),
        *repeated("--import", imports),
    ]


def _refuse_options(context: str, **options: object) -> None:
    """Reject options that cannot be combined with another one.

    Raises:
        UserError: Such an option is set.
    """
    for name, value in options.items():
        if value:
            raise UserError(
                f"cannot be combined with {context}", where=f"--{name}", todo="Omit one of the two."
            )
