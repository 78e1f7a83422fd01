"""`jumar evaluate`."""

from pathlib import Path

from jumar.cli.train import ImportOption, SetOption


def evaluate(
    run: Path,
    /,
    *,
    checkpoint: str = "all",
    set_: SetOption = (),
    device: str = "auto",
    skip_corrupt: int | None = None,
    import_: ImportOption = (),
) -> int:
    """Score the kept checkpoints of a run and print the table.

    Parameters
    ----------
    run
        The run directory.
    checkpoint
        all, last, best, or a number of steps.
    set_
        Change a field for this evaluation, for instance `--set data.eval_path=OTHER`.
    device
        auto, cpu, cuda, npu, or one of several as in `npu:1`.
    skip_corrupt
        Leave out up to this many unreadable samples; by default as many as in training.
    import_
        Import a module of your own first (those of the run are imported anyway).
    """
    from jumar.recipes.scoring import EvaluateRequest, evaluate_run

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
