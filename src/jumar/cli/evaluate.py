"""`jumar evaluate`."""

from typing import Annotated

from cyclopts import Parameter

from jumar.cli.options import (
    CheckpointOption,
    DeviceOption,
    RunArgument,
    RunImportOption,
    SetOption,
)


def evaluate(
    run: RunArgument,
    /,
    *,
    checkpoint: Annotated[
        CheckpointOption,
        Parameter(help="all, last, best, or the number of steps of a checkpoint."),
    ] = "all",
    set_: SetOption = (),
    device: DeviceOption = "auto",
    skip_corrupt: int | None = None,
    import_: RunImportOption = (),
) -> int:
    """Evaluate the checkpoints of a run and print the results table.

    Parameters
    ----------
    set_
        Change a field for this evaluation, for example `--set data.eval_path=OTHER`.
    skip_corrupt
        Skip up to this many unreadable samples; by default as many as in training.
    """
    from jumar.runs.evaluate import EvaluateRequest, evaluate_run

    return evaluate_run(
        EvaluateRequest(
            run_dir=run,
            which=checkpoint,
            assignments=set_,
            skip_corrupt=skip_corrupt,
            imports=import_,
            device=device,
        )
    )
