"""The table of a sweep: every combination compared with the baseline.

It has the layout of the project's first experiment table: precision mode, loss and accuracy
compared with the baseline, batch time. All functions are pure functions of the runs.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from jumar.experiments.grid import value_of
from jumar.experiments.run_reading import Headline, Run, precision_note
from jumar.experiments.timing import is_hardly_timed, timing_notes
from jumar.experiments.tolerance import (
    Tolerance,
    between_accuracies,
    between_losses,
    between_seeds,
    t_quantile,
)
from jumar.ground.errors import UserError
from jumar.settings import field_of

Relation = Literal["baseline", "equal", "below", "above", "not available"]

ORIGIN_MODES = ("must_keep_origin_dtype", "origin")
"""CANN's two names for the mode that changes no precision, the default baseline."""


@dataclass(frozen=True, kw_only=True)
class Combination:
    """A combination of values with the runs of its seeds."""

    assignments: tuple[str, ...]
    runs: tuple[Run, ...]
    ends: tuple[str, ...] = ()
    """For each run, the reason why its process ended without results; empty if unknown."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A value compared with the baseline's; None if it is missing."""

    value: float | None = None
    deviation: float | None = None
    """Standard deviation over the seeds, if there are several."""
    relation: Relation = "not available"
    reason: str = ""
    """The reason if there is no relation."""
    tolerance: float | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """The row of a combination."""

    values: tuple[str, ...]
    """Values of the varied fields, in the order of the columns."""
    runs: tuple[str, ...]
    num_finished: int
    loss: Compared
    headline: Compared
    batch_time_ms: float | None
    speed_up: float | None
    memory_peak_bytes: int | None
    computed: str
    """The dtype it was computed in."""
    substituted: bool
    """Whether that is not the mode's dtype."""
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """The table of a sweep."""

    recipe: str
    fields: tuple[str, ...]
    loss_name: str
    headline_name: str
    headline_unit: str
    rows: tuple[Row, ...]
    baseline: int
    """Index of the baseline's row."""
    explanations: tuple[str, ...]
    """The definition of equal, and the origin of the tolerance."""


def reason_of(run: Run, end: str) -> str:
    """Return the reason why a run has no results.

    Args:
        run: The run in its current state.
        end: The reason from the exit code of its process; may be empty.
    """
    # A failed run's own reason is more specific than the exit code of its process.
    return run.reason if run.state == "failed" or not end else end


def baseline_index(combinations: Sequence[Sequence[str]], requested: Sequence[str] = ()) -> int:
    """Return the index of the baseline.

    Args:
        combinations: The assignments of each combination.
        requested: All or some assignments of the baseline, which is the first combination that has
            them. If empty, the first one with `must_keep_origin_dtype`, or simply the first.

    Raises:
        UserError: No combination has the requested assignments.
    """
    if requested:
        for index, assignments in enumerate(combinations):
            if set(requested) <= set(assignments):
                return index
        available = "; --baseline ".join(
            " --baseline ".join(names) for names in combinations if names
        )
        raise UserError(
            f"no run of the sweep has {', '.join(requested)}",
            where="--baseline",
            todo=f"Available: --baseline {available}."
            if available
            else "Omit it: nothing is varied.",
        )
    for index, assignments in enumerate(combinations):
        if any(value_of(assignment) in ORIGIN_MODES for assignment in assignments):
            return index
    return 0


def build_table(
    recipe: str, combinations: Sequence[Combination], requested_baseline: Sequence[str] = ()
) -> Table:
    """Build the table of one or more combinations.

    Raises:
        UserError: The requested baseline is not among the combinations.
    """
    index = baseline_index([entry.assignments for entry in combinations], requested_baseline)
    baseline = _Finished(combinations[index])
    entries = [_Finished(entry) for entry in combinations]
    sources = [baseline] if baseline.runs else entries
    headline = next((value for entry in sources if (value := entry.headline)), None)
    is_evaluated = any(entry.losses("evaluation loss") for entry in sources)
    is_trained = any(entry.losses("training loss") for entry in sources)
    loss_name = "training loss" if is_trained and not is_evaluated else "evaluation loss"
    return Table(
        recipe=recipe,
        fields=tuple(field_of(assignment) for assignment in combinations[0].assignments),
        loss_name=loss_name,
        headline_name=headline.name if headline else "",
        headline_unit=headline.unit if headline else "",
        rows=tuple(
            _row(entry, baseline, headline, loss_name, is_baseline=number == index)
            for number, entry in enumerate(entries)
        ),
        baseline=index,
        explanations=(
            *_explanations(baseline, headline, loss_name),
            *timing_notes([entry.timed for entry in entries], baseline.timed),
        ),
    )


