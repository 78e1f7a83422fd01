"""The curves of runs, as charts of a page."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jumar.experiments.run_reading import Evaluation, Load, Run, Train
from jumar.report.content import Chart, Curve, Point


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """A run with its label and position on the page."""

    run: Run
    label: str
    group: int
    reason: str


def charts_of(shown: Sequence[ShownRun], headline: str, unit: str) -> list[Chart]:
    """Return the charts of scores, training and device, in display order.

    Args:
        shown: The runs.
        headline: Name of the metric by which they are compared.
        unit: Its unit.
    """
    by_epoch = all(
        record.epoch is not None
        for entry in shown
        for record in (*entry.run.train, *entry.run.evaluations)
    )
    headline_title = f"{headline} ({unit})" if unit else headline
    training_charts: list[tuple[str, Callable[[Train], float | None], bool]] = [
        ("Training loss", lambda record: record.loss, True),
        ("Total loss, with regularisation", lambda record: record.total_loss, True),
        ("Learning rate", lambda record: record.learning_rate, False),
        ("Speed (samples per second)", lambda record: record.samples_per_second, False),
        ("Gradient norm", lambda record: record.gradient_norm, False),
        ("Loss scale", lambda record: record.loss_scale, False),
    ]
    part_charts = {
        "losses": "Loss by objective",
        "terms": "Terms of the loss",
        "gradient_norms": "Gradient norm by objective",
    }
    device_charts: list[tuple[str, Callable[[Load], float | None]]] = [
        ("Device busy (%)", lambda load: load.busy_percent),
        ("Device memory in use (GiB)", lambda load: _divided(load.memory_used_bytes, 2**30)),
        ("Device power (W)", lambda load: load.power_w),
        ("Device temperature (°C)", lambda load: load.temperature_c),
    ]
    scores = [
        (title, _evaluation_curves(shown, name, by_epoch=by_epoch))
        for title, name in ((headline_title, headline), ("Evaluation loss", "loss"))
    ]
    records = [
        *(
            (title, _training_curves(shown, value_of, with_gaps=with_gaps, by_epoch=by_epoch))
            for title, value_of, with_gaps in training_charts
        ),
        *(
            (title, _part_curves(shown, kind, by_epoch=by_epoch))
            for kind, title in part_charts.items()
        ),
        *(
            (title, _device_curves(shown, value_of, by_epoch=by_epoch))
            for title, value_of in device_charts
        ),
    ]
    return [
        Chart(
            title=title,
            x_label="epoch" if by_epoch else "step",
            curves=with_points,
            marked=is_marked,
        )
        for is_marked, charts in ((True, scores), (False, records))
        for title, curves in charts
        if (with_points := [curve for curve in curves if curve.points]) and title
    ]


def _divided(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _device_curves(
    shown: Sequence[ShownRun], value_of: Callable[[Load], float | None], *, by_epoch: bool
) -> Iterator[Curve]:
    """Yield the curve of a quantity of the device for each run."""
    for entry in shown:
        per_step = _epochs_per_step(entry.run) if by_epoch else 1.0
        points = [
            Point(load.step * per_step, value)
            for load in entry.run.loads
            if (value := value_of(load)) is not None
        ]
        yield _curve(entry, entry.label, entry.group, points)


def _epochs_per_step(run: Run) -> float:
    """Return epochs per step, from the last record that has both."""
    ratios = [
        record.epoch / record.step
        for record in (*run.train[-1:], *run.evaluations[-1:])
        if record.epoch and record.step
    ]
    return ratios[0] if ratios else 1.0


def _training_curves(
    shown: Sequence[ShownRun],
    value_of: Callable[[Train], float | None],
    *,
    with_gaps: bool,
    by_epoch: bool,
) -> Iterator[Curve]:
    """Yield the curve of a quantity of the training records for each run.

    A missing loss was not finite and is shown as a gap. Any other missing value was not measured,
    such as the speed during warm-up.
    """
    for entry in shown:
        points = [
            Point(_x(record, by_epoch=by_epoch), value)
            for record in entry.run.train
            if (value := value_of(record)) is not None or with_gaps
        ]
        yield _curve(entry, entry.label, entry.group, points)


def _part_curves(shown: Sequence[ShownRun], kind: str, *, by_epoch: bool) -> Iterator[Curve]:
    """Yield a curve for each objective or term of each run; non-finite values are gaps."""
    names = list(
        dict.fromkeys(
            name
            for entry in shown
            for record in entry.run.train
            for name in record.parts.get(kind, {})
        )
    )
    for entry in shown:
        for number, name in enumerate(names):
            points = [
                Point(_x(record, by_epoch=by_epoch), record.parts[kind][name])
                for record in entry.run.train
                if name in record.parts.get(kind, {})
            ]
            label = f"{entry.label}: {name}" if len(shown) > 1 else name
            yield _curve(entry, label, entry.group * len(names) + number, points)


def _evaluation_curves(shown: Sequence[ShownRun], name: str, *, by_epoch: bool) -> Iterator[Curve]:
    """Yield the curves of a score.

    A single run gets one curve for the trained weights and one for their moving average, as far as
    each was scored. Of several runs, each gets only one curve: that of the average if it was
    scored, since it is the recipe's result.
    """
    for entry in shown:
        kinds = sorted({record.weights for record in entry.run.evaluations})
        if len(shown) > 1:
            kinds = kinds[:1] if "ema" not in kinds else ["ema"]
        for number, kind in enumerate(kinds):
            points = [
                Point(_x(record, by_epoch=by_epoch), record.metrics[name])
                for record in entry.run.evaluations
                if record.weights == kind and name in record.metrics
            ]
            label = f"{entry.label} (averaged weights)" if kind == "ema" else entry.label
            yield _curve(entry, label, entry.group + number, points)


def _curve(entry: ShownRun, label: str, group: int, points: Sequence[Point]) -> Curve:
    return Curve(label=label, group=group, points=points, ended=entry.reason)


def _x(record: Train | Evaluation, *, by_epoch: bool) -> float:
    return record.epoch if by_epoch and record.epoch is not None else float(record.step)
