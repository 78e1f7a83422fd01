"""Any runs on one page: their curves overlaid, and a table of differences.

Unlike the table of a sweep it has no baseline and does not judge differences: the runs may be
unrelated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jumar.experiments.picture_strips import strips_of_sweep
from jumar.experiments.repeating import setting_text
from jumar.experiments.run_charts import ShownRun, charts_of
from jumar.experiments.run_notices import finished_text, notice_faults, sentences
from jumar.experiments.run_reading import (
    Headline,
    Run,
    differing,
    precision_note,
    read_run,
)
from jumar.experiments.run_tables import device_finding, mean_reading
from jumar.experiments.sweep_plan import FILE, read_plan
from jumar.experiments.table_forms import (
    distinct,
    memory_text,
    number_text,
)
from jumar.experiments.timing import MIN_TIMED_STEPS, is_hardly_timed
from jumar.ground.errors import UserError
from jumar.ground.files import write_text
from jumar.ground.json_text import flattened
from jumar.ground.paths import exists, is_file, is_folder, missing, resolved
from jumar.ground.tables import csv_text, markdown_lines, markdown_text
from jumar.ground.text import counted
from jumar.report.content import Page, PageTable
from jumar.report.page import save_page

PAGE = "comparison.html"
_MAX_SETTINGS = 40
"""Maximum number of settings in the table; different recipes differ in hundreds."""
_NOT_COMPARED = ("training.device_load_every_s",)


@dataclass(frozen=True, kw_only=True)
class RunsTable:
    """Runs with the settings in which they differ, and their results.

    Attributes:
        header: The header of each column.
        rows: The cells of each run; empty if the run has no such value.
        numeric: Indices of the columns with numbers.
        notes: Explanations of the numbers.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...]
    notes: tuple[str, ...]


def run_directories(paths: Sequence[Path]) -> list[Path]:
    """Return the run directories of some paths, without duplicates and in order.

    Args:
        paths: Runs, sweeps, and folders of runs.

    Raises:
        UserError: A path is none of these.
    """
    directories: dict[Path, Path] = {}
    for path in paths:
        if not exists(path):
            raise missing(path, "run, sweep or folder of runs")
        for directory in _runs_in(path):
            directories.setdefault(resolved(directory), directory)
    return list(directories.values())


def write_comparison(
    paths: Sequence[Path], to: Path, notice: Callable[[str], None] = lambda _: None
) -> tuple[Path, ...]:
    """Write one page for any number of runs, with the table also as Markdown and CSV.

    Args:
        paths: See `run_directories`.
        to: Path of the page; the other files have its name with other suffixes.
        notice: Called with a line for each part of a run that could not be read.

    Returns:
        The paths of the table's files and, last, of the page.

    Raises:
        UserError: A path is not a run, or the files cannot be written.
    """
    if is_folder(to):
        to = to / PAGE
    if to.suffix != ".html":
        raise UserError(f"'{to}' does not end in .html", where="--to", todo=f"Such as {PAGE}.")
    directories = run_directories(paths)
    runs = [read_run(directory) for directory in directories]
    notice_faults(runs, notice)
    labels = distinct_labels(directories)
    headline = _headline(runs)
    table = runs_table(runs, labels, headline)
    page = save_page(_page(runs, labels, table, headline), to)
    markdown_path, csv_path = to.with_suffix(".md"), to.with_suffix(".csv")
    write_text(markdown_path, to_markdown(table))
    write_text(csv_path, to_csv(table))
    return markdown_path, csv_path, page


def distinct_labels(directories: Sequence[Path]) -> list[str]:
    """Return the names of folders, preceded by parent folders where needed to distinguish them."""
    split_paths = [resolved(directory).parts for directory in directories]
    labels = [names[-1] for names in split_paths]
    depth = 1
    while len(set(labels)) < len(labels) and depth < max(map(len, split_paths)):
        depth += 1
        repeated_labels = {label for label in labels if labels.count(label) > 1}
        labels = [
            "/".join(names[-depth:]) if label in repeated_labels else label
            for names, label in zip(split_paths, labels, strict=True)
        ]
    return labels


