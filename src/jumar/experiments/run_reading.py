"""Read a run directory, even if it is unfinished, damaged or missing.

A sweep must report on a run that was killed at any moment, so nothing here raises: unreadable parts
are left out and listed in `faults`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, cast

from jumar.experiments.json_reading import (
    cells,
    finite_number,
    read_object,
    read_records,
    section,
    text_of,
    whole_number,
)
from jumar.experiments.picture_reading import RunPicture, read_pictures
from jumar.training.run_directory import RunDirectory

State = Literal["finished", "interrupted", "failed", "unfinished", "not run"]

PARTS = ("losses", "terms", "gradient_norms")
"""Keys of training records whose values are numbers by objective or term."""
_ENDS: tuple[State, ...] = ("finished", "interrupted", "failed")


@dataclass(frozen=True, kw_only=True)
class Train:
    """A training record; numbers that are missing or not finite are None.

    Attributes:
        parts: Values by objective or term, under the record's keys `losses`, `terms` and
            `gradient_norms`.
    """

    step: int
    epoch: float | None
    samples_per_second: float | None
    loss: float | None
    total_loss: float | None
    learning_rate: float | None
    loss_scale: float | None
    gradient_norm: float | None = None
    step_ms: float | None = None
    data_ms: float | None = None
    parts: Mapping[str, Mapping[str, float | None]] = field(
        default_factory=dict[str, Mapping[str, float | None]]
    )


@dataclass(frozen=True, kw_only=True)
class Load:
    """Device readings between two log lines; None for unreported values."""

    step: int
    readings: int
    busy_percent: float | None
    memory_used_bytes: float | None
    memory_total_bytes: float | None
    power_w: float | None
    temperature_c: float | None
    machine_busy_percent: float | None
    unreadable: str


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """An evaluation of the weights as trained or of the averaged weights."""

    step: int
    epoch: float | None
    weights: str
    metrics: Mapping[str, float | None]
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The metric by which runs are compared, according to the run's results."""

    name: str
    unit: str
    higher_is_better: bool


@dataclass(frozen=True, kw_only=True)
class ScoreTable:
    """A table from the last evaluation, such as a confusion matrix."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Results:
    """The content of `results.json`, with None or an empty text for missing values."""

    recipe: str = ""
    state: str = ""
    failure_reason: str = ""
    failure_step: int | None = None
    failure_objective: str = ""
    device_kind: str = ""
    device_name: str = ""
    ranks: int | None = None
    batch_size: int | None = None
    precision_mode: str = ""
    computed: str = ""
    substituted: bool = False
    precision_note: str = ""
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    steps: int | None = None
    skipped_steps: int | None = None
    samples_per_second: float | None = None
    step_ms_median: float | None = None
    counted_steps: int | None = None
    elapsed_s: float | None = None
    throughput_excludes: str = ""
    memory_peak_bytes: float | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    best_value: float | None = None
    best_step: int | None = None
    headline: Headline | None = None
    train_loss: float | None = None
    eval_samples: int | None = None
    seed: int | None = None
    score_tables: tuple[ScoreTable, ...] = ()
    written: datetime | None = None

    @property
    def device(self) -> str:
        """Kind and name of the device, as far as known."""
        return ": ".join(part for part in (self.device_kind, self.device_name) if part)


@dataclass(frozen=True, kw_only=True)
class Run:
    """The current state of a run directory."""

    directory: Path
    recipe: str
    settings: Mapping[str, Any] | None
    state: State
    results: Results
    train: tuple[Train, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    loads: tuple[Load, ...] = ()
    imports: tuple[str, ...] = ()
    pictures: tuple[RunPicture, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def last_step(self) -> int | None:
        """The last step that has a record."""
        steps = [self.results.steps] if self.results.steps is not None else []
        steps += [record.step for record in self.train[-1:]]
        steps += [record.step for record in self.evaluations[-1:]]
        return max(steps, default=None)

    @property
    def reason(self) -> str:
        """The reason why there are no final results; empty if the run has finished."""
        position = "" if self.last_step is None else f" at step {self.last_step}"
        if self.state == "failed":
            return failure_text(self.results)
        if self.state == "interrupted":
            return f"interrupted{position}"
        if self.state == "unfinished":
            return f"not finished, last record{position}" if position else "not finished"
        return "not run yet" if self.state == "not run" else ""


def failure_text(results: Results) -> str:
    """Return the reason for a failure with its step and objective, each mentioned once."""
    reason = results.failure_reason.rstrip(". ") or "failed, without a reason in the results"
    where: list[str] = []
    if results.failure_step is not None and f"step {results.failure_step}" not in reason:
        where.append(f"step {results.failure_step}")
    if results.failure_objective and results.failure_objective not in reason:
        where.append(f"objective {results.failure_objective}")
    return f"{reason} ({', '.join(where)})" if where else reason


def precision_note(results: Results) -> str:
    """Return the dtype that a run was computed in if it is not the mode's own; otherwise empty."""
    computed, note = results.computed, results.precision_note.rstrip(". ")
    if results.precision_mode and note.startswith(f"{results.precision_mode} "):
        # Without the mode's name, modes with the same reason share a note.
        note = f"the mode{note.removeprefix(results.precision_mode)}"
    if not note and not results.substituted:
        return ""
    if f"computed in {computed}" in note:
        return note
    return f"computed in {computed}: {note}" if note else f"computed in {computed}"


