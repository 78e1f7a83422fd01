"""`jumar sweep`."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from jumar.cli.options import DeviceOption, ImportOption, SetOption

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
    device
        auto, cpu, cuda, npu, or one of several as in `npu:1`.
    import_
        First import a module of your own that registers recipes, networks or data sources.
    """
    from jumar.experiments.child_process import run_child
    from jumar.experiments.sweep import RunRequest, run_sweep
    from jumar.recipes.registry import create_recipe, import_modules
    from jumar.settings import override, to_json

    import_modules(import_)

    def start(request: RunRequest) -> int:
        command = [sys.executable, "-m", "jumar", "train", request.recipe_name]
        command += ["--run-dir", str(request.directory), "--device", device]
        for assignment in request.assignments:
            command += ["--set", assignment]
        for module in import_:
            command += ["--import", module]
        return run_child(command)

    outcome = run_sweep(
        recipe,
        vary=vary,
        common_assignments=set_,
        baseline=baseline,
        directory=to or Path("runs") / f"{recipe}-sweep",
        repeats=repeats,
        start=start,
        resolve=lambda assignments: to_json(override(create_recipe(recipe), assignments)),
    )
    if outcome.stopped_by:
        return 128 + outcome.stopped_by
    return 0 if any(row.num_finished for row in outcome.table.rows) else 1