def runs_table(runs: Sequence[Run], labels: Sequence[str], headline: Headline | None) -> RunsTable:
    """Return the table of some runs.

    Args:
        runs: The runs.
        labels: Their distinct names.
        headline: The metric that they share, if any.
    """
    fields = differing_settings(runs)
    score = headline.name if headline else ""
    unit = f" ({headline.unit})" if headline and headline.unit else ""
    results: list[tuple[str, Callable[[Run], str]]] = [
        (f"{score}{unit}", lambda run: _score(run, score)),
        (f"best {score}{unit}", lambda run: _number(run.results.best_value)),
        ("eval loss", lambda run: _score(run, "loss")),
        ("train loss", lambda run: _number(_train_loss(run))),
        ("samples/s", lambda run: _speed(run, run.results.samples_per_second)),
        ("batch time (ms)", lambda run: _speed(run, run.results.step_ms_median)),
        ("peak memory", _memory),
        ("device busy (%)", _busy),
        ("steps", lambda run: "" if run.last_step is None else str(run.last_step)),
    ]
    texts: list[tuple[str, Callable[[Run], str]]] = [
        ("state", lambda run: run.state),
        ("recipe", lambda run: run.recipe),
        ("computed in", lambda run: run.results.computed),
        ("device", lambda run: run.results.device),
        ("torch", lambda run: run.results.versions.get("torch", "")),
    ]
    present_results = [(name, value) for name, value in results if name and any(map(value, runs))]
    constant = {name for name, value in texts if name != "state" and len(set(map(value, runs))) < 2}
    text_columns = [(name, value) for name, value in texts if name not in constant]
    columns: list[tuple[str, Callable[[Run], str]]] = [*text_columns, *present_results]
    flat = [flattened(run.settings or {}) for run in runs]
    rows = tuple(
        (
            label,
            *(setting_text(settings[name]) if name in settings else "" for name in fields),
            *(value(run) for _, value in columns),
        )
        for run, label, settings in zip(runs, labels, flat, strict=True)
    )
    header = ("run", *fields, *(name for name, _ in columns))
    first_result_column = 1 + len(fields) + len(text_columns)
    return RunsTable(
        header=header,
        rows=rows,
        numeric=tuple(
            index
            for index in range(1, len(header))
            if index >= first_result_column
            or (index <= len(fields) and all(_is_number(row[index]) for row in rows))
        ),
        notes=tuple(_notes(runs, len(_all_differing(runs)) - len(fields), headline)),
    )


def differing_settings(runs: Sequence[Run]) -> list[str]:
    """Return the fields in which the runs' settings differ, at most 40 of them."""
    return _all_differing(runs)[:_MAX_SETTINGS]


def to_markdown(table: RunsTable) -> str:
    """Return the table in GitHub's Markdown, followed by its notes."""
    lines = markdown_lines((table.header, *table.rows), table.numeric)
    return "\n".join(lines) + "".join(f"\n\n{markdown_text(note)}" for note in table.notes) + "\n"


def to_csv(table: RunsTable) -> str:
    """Return the table as CSV, without cells that spreadsheets would run as formulas."""
    return csv_text((table.header, *table.rows))


def _runs_in(path: Path) -> list[Path]:
    """Return the run directories of one path."""
    if is_file(path / "recipe.json") or read_run(path).state != "not run":
        return [path]
    if is_file(path / FILE):
        planned = [path / run.name for run in read_plan(path).runs]
        return [directory for directory in planned if exists(directory)]
    paths = (
        sorted(entry for entry in path.iterdir() if is_file(entry / "recipe.json"))
        if is_folder(path)
        else []
    )
    if not paths:
        raise UserError(
            f"'{path}' is neither a run directory, nor a sweep directory, nor a folder of runs",
            todo="Give directories written by `jumar train` or `jumar sweep`.",
        )
    return paths


