"""`jumar precision dump`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from jumar.cli.options import DeviceOption, ImportOption, SetOption
from jumar.ground.errors import UserError

Globs = Annotated[tuple[str, ...], Parameter(metavar="GLOB")]


def dump(
    *what: Annotated[str, Parameter(name="RECIPE|RUN", allow_leading_hyphen=True)],
    script: Path | None = None,
    steps: Annotated[str, Parameter(metavar="STEPS")] = "",
    level: Annotated[str, Parameter(metavar="LEVEL")] = "statistics",
    ops: Globs = (),
    layers: Globs = (),
    counts: Annotated[bool, Parameter(negative="--no-counts")] = True,
    parameters: Annotated[bool, Parameter(negative="--no-parameters")] = True,
    to: Path | None = None,
    max_gib: float = 10.0,
    sample: int = 0,
    digests: bool = False,
    set_: SetOption = (),
    device: DeviceOption = "auto",
    import_: ImportOption = (),
) -> int:
    """Dump training steps: statistics of the inputs and outputs of every op, layer and parameter.

    A recipe or run is trained with its own seed, sample order and dropout; a run resumes from its
    newest checkpoint before the first requested step, and does not change. Your own script runs
    unchanged: `jumar precision dump --script train.py -- --lr 0.1`.

    Parameters
    ----------
    what
        Name of a recipe, or a run directory; with --script, the script's arguments, after `--`.
    script
        Run this training script; each step of its optimizer ends a step.
    steps
        Steps counted from 0, such as 3,10; by default the first trained step.
    level
        `modules`: statistics of layers; `statistics`: of ops too; `tensors`: the tensors as well.
    ops
        Only ops that match, by aten name or CANN type, such as `*softmax*`; may be repeated.
    layers
        Only layers whose path matches, such as `encoder.0.*`; may be repeated.
    counts
        Count zeros and elements outside float16's range; --no-counts halves the time.
    parameters
        Record parameters, their gradients, the optimizer state and the updates.
    to
        Folder for the dumps, one per step and rank; by default the next free `dumps/NAME-N`.
    max_gib
        Size limit of a step's tensors in GiB, checked before the step is written.
    sample
        Keep this many elements of larger tensors, evenly spaced; 0 keeps all.
    digests
        Record a hash of every tensor, so that `compare` can name the first op that is not
        bit-identical.
    set_
        Change a field, for example `--set precision.mode=allow_mix_precision`; may be repeated.
    """
    from jumar.precision.recording.recorder import RecordSettings
    from jumar.runs.dump import DumpRequest, dump_recipe, dump_script

    settings = RecordSettings(
        level=level,  # pyright: ignore[reportArgumentType] - checked there
        counts=counts,
        parameters=parameters,
        ops=ops,
        layers=layers,
        max_gib=max_gib,
        sample=sample,
        digests=digests,
    )
    step_numbers = _steps(steps)
    if script is not None:
        if set_ or import_ or device != "auto":
            raise UserError(
                "--set, --import and --device do not apply to a script",
                where="--script",
                todo="Pass the script's arguments after `--`.",
            )
        return dump_script(script, what, steps=step_numbers, settings=settings, to=to)
    if len(what) != 1:
        raise UserError(
            f"one recipe or run is needed, not {len(what)}",
            where="RECIPE|RUN",
            todo="`jumar recipes list` lists the recipes; for a script: --script FILE -- ARGUMENTS",
        )
    return dump_recipe(
        DumpRequest(
            what=what[0],
            steps=step_numbers,
            settings=settings,
            assignments=set_,
            imports=import_,
            to=to,
            device=device,
        )
    )


def _steps(text: str) -> Sequence[int]:
    """Parse a list of steps such as `3,10`.

    Raises:
        UserError: It is not a list of steps.
    """
    numbers = [number.strip() for number in text.split(",") if number.strip()]
    if not all(number.isdecimal() and len(number) < 19 for number in numbers):
        raise UserError(
            f"'{text}' is not a list of steps",
            where="--steps",
            todo="Separate steps, counted from 0, by commas: 3,10",
        )
    return sorted(set(map(int, numbers)))