class _Finished:
    """A combination with the measurements of its finished runs."""

    def __init__(self, combination: Combination) -> None:
        self.combination = combination
        self.runs = [run for run in combination.runs if run.state == "finished"]

    @property
    def headline(self) -> Headline | None:
        runs = self.runs or self.combination.runs
        return next((run.results.headline for run in runs if run.results.headline), None)

    @property
    def num_samples(self) -> int | None:
        """The number of evaluation samples behind each accuracy, if all runs have the same."""
        counts = {run.results.eval_samples for run in self.runs}
        return counts.pop() or None if len(counts) == 1 else None

    def losses(self, name: str) -> list[float]:
        if name == "evaluation loss":
            return [v for run in self.runs if (v := run.results.metrics.get("loss")) is not None]
        return [v for run in self.runs if (v := run.results.train_loss) is not None]

    def headlines(self, headline: Headline | None) -> list[float]:
        if headline is None:
            return []
        values = (run.results.metrics.get(headline.name) for run in self.runs)
        return [value for value in values if value is not None]

    def median(self, name: str) -> float | None:
        """Return the median over the runs that measured a value, or None if there is none."""
        values = [v for run in self.timed if (v := getattr(run.results, name)) is not None]
        return statistics.median(values) if values else None

    @property
    def timed(self) -> Sequence[Run]:
        """The runs whose times are used: the finished ones, or all if there is none."""
        return self.runs or self.combination.runs

    def no_tolerance(self) -> str:
        """Return the reason why a baseline with a single result has no tolerance."""
        if (planned := len(self.combination.runs)) == 1:
            return "no tolerance with a single baseline seed: use --repeats"
        return f"no tolerance with a result of only one of the baseline's {planned} runs"

    def reason(self) -> str:
        """Return the reason why there are no results, from the first run with a reason."""
        return next((reason_of(run, end) for run, end in self.ended()), "")

    def ended(self) -> list[tuple[Run, str]]:
        """Return the unfinished runs, each with the reason from its process's exit code."""
        ends = self.combination.ends or ("",) * len(self.combination.runs)
        pairs = zip(self.combination.runs, ends, strict=True)
        return [(run, end) for run, end in pairs if run.state != "finished"]


def _row(
    entry: _Finished,
    baseline: _Finished,
    headline: Headline | None,
    loss_name: str,
    *,
    is_baseline: bool,
) -> Row:
    precision = next((r.results for r in entry.combination.runs if r.results.computed), None)
    memory = entry.median("memory_peak_bytes")
    return Row(
        values=tuple(value_of(assignment) for assignment in entry.combination.assignments),
        runs=tuple(run.directory.name for run in entry.combination.runs),
        num_finished=len(entry.runs),
        loss=_compared(
            entry.losses(loss_name),
            baseline.losses(loss_name),
            entry.reason(),
            lambda: _loss_tolerance(entry, baseline, headline, loss_name),
            is_baseline=is_baseline,
            no_tolerance=baseline.no_tolerance(),
        ),
        headline=_compared(
            entry.headlines(headline),
            baseline.headlines(headline),
            entry.reason(),
            lambda: _headline_tolerance(entry, baseline, headline),
            is_baseline=is_baseline,
            no_tolerance=baseline.no_tolerance(),
        ),
        batch_time_ms=entry.median("step_ms_median"),
        speed_up=_speed_up(entry, baseline),
        memory_peak_bytes=None if memory is None else round(memory),
        computed=precision.computed if precision else "",
        substituted=precision.substituted if precision else False,
        notes=tuple(_notes(entry, baseline)),
    )


def _compared(
    values: Sequence[float],
    baseline: Sequence[float],
    reason: str,
    tolerance_of: Callable[[], Tolerance | None],
    *,
    is_baseline: bool,
    no_tolerance: str,
) -> Compared:
    if not values:
        return Compared(reason=reason or "not measured, or not a finite number")
    mean = statistics.fmean(values)
    deviation = statistics.stdev(values) if len(values) > 1 else None
    if is_baseline:
        return Compared(value=mean, deviation=deviation, relation="baseline")
    if not baseline:
        return Compared(value=mean, deviation=deviation, reason="the baseline is not available")
    tolerance = tolerance_of()
    if tolerance is None:
        return Compared(value=mean, deviation=deviation, reason=no_tolerance)
    relation = tolerance.relation(mean, statistics.fmean(baseline))
    return Compared(
        value=mean,
        deviation=deviation,
        relation=cast("Relation", relation),
        tolerance=tolerance.value,
    )


def _is_accuracy(headline: Headline | None) -> bool:
    """Return whether the metric is a percentage of correct samples."""
    return headline is not None and headline.unit == "%" and headline.higher_is_better


def _headline_tolerance(
    entry: _Finished, baseline: _Finished, headline: Headline | None
) -> Tolerance | None:
    before, after = baseline.headlines(headline), entry.headlines(headline)
    samples = baseline.num_samples
    if len(before) > 1:
        tolerance = between_seeds(before, len(after))
        if _is_accuracy(headline) and samples:
            # Otherwise, if all seeds agree exactly, a single sample would count as a difference.
            return Tolerance(value=max(tolerance.value, 100 / samples))
        return tolerance
    if not _is_accuracy(headline) or not samples or samples != entry.num_samples:
        return None
    return between_accuracies(before[0], statistics.fmean(after), samples)


