"""`jumar profile RECIPE|RUN`: record some steps."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from jumar.cli.options import DeviceOption, ImportOption, RecipeOrRun, SetOption


def record(
    what: RecipeOrRun,
    /,
    *,
    steps: int = 3,
    warm_up: int = 3,
    memory: bool = False,
    shapes: Annotated[bool, Parameter(negative="--no-shapes")] = True,
    set_: SetOption = (),
    run_dir: Path | None = None,
    device: DeviceOption = "auto",
    import_: ImportOption = (),
) -> int:
    """Record a few steps of a recipe or a run into `profile/` of the run directory.

    A run resumes from its newest checkpoint for the recorded steps only. Only its `profile/`
    changes, so finished runs can be recorded too.

    Parameters
    ----------
    steps
        Number of steps to record.
    warm_up
        Number of steps to run before recording.
    memory
        Also record memory allocations, for a trace that is half as large again.
    shapes
        Record the shapes and dtypes of ops. --no-shapes makes times more accurate on a CPU with
        large tensors.
    set_
        Change a field, for example `--set precision.mode=allow_mix_precision`; may be repeated.
    run_dir
        Run directory for `profile/`; by default the run itself, or the next free `runs/RECIPE-N`.
    """
    from jumar.runs.profile import ProfileRequest, profile_recipe
    from jumar.training.profiling.capture import CaptureSettings

    return profile_recipe(
        ProfileRequest(
            what=what,
            capture=CaptureSettings(steps=steps, warm_up=warm_up, memory=memory, shapes=shapes),
            assignments=set_,
            imports=import_,
            run_dir=run_dir,
            device=device,
        )
    )
