"""`jumar sweep`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from jumar.cli.options import DeviceOption, ImportOption, OnOption, SetOption

VaryOption = Annotated[tuple[str, ...], Parameter(metavar="FIELD=VALUE,VALUE,...")]
BaselineOption = Annotated[tuple[str, ...], Parameter(metavar="FIELD=VALUE")]


def sweep(
    recipe: str,
    /,
    *,
    vary: VaryOption = (),
    set_: SetOption = (),
    baseline: BaselineOption = (),
    repeats: int = 1,
    to: Path | None = None,
    jobs: int | None = None,
    on: OnOption = "this",
    device: DeviceOption = "auto",
    import_: ImportOption = (),
) -> int:
    """Train a recipe with every combination of some fields and print a comparison.

    A combination that fails still gets its row in the table; the exit code is 1 if all fail.
    Finished runs are not repeated, so the same command continues after an interruption.

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
        default the first with `must_keep_origin_dtype`, else the first.
    repeats
        Number of runs of each combination, with successive seeds; differences within their spread
        count as equal.
    to
        Folder for the runs and the table; by default `runs/RECIPE-sweep`.
    jobs
        Runs side by side; by default one here, and as many as fit on a cluster.
    on
        Where the runs are computed: this machine, ray, or ray://HOST:PORT.
    device
        auto, cpu, cuda, npu, or one of several as in `npu:1`.
    import_
        First import a module of your own that registers recipes, networks or data sources.
    """
    from jumar.experiments.placing.chosen import open_place
    from jumar.experiments.sweep import RunRequest, run_sweep
    from jumar.recipes.registry import create_recipe, import_modules
    from jumar.settings import override, to_json

    import_modules(import_)

    def command(request: RunRequest, on_device: str) -> Sequence[str]:
        words = [sys.executable, "-m", "jumar", "train", request.recipe_name]
        words += ["--run-dir", str(request.directory), "--device", on_device]
        for assignment in request.assignments:
            words += ["--set", assignment]
        for module in import_:
            words += ["--import", module]
        return words

    outcome = run_sweep(
        recipe,
        vary=vary,
        common_assignments=set_,
        baseline=baseline,
        directory=to or Path("runs") / f"{recipe}-sweep",
        repeats=repeats,
        open_place=lambda: open_place(on, jobs=jobs, device=device),
        command=command,
        resolve=lambda assignments: to_json(override(create_recipe(recipe), assignments)),
    )
    if outcome.stopped_by:
        return 128 + outcome.stopped_by
    return 0 if any(row.num_finished for row in outcome.table.rows) else 1
