"""The report page and table files of a sweep or a run, generated from the run directories."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jumar.experiments.folds import with_means_over_folds
from jumar.experiments.picture_strips import strips_of_run, strips_of_sweep
from jumar.experiments.profile_tables import profile_tables
from jumar.experiments.repeating import repeating, setting_text
from jumar.experiments.run_charts import ShownRun, charts_of
from jumar.experiments.run_notices import finished_text, notice_faults, sentences
from jumar.experiments.run_reading import Run, differing, precision_note, read_run
from jumar.experiments.run_tables import device_finding, environment_table, run_tables
from jumar.experiments.sweep_plan import FILE, SweepPlan, combinations_of, read_plan
from jumar.experiments.table import Combination, Table, build_table, reason_of
from jumar.experiments.table_forms import (
    cells_of,
    distinct,
    memory_text,
    number_text,
    to_csv,
    to_json,
    to_markdown,
)
from jumar.ground.errors import UserError
from jumar.ground.files import write_text
from jumar.ground.json_text import flattened
from jumar.ground.paths import exists, is_file, is_folder, missing
from jumar.report.content import Page, PageTable
from jumar.report.page import save_page

PAGE = "report.html"
_FORMS = {"table.md": to_markdown, "table.csv": to_csv, "table.json": to_json}
SWEEP_FILES = (*_FORMS, PAGE)
"""The files rewritten in a sweep directory after each run."""
_MAX_ROWS, _MAX_COLUMNS = 100, 50
"""Maximum rows and columns of a score table: a 1000-class confusion matrix takes 10 MB."""


def write_report(directory: Path, notice: Callable[[str], None] = lambda _: None) -> Path:
    """Write `report.html` for a sweep directory or a run directory and return its path.

    Args:
        directory: The directory of the sweep or run.
        notice: Called with a line for each part of a run that could not be read.

    Raises:
        UserError: The directory is neither, or cannot be written to.
    """
    if not exists(directory):
        raise missing(directory, "run or sweep directory")
    if is_file(directory / FILE):
        return save_sweep_report(directory, notice)[1][-1]
    run = read_run(directory)
    notice_faults([run], notice)
    if run.state == "not run":
        raise UserError(
            f"'{directory}' is neither a run directory nor a sweep directory",
            todo="Give a directory written by `jumar train` or `jumar sweep`.",
        )
    return save_page(_page_of_run(run), directory / PAGE)


def has_own_report(directory: Path) -> bool:
    """Return whether `write_report` accepts a path: a run or a sweep, not a folder of runs."""
    if not is_folder(directory) or is_file(directory / FILE):
        return True
    contains_runs = any(is_file(entry / "recipe.json") for entry in directory.iterdir())
    return read_run(directory).state != "not run" or not contains_runs


def save_sweep_report(
    directory: Path, notice: Callable[[str], None] = lambda _: None
) -> tuple[Table, tuple[Path, ...]]:
    """Write table.md, table.csv, table.json and report.html for a sweep directory.

    Args:
        directory: The sweep's directory.
        notice: Called with a line for each part of a run that could not be read.

    Returns:
        The table, and the paths with the page as the last.

    Raises:
        UserError: There is no sweep, or the directory cannot be written to.
    """
    plan = read_plan(directory)
    combinations = combinations_of(plan, directory)
    notice_faults([run for combination in combinations for run in combination.runs], notice)
    table = with_means_over_folds(build_table(plan.recipe, combinations, plan.baseline))
    for name, form in _FORMS.items():
        write_text(directory / name, form(table))
    page = save_page(_page_of_sweep(plan, combinations, table), directory / PAGE)
    return table, (*(directory / name for name in _FORMS), page)


def _page_of_sweep(plan: SweepPlan, combinations: Sequence[Combination], table: Table) -> Page:
    shown = _shown(combinations)
    runs = [entry.run for entry in shown]
    fields_text = ", ".join(table.fields)
    cells = cells_of(table, reasons_inline=False)
    comparison = PageTable(
        title="Comparison",
        header=cells.header,
        rows=cells.rows,
        numeric=cells.numeric,
        groups=tuple(range(len(combinations))),
        notes=(*cells.footnotes, *cells.explanations),
    )
    facts = [("Recipe", plan.recipe), ("Runs", finished_text(runs)), *_facts(runs)]
    if plan.common:
        facts.append(("Set for all runs", ", ".join(plan.common)))
    pictures = strips_of_sweep([(entry.label, entry.run.pictures) for entry in shown])
    return Page(
        title=f"{plan.recipe}: {fields_text} compared"
        if fields_text
        else f"{plan.recipe}: one combination",
        facts=facts,
        notices=_notices(shown),
        tables=(comparison,),
        pictures=pictures.strips,
        picture_notes=pictures.notes,
        charts=charts_of(shown, table.headline_name, table.headline_unit),
        details=(_differences(shown), *_settings_of(runs[:1], "Settings of the first run")),
    )


def _page_of_run(run: Run) -> Page:
    label = run.directory.resolve().name
    shown = [ShownRun(run=run, label=label, group=0, reason=run.reason)]
    headline = run.results.headline
    name, unit = (headline.name, headline.unit) if headline else ("top1", "%")
    pictures = strips_of_run(run.pictures)
    repetition = repeating(run)
    differing_table = PageTable(
        title=f"Settings that differ from the recipe ({len(repetition.differences)})",
        header=("field", "recipe", "run"),
        rows=repetition.differences,
    )
    finding = device_finding(run)
    return Page(
        title=f"{run.recipe or 'A run'}: {label}",
        facts=[("Recipe", run.recipe or "unknown"), ("State", run.state), *_facts([run])],
        notices=[*_notices(shown), *([f"{finding}."] if finding else [])],
        tables=(
            _results_table(run),
            *([differing_table] if repetition.differences else []),
        ),
        pictures=pictures.strips,
        picture_notes=pictures.notes,
        charts=charts_of(shown, name, unit),
        later_tables=(*_score_tables(run), *run_tables(run), *profile_tables(run)),
        commands=[repetition.command] if repetition.command else (),
        command_notes=repetition.notes,
        details=(*_settings_of([run], "Settings"), *environment_table(run)),
    )


def _shown(combinations: Sequence[Combination]) -> list[ShownRun]:
    shown: list[ShownRun] = []
    for group, combination in enumerate(combinations):
        ends = combination.ends or ("",) * len(combination.runs)
        for number, (run, end) in enumerate(zip(combination.runs, ends, strict=True)):
            label = _label(combination.assignments)
            if number:
                seed = run.results.seed
                label += f", seed {seed}" if seed is not None else f", repeat {number + 1}"
            reason = "" if run.state == "finished" else reason_of(run, end)
            shown.append(ShownRun(run=run, label=label, group=group, reason=reason))
    return shown


def _label(assignments: Sequence[str]) -> str:
    """Return the varied values, with the last parts of the fields' names if there are several."""
    if len(assignments) == 1:
        return assignments[0].partition("=")[2]
    return ", ".join(item.rpartition(".")[2] for item in assignments) or "the run"


