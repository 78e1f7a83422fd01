"""Reading a run directory, even if it is unfinished, damaged or missing.

A sweep must report on a run that was killed at any moment, so nothing here raises: whatever cannot
be read is missing, and listed in `faults`.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, cast

from jumar.experiments.picture_reading import RunPicture, read_pictures
from jumar.ground.json_text import parse_json
from jumar.ground.text import counted
from jumar.training.run_directory import RunDirectory

State = Literal["finished", "interrupted", "failed", "unfinished", "not run"]

_ENDS: tuple[State, ...] = ("finished", "interrupted", "failed")


@dataclass(frozen=True, kw_only=True)
class Train:
    """One training record; None if a number is missing or not finite."""

    step: int
    epoch: float | None
    samples_per_second: float | None
    loss: float | None
    total_loss: float | None
    learning_rate: float | None
    loss_scale: float | None


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """One evaluation of the model's own or of the averaged weights."""

    step: int
    epoch: float | None
    weights: str
    metrics: Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The metric by which runs are compared, as named in the run's results."""

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
    """`results.json`, with None or an empty text for missing values."""

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
        """Kind and name, if known."""
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
    pictures: tuple[RunPicture, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def last_step(self) -> int | None:
        """The last step with any record."""
        steps = [self.results.steps] if self.results.steps is not None else []
        steps += [record.step for record in self.train[-1:]]
        steps += [record.step for record in self.evaluations[-1:]]
        return max(steps, default=None)

    @property
    def reason(self) -> str:
        """Why there are no final numbers; empty if the run has finished."""
        results, at = self.results, self.last_step
        so_far = "" if at is None else f" at step {at}"
        if self.state == "failed":
            return failure_text(results)
        if self.state == "interrupted":
            return f"interrupted{so_far}"
        if self.state == "unfinished":
            return f"not finished, last record{so_far}" if at is not None else "not finished"
        return "not run yet" if self.state == "not run" else ""


def failure_text(results: Results) -> str:
    """The reason for a failure with its step and objective, each mentioned once."""
    reason = results.failure_reason.rstrip(". ") or "failed, but the results do not say why"
    where: list[str] = []
    if results.failure_step is not None and f"step {results.failure_step}" not in reason:
        where.append(f"step {results.failure_step}")
    if results.failure_objective and results.failure_objective not in reason:
        where.append(f"objective {results.failure_objective}")
    return f"{reason} ({', '.join(where)})" if where else reason


def precision_note(results: Results) -> str:
    """The type a run was computed in, if it differs from the mode's own."""
    computed, note = results.computed, results.precision_note.rstrip(". ")
    if results.precision_mode and note.startswith(f"{results.precision_mode} "):
        # Without the mode's name, the note is the same for all modes with the same reason.
        note = f"the mode{note.removeprefix(results.precision_mode)}"
    if not note and not results.substituted:
        return ""
    if f"computed in {computed}" in note:
        return note
    return f"computed in {computed}: {note}" if note else f"computed in {computed}"


def read_run(directory: Path) -> Run:
    """Read a run directory; a missing directory is a run that has not started."""
    place = RunDirectory(directory)
    faults: list[str] = []
    recipe = _object(place.recipe, faults)
    results = _results(place.results, faults)
    train, evaluations = _metrics(place.metrics, faults)
    pictures = read_pictures(place.pictures, faults)
    ends: dict[str, State] = {name: name for name in _ENDS}
    begun: State = "unfinished" if recipe or train or evaluations else "not run"
    settings = recipe.get("settings")
    return Run(
        directory=directory,
        recipe=_text(recipe.get("recipe")) or results.recipe,
        settings=cast("dict[str, Any]", settings) if isinstance(settings, dict) else None,
        state=ends.get(results.state, begun),
        results=results,
        train=train,
        evaluations=evaluations,
        pictures=pictures,
        faults=tuple(faults),
    )


def flattened(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A settings tree as `section.field` with its value."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat.update(flattened(cast("Mapping[str, Any]", value), f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _object(path: Path, faults: list[str]) -> dict[str, Any]:
    """A JSON object, or an empty one; an existing file that is unreadable is a fault."""
    try:
        data = parse_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        faults.append(f"{path.name} cannot be read")
        return {}
    if not isinstance(data, dict):
        faults.append(f"{path.name} is not a JSON object")
        return {}
    return cast("dict[str, Any]", data)


def _results(path: Path, faults: list[str]) -> Results:
    data = _object(path, faults)
    if not data:
        return Results()
    failure, device = _section(data, "failure"), _section(data, "device")
    precision, throughput = _section(data, "precision"), _section(data, "throughput")
    best = _section(data, "best")
    metrics = {name: _number(value) for name, value in _section(data, "metrics").items()}
    return Results(
        recipe=_text(data.get("recipe")),
        state=_text(data.get("state")),
        failure_reason=_text(failure.get("reason")),
        failure_step=_whole(failure.get("step")),
        failure_objective=_text(failure.get("objective")),
        device_kind=_text(device.get("kind")),
        device_name=_text(device.get("name")),
        ranks=_whole(data.get("ranks")),
        batch_size=_whole(data.get("batch_size")),
        precision_mode=_text(precision.get("mode")),
        computed=_text(precision.get("computed")),
        substituted=precision.get("substituted") is True,
        precision_note=_text(precision.get("note")),
        versions={
            name: str(version)
            for name, version in _section(data, "versions").items()
            if isinstance(version, (str, int, float))
        },
        steps=_whole(data.get("steps")),
        skipped_steps=_whole(data.get("skipped_steps")),
        samples_per_second=_number(throughput.get("samples_per_second")),
        step_ms_median=_number(throughput.get("step_ms_median")),
        throughput_excludes=_text(throughput.get("excludes")),
        memory_peak_bytes=_number(data.get("memory_peak_bytes")),
        metrics=metrics,
        best_value=_number(best.get("value")),
        best_step=_whole(best.get("step")),
        headline=_headline(data, metrics),
        train_loss=_number(data.get("train_loss")),
        eval_samples=_whole(data.get("eval_samples")),
        seed=_whole(data.get("seed")),
        score_tables=_score_tables(data.get("score_tables"), faults),
        written=datetime.fromtimestamp(path.stat().st_mtime, tz=timezone.utc),
    )


def _headline(data: Mapping[str, Any], metrics: Mapping[str, float | None]) -> Headline | None:
    headline = _section(data, "headline")
    name = _text(headline.get("name"))
    if name:
        higher = headline.get("higher_is_better") is not False
        return Headline(name=name, unit=_text(headline.get("unit")), higher_is_better=higher)
    return Headline(name="top1", unit="%", higher_is_better=True) if "top1" in metrics else None


def _score_tables(stored: Any, faults: list[str]) -> tuple[ScoreTable, ...]:
    """The tables whose rows are as long as their header; any others are damaged."""
    tables: list[ScoreTable] = []
    for data in cast("list[Any]", stored) if isinstance(stored, list) else []:
        table = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        header, rows = _cells(table.get("header")), table.get("rows")
        cells = [_cells(row) for row in cast("list[Any]", rows)] if isinstance(rows, list) else []
        if not header or not cells or any(len(row) != len(header) for row in cells):
            faults.append("a score table in results.json is damaged")
            continue
        title = _text(table.get("title")) or "Scores"
        tables.append(ScoreTable(title=title, header=header, rows=tuple(cells)))
    return tuple(tables)


def _cells(row: Any) -> tuple[str, ...]:
    return tuple(str(cell) for cell in cast("list[Any]", row)) if isinstance(row, list) else ()


def _metrics(path: Path, faults: list[str]) -> tuple[tuple[Train, ...], tuple[Evaluation, ...]]:
    """The records in step order; of two records of the same step, the later one counts.

    A run that was killed and resumed from an earlier checkpoint records the steps in between again.
    """
    train: dict[int, Train] = {}
    evaluations: dict[tuple[int, str], Evaluation] = {}
    for record in _records(path, faults):
        step = _whole(record.get("step"))
        if step is None:
            continue
        epoch = _number(record.get("epoch"))
        if record.get("kind") == "train":
            train[step] = Train(
                step=step,
                epoch=epoch,
                samples_per_second=_number(record.get("fps")),
                loss=_number(record.get("loss")),
                total_loss=_number(record.get("total_loss")),
                learning_rate=_number(record.get("learning_rate")),
                loss_scale=_number(record.get("loss_scale")),
            )
        elif record.get("kind") == "evaluation":
            weights = _text(record.get("weights")) or "model"
            evaluations[step, weights] = Evaluation(
                step=step, epoch=epoch, weights=weights, metrics=_scores(record)
            )
    return (
        tuple(train[step] for step in sorted(train)),
        tuple(evaluations[key] for key in sorted(evaluations)),
    )


def _scores(record: Mapping[str, Any]) -> dict[str, float | None]:
    """Every number in an evaluation record; null where it was not finite."""
    return {
        name: _number(value)
        for name, value in record.items()
        if name not in ("kind", "step", "epoch", "weights", "seconds")
        and (value is None or isinstance(value, (int, float)))
    }


def _records(path: Path, faults: list[str]) -> Iterator[dict[str, Any]]:
    """The records of a JSON-lines file; an incomplete last line, left by a kill, is not a fault."""
    damaged: list[int] = []
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    record = parse_json(line)
                except ValueError:
                    damaged += [number] if line.endswith(b"\n") else []
                    continue
                if isinstance(record, dict):
                    yield cast("dict[str, Any]", record)
                else:
                    damaged.append(number)
    except FileNotFoundError:
        return
    except OSError as error:
        faults.append(f"{path.name} cannot be read: {error.strerror}")
    if damaged:
        first = "line" if len(damaged) == 1 else "the first is line"
        lines = counted(len(damaged), "damaged line")
        faults.append(f"{lines} in {path.name} ({first} {damaged[0]})")


def _section(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    """A finite number; JSON's null and the NaN and Infinity that Python writes are None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None or number != int(number) else int(number)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
