"""`jumar profile RECIPE|RUN`: record some steps."""

from pathlib import Path

from jumar.cli.train import ImportOption, SetOption


def record(
    what: str,
    /,
    *,
    steps: int = 3,
    warm_up: int = 3,
    memory: bool = False,
    shapes: bool = True,
    set_: SetOption = (),
    run_dir: Path | None = None,
    device: str = "auto",
    import_: ImportOption = (),
) -> int:
    """Record a few steps of a recipe or a run into `profile/` of the run directory.

    A run goes on from its newest checkpoint for as long as it is recorded; nothing of it but
    `profile/` changes, so a run that has ended can be recorded too.

    Parameters
    ----------
    what
        Name of a recipe, or a run directory.
    steps
        How many steps are recorded.
    warm_up
        How many steps before them are left out.
    memory
        Record who allocates memory, too: the trace grows by half.
    shapes
        Record the shapes and dtypes of ops. --no-shapes gives truer times where large tensors are
        made on a CPU.
    set_
        Change a field, for instance `--set precision.mode=allow_mix_precision`; may be repeated.
    run_dir
        Where `profile/` goes; by default into the run, or the next free `runs/RECIPE-N`.
    device
        auto, cpu, cuda, npu, or one of several as in `npu:1`.
    import_
        Import a module of your own first, which registers recipes, networks or data sources.
    """
    from jumar.recipes.profiling import ProfileRequest, profile_recipe
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
