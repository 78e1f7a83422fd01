"""`jumar tune speed`."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from jumar.cli.ctrl_c import EXIT_CODE as INTERRUPTED
from jumar.cli.options import DeviceOption, ImportOption, RecipeOrRun, SetOption, repeated
from jumar.ground.errors import UserError
from jumar.ground.text import print_at_once

if TYPE_CHECKING:
    from jumar.experiments.tuning.knobs import Combination


def speed(
    what: Annotated[
        RecipeOrRun,
        Parameter(
            help="Name of a recipe, or a run directory, which starts from its newest checkpoint."
        ),
    ],
    /,
    *,
    set_: SetOption = (),
    allow: Annotated[tuple[Literal["rounding"], ...], Parameter(metavar="CLASS")] = (),
    minutes: float = 5.0,
    to: Path | None = None,
    device: DeviceOption = "auto",
    import_: ImportOption = (),
) -> int:
    """Find the fastest settings of a recipe by short paired measurements.

    Only settings that can help with the bottleneck are tried, each in its own process, alternating
    with the best so far; by default only those that keep the weights bit-identical, as verified by
    a hash. Faster settings are confirmed in new processes and written as tuned.json, for `jumar
    train RECIPE --tuned`. The same command resumes after an interruption.

    Parameters
    ----------
    set_
        Change a field of the initial settings; may be repeated.
    allow
        Also try settings that change the rounding of the weights: `rounding`.
    minutes
        Time limit.
    to
        Folder for tuned.json and the measurements; by default `tuned/RECIPE`.
    """
    from jumar.devices.registry import open_device
    from jumar.experiments.tuning.speed import SpeedTuning, tune_speed
    from jumar.recipes.tuned import default_folder, validity_of
    from jumar.runs.observed_steps import SourceRequest, find_source
    from jumar.training.parallel.announced import announced_ranks

    if minutes <= 0:
        raise UserError(f"cannot be {minutes:g}", where="--minutes", todo="Allowed: above 0.")
    request = SourceRequest(what=what, assignments=set_, imports=import_)
    source = find_source(request, announced_ranks())
    opened_device = open_device(device)

    def command(combination: "Combination", folder: Path) -> Sequence[str]:
        tried = (f"{name}={value}" for name, value in combination.settings.items())
        return [
            *(sys.executable, "-m", "jumar", "tune", "measure", what, "--device", device),
            *("--scratch", str(folder)),
            *repeated("--set", (*set_, *tried)),
            *repeated("--import", source.imports),
        ]

    result = tune_speed(
        SpeedTuning(
            what=what,
            validity=validity_of(
                source.name,
                source.recipe,
                device=opened_device.kind,
                device_name=opened_device.name,
            ),
            allow_rounding="rounding" in allow,
            minutes=minutes,
            folder=to or default_folder(source.name),
            command=command,
        ),
        print_at_once,
    )
    return INTERRUPTED if result is not None and result.interrupted else 0


def measure(
    what: RecipeOrRun,
    /,
    *,
    scratch: Path,
    set_: SetOption = (),
    device: DeviceOption = "auto",
    import_: ImportOption = (),
) -> int:
    """Time blocks of steps on request; started by `jumar tune speed`.

    Parameters
    ----------
    scratch
        An empty folder for a checkpoint.
    set_
        Change a field; may be repeated.
    """
    from jumar.runs.speed import SpeedRequest, answer_requests

    # Standard output is reserved for replies; anything printed goes to standard error.
    with os.fdopen(os.dup(1), "w") as replies:
        os.dup2(2, 1)
        request = SpeedRequest(
            what=what, assignments=set_, imports=import_, device=device, scratch=scratch
        )
        return answer_requests(request, sys.stdin, replies)
