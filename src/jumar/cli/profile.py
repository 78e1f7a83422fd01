"""`jumar profile`: record, show, compare and gate."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from jumar.cli.counts import check_top
from jumar.cli.options import OPTIONS, JsonFlag
from jumar.cli.output import write_beside
from jumar.cli.profile_record import record
from jumar.cli.profile_tables import (
    as_json,
    print_advice,
    print_listing,
    print_title,
    refuse_own_files,
    write_tables,
)
from jumar.ground.errors import EXIT_CODE, UserError
from jumar.ground.text import Language, print_aside
from jumar.profiling.showing import shown

if TYPE_CHECKING:
    from jumar.profiling.profile import Profile
    from jumar.profiling.views import Answers, Options

app = App(
    name="profile",
    help="Record, show, compare and gate profiles of any device and Ascend release.",
    usage="Usage: jumar profile [OPTIONS] RECIPE|RUN\n       jumar profile COMMAND",
    group_parameters=OPTIONS,
)
app.default(record)
app.command(
    "jumar.cli.profile_compare:compare",
    help="Explain the change of step time between profiles, op by op.",
    usage="Usage: jumar profile compare [OPTIONS] BEFORE AFTER [MORE...]",
)


@app.command(usage="Usage: jumar profile show [OPTIONS] PATHS...")
def show(
    *paths: Path,
    view: Annotated[tuple[str, ...], Parameter(metavar="VIEW")] = (),
    top: int | None = None,
    csv: Path | None = None,
    json_: JsonFlag = False,
    page: Path | None = None,
    chip: Path | None = None,
    export: Annotated[bool, Parameter(negative="")] = False,
    lang: Language = "en",
) -> int:
    """Show a profile: advice, how the time of a step is spent, and the most expensive ops.

    The exit code is 2 if the profile lacks the data for a requested view.

    Parameters
    ----------
    paths
        Folders or files of one capture by torch_npu, msprof, MindSpore, torch.profiler or jumar.
    view
        A view to show instead of the default ones; may be repeated. `all` shows every view for
        which the profile has data.
    top
        Number of rows of a ranking, 10 by default; 0 for all. If set, it also limits the to-do list
        on the terminal.
    csv
        Also write each view to this folder as VIEW.csv.
    page
        Also write this self-contained HTML page.
    chip
        Your own chip table for the roofline (JSON).
    export
        First run CANN's msprof on folders of raw data (PROF_*), which writes its tables into them.
    lang
        Language of titles, advice and page.
    """
    from jumar.profiling import read
    from jumar.profiling.views import VIEWS, Options, answers, default_views, find_view
    from jumar.profiling.views.chips import peak_rates

    if not paths:
        raise UserError("a profile is missing", todo="Name its folder, or a file in it.")
    check_top(top or 0)
    requested_views = [find_view(name) for name in view if name != "all"]
    refuse_own_files(paths, files=[page], folder=csv)
    if export:
        from jumar.profiling.reading.files.raw import export as export_raw

        export_raw(paths)
    profile = read(list(paths))
    every_view = list(VIEWS.values()) if "all" in view else []
    chosen_views = every_view or requested_views or default_views(profile)
    options = Options(chip=chip, language=lang, **({} if top is None else {"top": top}))
    answered = answers(profile, chosen_views, options)
    if json_:
        rates = peak_rates(profile, answered.tables, options)
        print(as_json(profile, answered, peak_rates=rates))
    else:
        others = () if view else [other.name for other in VIEWS.values() if not other.usual]
        _print(profile, answered, options, others, max_advice=top or 0)
    if csv is not None:
        for path in write_tables(csv, answered.tables):
            print_aside(f"written: {path}")
    if page is not None:
        from jumar.profiling.page import page as render

        write_beside(page, render(profile, options=options))
    missing_views = [
        requested.name for requested in requested_views if requested.name in answered.impossible
    ]
    for name in missing_views:
        reason = answered.impossible[name]
        print_aside(f"jumar: the view '{name}' is not available: the profile {reason}")
    return EXIT_CODE if missing_views else 0


def _print(
    profile: "Profile",
    answered: "Answers",
    options: "Options",
    others: Sequence[str],
    *,
    max_advice: int,
) -> None:
    from rich.console import Console

    from jumar.profiling.advice.todo import step_summary
    from jumar.profiling.texts import missing_lines, summary_line, texts_in
    from jumar.profiling.views import VIEWS
    from jumar.profiling.views.chips import peak_rates
    from jumar.profiling.views.step_split import contradictions

    console = Console(file=sys.stdout, highlight=False, markup=False)
    texts = texts_in(options.language)
    console.print(summary_line(profile, options.language), soft_wrap=True)
    for word, line in missing_lines(profile, options.language):
        console.print(f"{word}{line}", soft_wrap=True)
    for line in contradictions(profile):
        console.print(f"{texts['note']}{line.in_language(options.language)}", soft_wrap=True)
    for name, table in answered.tables.items():
        if VIEWS[name].advice:
            print_title(VIEWS[name].title.in_language(options.language), console)
            console.print(f"  {step_summary(profile, options)}", soft_wrap=True)
            rows = table.height
            table = table.head(max_advice or rows)
            print_advice(table, console, options.language)
        else:
            rows = answered.row_counts.get(name, table.height)
            print_listing(VIEWS[name].listing(table), console, options.language)
        if table.height < rows:
            cut_note = texts["cut"].format(shown=table.height, rows=rows, name=name)
            console.print(f"  {cut_note}", style="dim", soft_wrap=True)
        rates = peak_rates(profile, [name], options)
        if rates:
            console.print(f"  {texts['rates']}{shown(rates, 300)}", style="dim", soft_wrap=True)
    if answered.impossible:
        print_title(texts["impossible"], console)
        for name, reason in answered.impossible.items():
            console.print(f"  {name}: {shown(reason, 300)}", soft_wrap=True)
    if others:
        line = texts["more_views"].format(views=", ".join(others))
        console.print(f"\n{line}", style="dim", soft_wrap=True)


@app.command
def views(
    *,
    json_: Annotated[JsonFlag, Parameter(help="Print JSON, with the columns.")] = False,
    lang: Language = "en",
) -> None:
    """List the views and the questions that they answer.

    Parameters
    ----------
    lang
        Language of the questions.
    """
    from jumar.profiling.views import VIEWS

    if json_:
        rows = [
            {
                "name": view.name,
                "title": view.title.in_language(lang),
                "question": view.question.in_language(lang),
                "columns": [
                    {
                        "name": column.name,
                        "title": column.title.in_language(lang),
                        "unit": column.unit,
                    }
                    for column in view.columns
                ],
            }
            for view in VIEWS.values()
        ]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max(map(len, VIEWS))
    for view in VIEWS.values():
        print(f"{view.name:{width}}  {view.question.in_language(lang)}")


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
    """Check a profile against limits; exit code 1 if one is exceeded, 2 if a value is unknown.

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
        Idle time of the device. [% of step time]
    max_uncovered_share
        Communication not overlapped by computation. [% of step time]
    max_rank_spread
        Additional compute time of the slowest rank over the median rank. [%]
    """
    options = {
        "step-ms": max_step_ms,
        "aicpu-share": max_aicpu_share,
        "cast-share": max_cast_share,
        "format-share": max_format_share,
        "free-share": max_free_share,
        "uncovered-share": max_uncovered_share,
        "rank-spread": max_rank_spread,
    }
    limits = {name: limit for name, limit in options.items() if limit is not None}
    if not paths or not limits:
        missing = "profile" if not paths else "limit"
        raise UserError(
            f"a {missing} is missing", todo="For instance: jumar profile gate DIR --max-step-ms 100"
        )
    return _check_limits(paths, limits, json_=json_)


def _check_limits(paths: Sequence[Path], limits: Mapping[str, float], *, json_: bool) -> int:
    from jumar.profiling import read
    from jumar.profiling.advice.gate import gate as measure
    from jumar.profiling.texts import missing_lines

    profile = read(list(paths))
    rows = measure(profile, limits)
    for word, line in missing_lines(profile, "en"):
        print_aside(f"{word}{line}")
    if json_:
        fields = [
            {
                "limit": f"max-{row.name}",
                "allowed": row.limit,
                "measured": row.value,
                "unit": row.unit,
                "kept": row.kept,
                "needs": row.needs,
            }
            for row in rows
        ]
        print(json.dumps(fields, indent=2))
    else:
        for row in rows:
            value = "unknown" if row.value is None else f"{row.value:.3f} {row.unit}"
            verdict = "ok" if row.kept else (f"it {row.needs}" if row.needs else "EXCEEDED")
            print(f"{row.name}: {value}, limit {row.limit:g} {row.unit}: {verdict}")
    if any(row.value is None for row in rows):
        return EXIT_CODE
    return int(not all(row.kept for row in rows))
