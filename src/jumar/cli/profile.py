"""`jumar profile`: record, show, compare and gate."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from jumar.cli.options import OPTIONS, JsonFlag
from jumar.cli.profile_record import record
from jumar.ground.errors import EXIT_CODE, UserError
from jumar.ground.files import write_text
from jumar.ground.text import print_plain

if TYPE_CHECKING:
    import polars as pl

    from jumar.profiling.profile import Profile
    from jumar.profiling.views import Options

app = App(
    name="profile",
    help="Record, show, compare and gate profiles of any device and Ascend release.",
    usage="Usage: jumar profile [OPTIONS] RECIPE|RUN\n       jumar profile COMMAND",
    group_parameters=OPTIONS,
)
app.default(record)
app.command(
    "jumar.cli.profile_compare:compare",
    name="compare",
    help="Explain the change of step time between profiles, op by op.",
    usage="Usage: jumar profile compare [OPTIONS] BEFORE AFTER [MORE...]",
)

Views = Annotated[tuple[str, ...], Parameter(metavar="VIEW")]

FIRST_VIEWS = ("todo", "steps", "types", "ops", "aicpu-time")
"""What is shown without --view."""

_WITH_RATES = frozenset({"todo", "roofline", "cores"})
"""Views that hold ops against the chip table."""


@app.command(usage="Usage: jumar profile show [OPTIONS] PATHS...")
def show(
    *paths: Path,
    view: Views = (),
    top: int = 10,
    csv: Path | None = None,
    json_: JsonFlag = False,
    page: Path | None = None,
    chip: Path | None = None,
) -> int:
    """Show a profile: what to do about it, where the time of a step goes, the most expensive ops.

    The exit code is 2 if the profile lacks the data for a requested view.

    Parameters
    ----------
    paths
        Folders or files of one capture by torch_npu, msprof, MindSpore, torch.profiler or jumar.
    view
        A view to show instead of the usual ones; may be repeated. `all` stands for every view that
        the profile has data for.
    top
        Number of rows of a ranking; 0 for all.
    csv
        Also write each view to this folder as VIEW.csv.
    json_
        Print JSON.
    page
        Also write this self-contained HTML page.
    chip
        Your own chip table for the roofline (JSON).
    """
    from jumar.profiling import read
    from jumar.profiling.views import VIEWS, Options, find_view

    if not paths:
        raise UserError("no profile given", todo="Name its folder or a file of it.")
    if top < 0:
        raise UserError(f"{top} rows", where="--top", todo="Give 0 or more; 0 shows all.")
    asked = [find_view(name).name for name in view if name != "all"]
    names = list(VIEWS) if "all" in view else asked
    from jumar.cli.profile_tables import refuse_own_files

    refuse_own_files(paths, files=[page], folder=csv)
    profile = read(list(paths))
    options = Options(top=top, chip=chip)
    tables, impossible = _made(profile, names or FIRST_VIEWS, options)
    if json_:
        from jumar.cli.profile_tables import as_json

        rates = _peak_rates(profile, tables, options)
        print(as_json(profile, tables, impossible, peak_rates=rates))
    else:
        _print(profile, tables, impossible, options, is_first=not names)
    if csv is not None:
        from jumar.cli.profile_tables import write_tables

        for path in write_tables(csv, tables):
            print_plain(f"written: {path}", sys.stderr)
    if page is not None:
        _write_page(profile, page)
    lacking = [name for name in asked if name in impossible]
    for name in lacking:
        print_plain(f"jumar: the view '{name}' is impossible: it {impossible[name]}", sys.stderr)
    return EXIT_CODE if lacking else 0


def _made(
    profile: "Profile", names: Sequence[str], options: "Options"
) -> tuple[dict[str, "pl.DataFrame"], dict[str, str]]:
    """The tables of views, cut to the rows that are shown, and why others are impossible."""
    from jumar.profiling.views import VIEWS, Impossible

    tables: dict[str, pl.DataFrame] = {}
    impossible: dict[str, str] = {}
    for name in names:
        made = VIEWS[name]
        try:
            table = made.make(profile, options)
        except Impossible as missing:
            impossible[name] = str(missing)
            continue
        cut = made.ranking and options.top
        tables[name] = table.head(options.top) if cut else table
    return tables, impossible


def _peak_rates(profile: "Profile", names: Iterable[str], options: "Options") -> str:
    """Whose peak rates the views use and where these come from; empty where they use none."""
    from jumar.profiling.views.chips import chip_of

    if not _WITH_RATES.intersection(names):
        return ""
    chip = chip_of(profile, options.chip)
    return "" if chip is None else chip.says


def _print(
    profile: "Profile",
    tables: Mapping[str, "pl.DataFrame"],
    impossible: Mapping[str, str],
    options: "Options",
    *,
    is_first: bool,
) -> None:
    from rich.console import Console

    from jumar.cli.profile_tables import head, print_table, print_todo, shown
    from jumar.profiling.advice.todo import pace
    from jumar.profiling.views import VIEWS

    console = Console(file=sys.stdout, highlight=False, markup=False)
    for line in head(profile):
        console.print(line, soft_wrap=True)
    for name, table in tables.items():
        console.print(f"\n{VIEWS[name].title}", style="bold", soft_wrap=True)
        if name == "todo":
            console.print(f"  {pace(profile, options)}", soft_wrap=True)
            print_todo(table, console)
        else:
            print_table(table, console)
        rates = _peak_rates(profile, [name], options)
        if rates:
            console.print(f"  chip: {shown(rates, 300)}", style="dim", soft_wrap=True)
    if impossible:
        console.print("\nNot possible with this profile", style="bold")
        for name, why in impossible.items():
            console.print(f"  {name}: {shown(why, 300)}", soft_wrap=True)
    if is_first:
        others = ", ".join(name for name in VIEWS if name not in FIRST_VIEWS)
        console.print(f"\nMore with --view: {others}, all", style="dim", soft_wrap=True)


def _write_page(profile: "Profile", path: Path) -> None:
    from jumar.profiling.page import page as render

    write_text(path, render(profile))
    print_plain(f"written: {path}", sys.stderr)


@app.command(usage="Usage: jumar profile gate [OPTIONS] PATHS...")
def gate(
    *paths: Path,
    max_step_ms: float | None = None,
    max_aicpu_share: float | None = None,
    max_cast_share: float | None = None,
    max_format_share: float | None = None,
    max_free_share: float | None = None,
    max_uncovered_share: float | None = None,
    max_rank_spread: float | None = None,
    json_: JsonFlag = False,
) -> int:
    """Check a profile against limits; the exit code is 1 if one is exceeded, 2 if one is unknown.

    Parameters
    ----------
    paths
        Folders or files of one capture.
    max_step_ms
        Average step time of the slowest rank, without warm-up. [ms]
    max_aicpu_share
        Time of ops on the AI CPU. [% of compute time]
    max_cast_share
        Time of casts. [% of compute time]
    max_format_share
        Time of TransData, Transpose and similar ops. [% of compute time]
    max_free_share
        Time in which the device is idle. [% of step time]
    max_uncovered_share
        Communication not overlapped by computation. [% of step time]
    max_rank_spread
        How much longer than the median rank the slowest rank computes. [%]
    json_
        Print JSON.
    """
    given = {
        "step-ms": max_step_ms,
        "aicpu-share": max_aicpu_share,
        "cast-share": max_cast_share,
        "format-share": max_format_share,
        "free-share": max_free_share,
        "uncovered-share": max_uncovered_share,
        "rank-spread": max_rank_spread,
    }
    limits = {name: limit for name, limit in given.items() if limit is not None}
    if not paths or not limits:
        missing = "no profile given" if not paths else "no limit given"
        raise UserError(missing, todo="For instance: jumar profile gate DIR --max-step-ms 100")
    return _hold(paths, limits, json_=json_)


def _hold(paths: Sequence[Path], limits: Mapping[str, float], *, json_: bool) -> int:
    from jumar.profiling import read
    from jumar.profiling.advice.gate import gate as measure

    found = measure(read(list(paths)), limits)
    if json_:
        rows = [
            {
                "limit": f"max-{row.name}",
                "allowed": row.limit,
                "measured": row.value,
                "unit": row.unit,
                "kept": row.kept,
                "needs": row.needs,
            }
            for row in found
        ]
        print(json.dumps(rows, indent=2))
    else:
        for row in found:
            said = "unknown" if row.value is None else f"{row.value:.3f} {row.unit}"
            verdict = "ok" if row.kept else (f"it {row.needs}" if row.needs else "EXCEEDED")
            print(f"{row.name}: {said}, limit {row.limit:g} {row.unit}: {verdict}")
    if any(row.value is None for row in found):
        return EXIT_CODE
    return int(not all(row.kept for row in found))
