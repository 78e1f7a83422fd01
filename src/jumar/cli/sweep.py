"""`jumar sweep`."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from jumar.cli.train import ImportOption, SetOption

RepeatedOption = Annotated[tuple[str, ...], Parameter(negative=(), consume_multiple=False)]


def sweep(
    recipe: str,
    /,
    *,
    vary: RepeatedOption = (),
    set_: SetOption = (),
    baseline: RepeatedOption = (),
    repeats: int = 1,
    to: Path | None = None,
    device: str = "auto",
    import_: ImportOption = (),
) -> int:
    """Train a recipe in every combination of some fields and print the comparison.

    A combination that does not train is a row of the table; exit code 1 where none does.

    Finished runs are not run again, so the same command goes on after an interruption.

    Parameters
    ----------
    recipe
        The recipe.
    vary
        A field and its values, for instance `--vary threads.intra_op=1,2`; may be repeated.
    set_
        Change a field for all runs.
    baseline
        The combination to compare with, for instance `--baseline precision.mode=force_fp16`;
        by default the first in `must_keep_origin_dtype`, else the first.
    repeats
        Runs of each combination, with successive seeds; their spread says what counts as equal.
    to
        Where everything goes; by default `runs/RECIPE-sweep`.
    device
        auto, cpu, cuda, npu, or one of several as in `npu:1`.
    import_
        Import a module of your own first.
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

    found = run_sweep(
        recipe,
        vary=vary,
        common_assignments=set_,
        baseline=baseline,
        directory=to or Path("runs") / f"{recipe}-sweep",
        repeats=repeats,
        start=start,
        resolve=lambda assignments: to_json(override(create_recipe(recipe), assignments)),
    )
    if found.stopped_by:
        return 128 + found.stopped_by
    return 0 if any(row.num_finished for row in found.table.rows) else 1