def _facts(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Return facts about the runs, if possible the finished ones; different values are listed."""
    finished_runs = [run for run in runs if run.state == "finished"]
    results = [run.results for run in finished_runs or runs]
    write_times = [result.written for result in results if result.written]
    facts = [
        ("Device", distinct(result.device for result in results)),
        ("Ranks", distinct(result.ranks for result in results)),
        ("Batch size (all ranks)", distinct(result.batch_size for result in results)),
        ("Steps", distinct(result.steps for result in results)),
        ("Evaluation samples", distinct(result.eval_samples for result in results)),
        ("Seeds", distinct(result.seed for result in results)),
        ("Last results", f"{max(write_times):%Y-%m-%d %H:%M} UTC" if write_times else ""),
        ("Versions", distinct(_versions(result.versions) for result in results)),
    ]
    if len(runs) == 1:
        precision = " computed in ".join(
            part for part in (results[0].precision_mode, results[0].computed) if part
        )
        facts.insert(-1, ("Precision", precision))
    return [(name, text) for name, text in facts if text]


def _versions(versions: Any) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


def _notices(shown: Sequence[ShownRun]) -> list[str]:
    """Return notices about the runs; runs with the same notice share it."""
    notices: list[tuple[str, str]] = []
    for entry in shown:
        run, reason = entry.run, entry.reason
        # The reason already names the state, unless the run failed or its process ended.
        if reason and (reason != run.reason or run.state == "failed"):
            reason = f"{run.state}: {reason}"
        faults = [f"{fault}, omitted" for fault in run.faults]
        texts = (reason, precision_note(run.results), *faults)
        notices += [(entry.label, text) for text in texts]
    return sentences(notices, with_labels=len(shown) > 1)


def _results_table(run: Run) -> PageTable:
    results = run.results
    rows: list[tuple[str, str]] = []
    unit = results.headline.unit if results.headline else ""
    for name, value in results.metrics.items():
        is_share = name.startswith("top") or (results.headline and name == results.headline.name)
        text = "not finite" if value is None else number_text(value, 4)
        rows.append((f"{name} ({unit})" if is_share and unit else name, text))
    if results.best_value is not None:
        step_text = f" at step {results.best_step}" if results.best_step is not None else ""
        rows.append((f"best{step_text}", number_text(results.best_value, 4)))
    numbers = (
        ("training loss", results.train_loss),
        ("samples per second", results.samples_per_second),
        ("batch time, median (ms)", results.step_ms_median),
    )
    rows += [(name, number_text(value, 4)) for name, value in numbers if value is not None]
    if results.memory_peak_bytes is not None:
        rows.append(("peak memory", memory_text(round(results.memory_peak_bytes))))
    if results.skipped_steps is not None:
        rows.append(("steps skipped by the loss scale", str(results.skipped_steps)))
    excludes = results.throughput_excludes
    return PageTable(
        title="Results",
        header=("result", "value"),
        rows=rows or [("no results yet", run.reason)],
        numeric=(1,),
        notes=(f"Times exclude {excludes}.",) if excludes else (),
    )


def _score_tables(run: Run) -> list[PageTable]:
    """Return tables such as a confusion matrix; columns of numbers are right-aligned."""
    tables: list[PageTable] = []
    for table in run.results.score_tables:
        rows = [row[:_MAX_COLUMNS] for row in table.rows[:_MAX_ROWS]]
        columns = list(zip(*rows, strict=True))
        is_cut = len(table.rows) > len(rows) or len(table.header) > len(columns)
        tables.append(
            PageTable(
                title=table.title,
                header=table.header[:_MAX_COLUMNS],
                rows=rows,
                numeric=[n for n, column in enumerate(columns) if all(map(_is_number, column))],
                notes=("Only a part is shown; the complete table is in results.json.",)
                if is_cut
                else (),
            )
        )
    return tables


def _is_number(text: str) -> bool:
    return text.strip("-+ %").replace(".", "", 1).replace(",", "").isdecimal() or text in ("", "-")


def _differences(shown: Sequence[ShownRun]) -> PageTable:
    """Return the table of the fields in which the runs' resolved recipes differ."""
    started_runs = [entry for entry in shown if entry.run.settings is not None]
    flat = [flattened(entry.run.settings or {}) for entry in started_runs]
    names = differing(flat)
    return PageTable(
        title=f"Settings that differ between the runs ({len(names)})",
        header=("run", *names),
        rows=[
            (entry.label, *(setting_text(settings.get(name)) for name in names))
            for entry, settings in zip(started_runs, flat, strict=True)
        ],
        groups=[entry.group for entry in started_runs],
        searchable=True,
    )


def _settings_of(runs: Sequence[Run], title: str) -> tuple[PageTable, ...]:
    return tuple(
        PageTable(
            title=title,
            header=("field", "value"),
            rows=[(name, setting_text(value)) for name, value in flattened(run.settings).items()],
        )
        for run in runs
        if run.settings
    )