def _loss_tolerance(
    entry: _Finished, baseline: _Finished, headline: Headline | None, loss_name: str
) -> Tolerance | None:
    before, after = baseline.losses(loss_name), entry.losses(loss_name)
    if len(before) > 1:
        return between_seeds(before, len(after))
    scores = baseline.headlines(headline), entry.headlines(headline)
    samples = baseline.num_samples
    if not (_is_accuracy(headline) and samples and all(scores) and samples == entry.num_samples):
        return None
    accuracies = statistics.fmean(scores[0]), statistics.fmean(scores[1])
    return between_losses(before[0], accuracies, samples)


def _speed_up(entry: _Finished, baseline: _Finished) -> float | None:
    """Return samples per second relative to the baseline's, from the median batch times."""
    before, after = baseline.median("step_ms_median"), entry.median("step_ms_median")
    if not before or not after or is_hardly_timed([*entry.timed, *baseline.timed]):
        return None
    batches = entry.median("batch_size"), baseline.median("batch_size")
    if batches[0] and batches[1]:
        return before / after * batches[0] / batches[1]
    return before / after if batches == (None, None) else None


def _notes(entry: _Finished, baseline: _Finished) -> list[str]:
    """Return the footnotes of a row."""
    results = [run.results for run in entry.combination.runs]
    notes = [note for result in results if (note := precision_note(result))]
    for run, end in entry.ended():
        prefix = f"{run.directory.name}: " if len(results) > 1 else ""
        notes.append(f"{prefix}not available: {reason_of(run, end)}")
    for result in results:
        if result.skipped_steps:
            share = f" of {result.steps}" if result.steps else ""
            notes.append(f"steps skipped by the loss scale: {result.skipped_steps}{share}")
    devices = {run.results.device for run in baseline.runs if run.results.device}
    other_devices = sorted({r.device for r in results if r.device} - devices) if devices else []
    if other_devices:
        notes.append(
            f"ran on {', '.join(other_devices)}, the baseline on {', '.join(sorted(devices))}"
        )
    torches = {run.results.versions.get("torch", "") for run in baseline.runs}
    other_torches = sorted(
        {r.versions["torch"] for r in results if "torch" in r.versions} - torches
    )
    if other_torches and torches:
        notes.append(
            f"torch {', '.join(other_torches)}, the baseline torch {', '.join(sorted(torches))}"
        )
    return list(dict.fromkeys(notes))


def _explanations(
    baseline: _Finished, headline: Headline | None, loss_name: str
) -> tuple[str, ...]:
    """Return the definition of "equal"."""
    sentences: list[str] = []
    losses, scores = baseline.losses(loss_name), baseline.headlines(headline)
    samples = baseline.num_samples
    if len(losses) > 1 or len(scores) > 1:
        count = max(len(losses), len(scores))
        spreads: list[str] = []
        if len(losses) > 1:
            spreads.append(f"{loss_name} {statistics.stdev(losses):.3g}")
        if headline and len(scores) > 1:
            spreads.append(
                f"{headline.name} {statistics.stdev(scores):.3g} {headline.unit}".strip()
            )
        sentences.append(
            f"Equal: the means over seeds differ by no more than the 95 % interval of such a "
            f"difference, estimated from the spread of the baseline over n = {count} seeds "
            f"(Student's t {t_quantile(count - 1):.2f}; standard deviations: {', '.join(spreads)})."
        )
        if headline and samples and _is_accuracy(headline):
            sentences.append(
                f"A difference of one of the {samples} evaluation samples always counts as equal."
            )
    elif scores and samples and _is_accuracy(headline):
        name = headline.name if headline else ""
        half_width = between_accuracies(scores[0], scores[0], samples).value
        sentences.append(
            f"Equal {name}: within the 95 % interval of the difference of two accuracies, from "
            f"their binomial standard errors on n = {samples} evaluation samples "
            f"(± {half_width:.2g} points at the baseline's accuracy)."
        )
        if losses:
            half_width = between_losses(losses[0], (scores[0], scores[0]), samples).value
            sentences.append(
                f"Equal {loss_name}: within the same relative interval as the number of "
                f"misclassified samples (± {half_width:.2g} at the baseline's loss)."
            )
        planned = len(baseline.combination.runs)
        seeds_text = "One seed each" if planned == 1 else f"One result from {planned} seeds so far"
        hint = "--repeats 3 measures it" if planned == 1 else "a second one will show it"
        varied_fields = [field_of(assignment) for assignment in baseline.combination.assignments]
        sentences.append(
            "The seed is one of the varied fields: rows that differ in nothing else show how much "
            "results change with it."
            if "seed" in varied_fields
            else f"{seeds_text}: how much results change with the seed is not known; {hint}."
        )
    return tuple(sentences)
