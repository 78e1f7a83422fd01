"""`jumar precision noise`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from jumar.cli.counts import check_top
from jumar.cli.options import DeviceOption, ImportOption, JsonFlag, RecipeOrRun, SetOption
from jumar.cli.output import print_table, progress_printer, write_beside
from jumar.ground.text import counted, print_plain, time_text

if TYPE_CHECKING:
    from jumar.precision.sensitivity.measuring import Sensitivity


def noise(
    what: RecipeOrRun,
    /,
    *,
    dtype: Annotated[str, Parameter(metavar="DTYPE")] = "",
    by: Annotated[str, Parameter(metavar="UNIT")] = "group",
    backward: Annotated[bool, Parameter(negative="--no-backward")] = True,
    step: int | None = None,
    seed: int = 0,
    top: int = 15,
    to: Path | None = None,
    page: Path | None = None,
    json_: JsonFlag = False,
    set_: SetOption = (),
    device: DeviceOption = "auto",
    import_: ImportOption = (),
) -> int:
    """Measure which ops and layers are sensitive to rounding.

    Repeats the forward and backward pass of one step, each time with noise as large as the rounding
    to a low dtype in the output of one op, and reports the change of the loss and the gradients.
    The step itself is computed in float32. A run does not change.

    Parameters
    ----------
    dtype
        float16 or bfloat16; by default the precision mode's dtype, or bfloat16.
    by
        The unit that noise is added to in each pass: `group` (an op type in a layer), `layer`, `op`
        (an op type), or `call`.
    backward
        Also add noise to ops of the backward pass; --no-backward halves the number of passes.
    step
        The step, counted from 0; by default the first after the newest checkpoint.
    seed
        Seed of the noise.
    top
        Number of rows to list in each table; 0 for all.
    to
        Also write all rows to this CSV file.
    page
        Also write an HTML page with the sensitivity along the network.
    set_
        Change a field, for example `--set data.batch_size=8`; may be repeated.
    """
    from jumar.precision.sensitivity.measuring import NoiseSettings
    from jumar.precision.sensitivity.tables import as_csv, as_dict
    from jumar.runs.noise import NoiseRequest, measure_noise

    check_top(top)
    say = progress_printer(as_json=json_)
    request = NoiseRequest(
        what=what,
        step=step,
        dtype=dtype,
        settings=NoiseSettings(
            by=by,  # pyright: ignore[reportArgumentType] - checked there
            backward=backward,
            seed=seed,
        ),
        assignments=set_,
        imports=import_,
        device=device,
    )
    report = measure_noise(request, say)
    if json_:
        print(json.dumps({"step": report.step, **as_dict(report.result)}, indent=1))
    else:
        _print(report.result, top)
    if to is not None:
        write_beside(to, as_csv(report.result))
    if page is not None:
        from jumar.precision.sensitivity.page import page as render

        write_beside(page, render(report.result, what=what, step=report.step))
    return 0


def _print(result: "Sensitivity", top: int) -> None:
    from jumar.precision.sensitivity.tables import shown, summary

    ranked = result.ranked
    print_plain(
        f"{counted(result.passes, 'pass')} in {time_text(result.seconds)}; "
        f"loss {result.loss:.6g}, gradients of norm {result.gradient:.4g}"
    )
    if any(result.floor):
        print_plain(
            f"note: the step is not reproducible: without noise the gradients move by "
            f"{shown(result.floor[1])}, the loss by {shown(result.floor[0])}"
        )
    print_plain(
        f"noise of {result.settings.dtype} in everything at once moves the gradients by "
        f"{shown(result.together[1])}, the loss by {shown(result.together[0])}; in one place at a "
        "time:"
    )
    print()
    print_table(summary(ranked[: top or None]))
    if top and len(ranked) > top:
        print_plain(f"{counted(len(ranked) - top, 'other row')} with smaller changes")
    if result.settings.by in ("group", "call"):
        for title, name in (("layer", "layer"), ("CANN type", "cann")):
            print()
            rows = [*_sums(result, name, title)][: top or None]
            print_table(rows, ["gradient", "loss", title])


def _sums(result: "Sensitivity", name: str, title: str) -> Iterator[dict[str, str]]:
    from jumar.precision.sensitivity.tables import shown

    sums = result.summed("layer" if name == "layer" else "cann")
    for key, (loss, gradient) in sums.items():
        yield {"gradient": shown(gradient), "loss": shown(loss), title: key or "none"}
