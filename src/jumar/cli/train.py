"""`jumar train`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from jumar.cli.options import DeviceOption, ImportOption, SetOption
from jumar.cli.restarting import RestartNeeded, was_restarted
from jumar.ground.errors import UserError

TunedOption = Annotated[tuple[Path, ...] | None, Parameter(metavar="[FILE]", consume_multiple=True)]
"""An empty tuple means the file in the recipe's default folder."""


def train(
    recipe: str | None = None,
    /,
    *,
    set_: SetOption = (),
    run_dir: Path | None = None,
    device: DeviceOption = "auto",
    resume: bool = False,
    dry_run: bool = False,
    skip_corrupt: int | None = None,
    emulate_fp16: bool = False,
    profile: bool = False,
    tuned: TunedOption = None,
    tuned_anyway: bool = False,
    track: Annotated[tuple[str, ...], Parameter(metavar="TRACKER")] = (),
    import_: ImportOption = (),
) -> int:
    """Train a recipe, or resume a run.

    The same command with the same --run-dir resumes from its newest checkpoint.

    Parameters
    ----------
    recipe
        Name of the recipe; `jumar recipes list` lists them. Not needed with --resume.
    set_
        Change a field, for example `--set optimizer.learning_rate=0.1`; may be repeated.
    run_dir
        Run directory to write to; by default the next free `runs/RECIPE-N`.
    resume
        Resume the run in --run-dir; an error if there is none.
    dry_run
        Check data, recipe, weights and disk space, run one step, and stop.
    skip_corrupt
        Skip up to this many unreadable samples (`data.skip_corrupt`).
    emulate_fp16
        On a CPU, round values to float16 (`precision.emulate_fp16`).
    profile
        After three warm-up steps, record three steps into `profile/` of the run, then continue
        training; `jumar profile show RUN/profile` shows them.
    tuned
        Apply the faster settings found by `jumar tune speed`, from this file or by default from
        `tuned/RECIPE/tuned.json`. --set takes precedence. A file measured with another machine,
        recipe or version is not applied.
    tuned_anyway
        Also apply a file measured with another machine, recipe or version.
    track
        Also send log lines and scores to wandb, mlflow or swanlab; may be repeated.
    """
    from jumar.runs.train import TrainRequest, train_recipe

    recipe, file = _split(recipe, tuned)
    request = TrainRequest(
        recipe=recipe,
        assignments=assignments(set_, skip_corrupt=skip_corrupt, emulate_fp16=emulate_fp16),
        imports=import_,
        run_dir=run_dir,
        device=device,
        resume=resume,
        dry_run=dry_run,
        profile=profile,
        track=track,
    )
    if tuned is not None:
        from jumar.runs.tuned import resolve_tuned, with_application

        is_restarted = was_restarted()
        application = resolve_tuned(
            request, file, even_if_stale=tuned_anyway, has_variables=is_restarted
        )
        if application.missing_variables and not is_restarted:
            raise RestartNeeded(application.missing_variables)
        request = with_application(request, application)
    elif tuned_anyway:
        raise UserError("there is nothing to apply", where="--tuned-anyway", todo="Add --tuned.")
    return train_recipe(request)


def _split(recipe: str | None, tuned: tuple[Path, ...] | None) -> tuple[str | None, Path | None]:
    """Return the recipe and the tuned file, in any order on the command line.

    `--tuned FILE RECIPE` is parsed as two files and no recipe.

    Raises:
        UserError: There are several files.
    """
    files = tuned or ()
    if recipe is None and len(files) == 2:
        return str(files[1]), files[0]
    if len(files) > 1:
        raise UserError(
            f"accepts one file, not {len(files)}", where="--tuned", todo="Put the recipe first."
        )
    return recipe, files[0] if files else None


def assignments(
    set_assignments: Sequence[str], *, skip_corrupt: int | None = None, emulate_fp16: bool = False
) -> list[str]:
    """Return the `--set` assignments and those made by dedicated options."""
    result = list(set_assignments)
    if skip_corrupt is not None:
        result.append(f"data.skip_corrupt={skip_corrupt}")
    if emulate_fp16:
        result.append("precision.emulate_fp16=true")
    return result