def _page(
    runs: Sequence[Run], labels: Sequence[str], table: RunsTable, headline: Headline | None
) -> Page:
    shown = [
        ShownRun(run=run, label=label, group=group, reason=run.reason)
        for group, (run, label) in enumerate(zip(runs, labels, strict=True))
    ]
    pictures = strips_of_sweep([(entry.label, entry.run.pictures) for entry in shown])
    name, unit = (headline.name, headline.unit) if headline else ("", "")
    facts = [
        ("Recipe", distinct(run.recipe for run in runs)),
        ("Runs", finished_text(runs)),
        ("Device", distinct(run.results.device for run in runs)),
        ("Computed in", distinct(run.results.computed for run in runs)),
    ]
    return Page(
        title=f"{counted(len(runs), 'run')} compared",
        facts=[(fact, text) for fact, text in facts if text],
        notices=_notices(shown),
        tables=(
            PageTable(
                title="Settings that differ, and results",
                header=table.header,
                rows=table.rows,
                numeric=table.numeric,
                groups=tuple(range(len(runs))),
                notes=table.notes,
                searchable=True,
            ),
        ),
        pictures=pictures.strips,
        picture_notes=pictures.notes,
        charts=charts_of(shown, name, unit),
    )


def _notices(shown: Sequence[ShownRun]) -> list[str]:
    """Return notices about unfinished runs, and findings about others."""
    notices: list[tuple[str, str]] = []
    for entry in shown:
        run = entry.run
        reason = f"failed: {entry.reason}" if run.state == "failed" else entry.reason
        faults = [f"{fault}, omitted" for fault in run.faults]
        texts = (reason, precision_note(run.results), device_finding(run), *faults)
        notices += [(entry.label, text) for text in texts]
    return sentences(notices)


def _notes(runs: Sequence[Run], left_out: int, headline: Headline | None) -> list[str]:
    notes: list[str] = []
    if left_out > 0:
        notes.append(
            f"The runs differ in {left_out} more settings; `jumar report RUN` shows those of a run."
        )
    if headline is None and any(run.results.headline for run in runs):
        notes.append("The runs have different metrics, which are not compared.")
    if is_hardly_timed(runs):
        notes.append(
            f"Speed is omitted for runs with fewer than {MIN_TIMED_STEPS} timed steps, whose "
            "median depends more on the load of the machine than on the run."
        )
    excludes = distinct(run.results.throughput_excludes for run in runs)
    if excludes:
        notes.append(f"Times exclude {excludes}.")
    samples = {run.results.eval_samples for run in runs if run.results.eval_samples}
    if len(samples) > 1:
        counts = ", ".join(str(count) for count in sorted(samples))
        notes.append(f"The scores come from different numbers of evaluation samples: {counts}.")
    return notes


def _headline(runs: Sequence[Run]) -> Headline | None:
    """Return the main metric if it is the same in all runs with results."""
    headlines = {run.results.headline for run in runs if run.results.headline}
    return headlines.pop() if len(headlines) == 1 else None


def _all_differing(runs: Sequence[Run]) -> list[str]:
    flat = [flattened(run.settings) for run in runs if run.settings is not None]
    return [name for name in differing(flat) if name not in _NOT_COMPARED]


def _score(run: Run, name: str) -> str:
    """Return the final value of a metric, or the latest one of an unfinished run."""
    if name in run.results.metrics:
        return _number(run.results.metrics[name])
    values = [item.metrics[name] for item in run.evaluations if name in item.metrics]
    return _number(values[-1]) if values else ""


def _train_loss(run: Run) -> float | None:
    if run.results.train_loss is not None:
        return run.results.train_loss
    return run.train[-1].loss if run.train else None


def _speed(run: Run, value: float | None) -> str:
    return "" if is_hardly_timed([run]) else _number(value)


def _memory(run: Run) -> str:
    size = run.results.memory_peak_bytes
    return "" if size is None else memory_text(round(size))


def _busy(run: Run) -> str:
    busy = mean_reading([(load.busy_percent, load.readings) for load in run.loads])
    return "" if busy is None else f"{busy:.0f}"


def _number(value: float | None) -> str:
    return "" if value is None else number_text(value, 4)


def _is_number(text: str) -> bool:
    try:
        float(text or "0")
    except ValueError:
        return False
    return True