def read_run(directory: Path) -> Run:
    """Read a run directory; a missing directory is a run that has not started."""
    run_directory = RunDirectory(directory)
    faults: list[str] = []
    recipe = read_object(run_directory.recipe, faults)
    results = _results(run_directory.results, faults)
    train, evaluations, loads = _metrics(
        run_directory.metrics, faults, has_ended=results.state in _ENDS
    )
    pictures = read_pictures(run_directory.pictures, faults)
    ends: dict[str, State] = {name: name for name in _ENDS}
    default_state: State = "unfinished" if recipe or train or evaluations else "not run"
    settings = recipe.get("settings")
    return Run(
        directory=directory,
        recipe=text_of(recipe.get("recipe")) or results.recipe,
        settings=cast("dict[str, Any]", settings) if isinstance(settings, dict) else None,
        state=ends.get(results.state, default_state),
        results=results,
        train=train,
        evaluations=evaluations,
        loads=loads,
        imports=cells(recipe.get("imports")),
        pictures=pictures,
        faults=tuple(faults),
    )


def differing(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the fields whose values differ between flattened settings."""
    names = dict.fromkeys(name for flat in settings for name in flat)
    return [name for name in names if len({repr(flat.get(name)) for flat in settings}) > 1]


def _results(path: Path, faults: list[str]) -> Results:
    data = read_object(path, faults)
    if not data:
        return Results()
    failure, device = section(data, "failure"), section(data, "device")
    precision, throughput = section(data, "precision"), section(data, "throughput")
    best = section(data, "best")
    metrics = {name: finite_number(value) for name, value in section(data, "metrics").items()}
    return Results(
        recipe=text_of(data.get("recipe")),
        state=text_of(data.get("state")),
        failure_reason=text_of(failure.get("reason")),
        failure_step=whole_number(failure.get("step")),
        failure_objective=text_of(failure.get("objective")),
        device_kind=text_of(device.get("kind")),
        device_name=text_of(device.get("name")),
        ranks=whole_number(data.get("ranks")),
        batch_size=whole_number(data.get("batch_size")),
        precision_mode=text_of(precision.get("mode")),
        computed=text_of(precision.get("computed")),
        substituted=precision.get("substituted") is True,
        precision_note=text_of(precision.get("note")),
        versions={
            name: str(version)
            for name, version in section(data, "versions").items()
            if isinstance(version, (str, int, float))
        },
        steps=whole_number(data.get("steps")),
        skipped_steps=whole_number(data.get("skipped_steps")),
        samples_per_second=finite_number(throughput.get("samples_per_second")),
        step_ms_median=finite_number(throughput.get("step_ms_median")),
        counted_steps=whole_number(throughput.get("counted_steps")),
        elapsed_s=finite_number(data.get("elapsed_s")),
        throughput_excludes=text_of(throughput.get("excludes")),
        memory_peak_bytes=finite_number(data.get("memory_peak_bytes")),
        metrics=metrics,
        best_value=finite_number(best.get("value")),
        best_step=whole_number(best.get("step")),
        headline=_headline(data, metrics),
        train_loss=finite_number(data.get("train_loss")),
        eval_samples=whole_number(data.get("eval_samples")),
        seed=whole_number(data.get("seed")),
        score_tables=_score_tables(data.get("score_tables"), faults),
        written=datetime.fromtimestamp(path.stat().st_mtime, tz=timezone.utc),
    )


def _headline(data: Mapping[str, Any], metrics: Mapping[str, float | None]) -> Headline | None:
    headline = section(data, "headline")
    name = text_of(headline.get("name"))
    if name:
        higher = headline.get("higher_is_better") is not False
        return Headline(name=name, unit=text_of(headline.get("unit")), higher_is_better=higher)
    return Headline(name="top1", unit="%", higher_is_better=True) if "top1" in metrics else None


def _score_tables(stored: Any, faults: list[str]) -> tuple[ScoreTable, ...]:
    """Return the tables whose rows are as long as their header; others are damaged."""
    tables: list[ScoreTable] = []
    for data in cast("list[Any]", stored) if isinstance(stored, list) else []:
        table = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        header, rows = cells(table.get("header")), table.get("rows")
        texts = [cells(row) for row in cast("list[Any]", rows)] if isinstance(rows, list) else []
        if not header or not texts or any(len(row) != len(header) for row in texts):
            faults.append("a score table in results.json is damaged")
            continue
        title = text_of(table.get("title")) or "Scores"
        tables.append(ScoreTable(title=title, header=header, rows=tuple(texts)))
    return tuple(tables)


def _metrics(
    path: Path, faults: list[str], *, has_ended: bool
) -> tuple[tuple[Train, ...], tuple[Evaluation, ...], tuple[Load, ...]]:
    """Return the records in step order; of two records of the same step, the later one.

    A run that was killed and resumed from an earlier checkpoint repeats the steps in between.
    """
    train: dict[int, Train] = {}
    evaluations: dict[tuple[int, str], Evaluation] = {}
    loads: list[Load] = []
    for record in read_records(path, faults, has_ended=has_ended):
        step = whole_number(record.get("step"))
        if step is None:
            continue
        epoch = finite_number(record.get("epoch"))
        if record.get("kind") == "train":
            train[step] = Train(
                step=step,
                epoch=epoch,
                samples_per_second=finite_number(record.get("fps")),
                loss=finite_number(record.get("loss")),
                total_loss=finite_number(record.get("total_loss")),
                learning_rate=finite_number(record.get("learning_rate")),
                loss_scale=finite_number(record.get("loss_scale")),
                gradient_norm=finite_number(record.get("gradient_norm")),
                step_ms=finite_number(record.get("step_ms")),
                data_ms=finite_number(record.get("data_ms")),
                parts=_parts(record),
            )
        elif record.get("kind") == "evaluation":
            weights = text_of(record.get("weights")) or "model"
            evaluations[step, weights] = Evaluation(
                step=step,
                epoch=epoch,
                weights=weights,
                metrics=_scores(record),
                seconds=finite_number(record.get("seconds")),
            )
        elif record.get("kind") == "device":
            loads.append(_load(record, step))
    return (
        tuple(train[step] for step in sorted(train)),
        tuple(evaluations[key] for key in sorted(evaluations)),
        tuple(sorted(loads, key=lambda load: load.step)),
    )


def _parts(record: Mapping[str, Any]) -> dict[str, dict[str, float | None]]:
    """Return a record's values by objective or term; None for values that were not finite."""
    parts: dict[str, dict[str, float | None]] = {}
    for kind in PARTS:
        values: object = record.get(kind)
        if isinstance(values, Mapping):
            items = cast("Mapping[str, object]", values).items()
            parts[kind] = {name: finite_number(value) for name, value in items}
    return parts


def _load(record: Mapping[str, Any], step: int) -> Load:
    numbers = {
        name: finite_number(record.get(name))
        for name in (
            *("busy_percent", "memory_used_bytes", "memory_total_bytes"),
            *("power_w", "temperature_c", "machine_busy_percent"),
        )
    }
    return Load(
        step=step,
        readings=whole_number(record.get("readings")) or 0,
        unreadable=text_of(record.get("unreadable")),
        **numbers,
    )


def _scores(record: Mapping[str, Any]) -> dict[str, float | None]:
    """Return all numbers in an evaluation record; None for those that were not finite."""
    return {
        name: finite_number(value)
        for name, value in record.items()
        if name not in ("kind", "step", "epoch", "weights", "seconds")
        and (value is None or isinstance(value, (int, float)))
    }
