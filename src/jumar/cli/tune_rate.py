"""`jumar tune rate`."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from jumar.cli.options import DeviceOption, ImportOption, JsonFlag, SetOption
from jumar.cli.output import progress_printer
from jumar.ground.files import write_text
from jumar.ground.paths import unwritable
from jumar.report.content import Chart, Curve, Page, Point

if TYPE_CHECKING:
    from jumar.runs.rate_range import RateRange


def rate(
    recipe: str,
    /,
    *,
    low: float = 1e-6,
    high: float = 10.0,
    steps: int = 100,
    objective: Annotated[str, Parameter(metavar="NAME")] = "",
    to: Path | None = None,
    json_: JsonFlag = False,
    set_: SetOption = (),
    device: DeviceOption = "auto",
    import_: ImportOption = (),
) -> int:
    """Find a learning rate for a recipe by training with rising rates.

    Trains the recipe from its initial weights, at a higher rate in each step, until the loss
    diverges. Proposes a tenth of the rate at which the smoothed loss was lowest. The trained
    weights are discarded.

    Parameters
    ----------
    recipe
        Name of the recipe; `jumar recipes list` lists them.
    low
        The rate of the first step.
    high
        The rate of the last step.
    steps
        Number of steps.
    objective
        The objective whose rate rises, for a recipe with several.
    to
        Folder for rates.csv and rates.html; by default `RECIPE-rate`.
    set_
        Change a field, for example `--set data.batch_size=64`; may be repeated.
    """
    from jumar.runs.rate_range import RateRequest, find_rate

    say = progress_printer(as_json=json_)
    result = find_rate(
        RateRequest(
            recipe=recipe,
            objective=objective,
            low=low,
            high=high,
            steps=steps,
            assignments=set_,
            imports=import_,
            device=device,
        ),
        say,
    )
    _write(result, recipe, to or Path(f"{recipe}-rate"), say)
    if json_:
        print(json.dumps(asdict(result), indent=1))
        return 0
    say(f"the ramp ended after step {result.steps[-1].step}: {result.end}")
    if result.proposal is None:
        say(f"no proposal: {result.reason}")
        return 1
    say(f"proposal: {result.proposal:.2g}, {result.reason}; the recipe has {result.own_rate:g}")
    return 0


def _write(result: "RateRange", recipe: str, folder: Path, say: Callable[[str], None]) -> None:
    """Write the table and the page with the chart."""
    from jumar.report.page import save_page

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error, more="Choose another folder with --to.") from error
    rows = [f"{step.step},{step.rate!r},{step.loss!r},{step.smoothed!r}" for step in result.steps]
    table, page = folder / "rates.csv", folder / "rates.html"
    write_text(table, "\n".join(["step,rate,loss,smoothed_loss", *rows]) + "\n")
    save_page(_page(result, recipe), page)
    say(f"written: {table}, {page}")


def _page(result: "RateRange", recipe: str) -> Page:
    curves = [
        Curve(
            label=label,
            group=group,
            points=[Point(step.rate, getattr(step, name)) for step in result.steps],
        )
        for group, (label, name) in enumerate((("smoothed loss", "smoothed"), ("loss", "loss")))
    ]
    proposal = "none" if result.proposal is None else f"{result.proposal:.2g}"
    return Page(
        title=f"{recipe}: loss over the learning rate",
        facts=[
            ("Proposal", f"{proposal}: {result.reason}"),
            ("The recipe's rate", f"{result.own_rate:g}"),
            ("End of the ramp", result.end),
        ],
        charts=[
            Chart(
                title=f"Loss of {result.objective}",
                x_label="learning rate",
                curves=curves,
                logarithmic_x=True,
            )
        ],
    )
