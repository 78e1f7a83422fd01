"""`jumar train`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

SetOption = Annotated[tuple[str, ...], Parameter(name="--set", negative=(), consume_multiple=False)]
ImportOption = Annotated[
    tuple[str, ...], Parameter(name="--import", negative=(), consume_multiple=False)
]


def train(
    recipe: str | None = None,
    /,
    *,
    set_: SetOption = (),
    run_dir: Path | None = None,
    device: str = "auto",
    resume: Annotated[bool, Parameter(negative=())] = False,
    dry_run: Annotated[bool, Parameter(negative=())] = False,
    skip_corrupt: int | None = None,
    emulate_fp16: Annotated[bool, Parameter(negative=())] = False,
    profile: Annotated[bool, Parameter(negative=())] = False,
    import_: ImportOption = (),
) -> int:
    """Train a recipe, or go on with a run.

    The same command with the same --run-dir goes on where it stopped.

    Parameters
    ----------
    recipe
        Name of the recipe; `jumar recipes list` shows them. Not needed with --resume.
    set_
        Change a field, for instance `--set optimizer.learning_rate=0.1`; may be repeated.
    run_dir
        Where everything goes; by default the next free `runs/RECIPE-N`.
    device
        auto, cpu, cuda, npu, or one of several as in `npu:1`.
    resume
        Go on with the run in --run-dir; an error if there is none.
    dry_run
        Check data, recipe, weights, disk space and one step, and stop.
    skip_corrupt
        Tolerate up to this many unreadable samples (`data.skip_corrupt`).
    emulate_fp16
        On a CPU, round to the range and precision of float16 (`precision.emulate_fp16`).
    profile
        Record three steps after three others into `profile/` of the run, and train on;
        `jumar profile show RUN/profile` reads it.
    import_
        Import a module of your own first, which registers recipes, networks or data sources.
    """
    from jumar.recipes.runs import TrainRequest, train_recipe

    return train_recipe(
        TrainRequest(
            recipe=recipe,
            assignments=assignments(set_, skip_corrupt=skip_corrupt, emulate_fp16=emulate_fp16),
            imports=import_,
            run_dir=run_dir,
            device=device,
            resume=resume,
            dry_run=dry_run,
            profile=profile,
        )
    )


def assignments(
    given: Sequence[str], *, skip_corrupt: int | None = None, emulate_fp16: bool = False
) -> list[str]:
    """The `--set` assignments, with those that have an option of their own."""
    result = list(given)
    if skip_corrupt is not None:
        result.append(f"data.skip_corrupt={skip_corrupt}")
    if emulate_fp16:
        result.append("precision.emulate_fp16=true")
    return result
