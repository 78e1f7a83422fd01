"""`jumar evaluate`."""

from pathlib import Path

from jumar.cli.options import CheckpointOption, DeviceOption, ImportOption, SetOption


def evaluate(
    run: Path,
    /,
    *,
    checkpoint: CheckpointOption = "all",
    set_: SetOption = (),
    device: DeviceOption = "auto",
    skip_corrupt: int | None = None,
    import_: ImportOption = (),
) -> int:
    """Evaluate the checkpoints of a run and print the results table.

    Parameters
    ----------
    run
        The run directory.
    checkpoint
        all, last, best, or the number of steps of a checkpoint.
    set_
        Change a field for this evaluation, for example `--set data.eval_path=OTHER`.
    device
        auto, cpu, cuda, npu, or a particular one such as `npu:1`.
    skip_corrupt
        Skip up to this many unreadable samples; by default as many as in training.
    import_
        Import your own module first; name all modules that the run was trained with.
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
