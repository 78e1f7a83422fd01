"""What the times of a table are worth: a speed-up of a handful of steps is none."""

from collections.abc import Sequence

from jumar.experiments.run_reading import Run

LEAST_TIMED_STEPS = 20
"""Steps behind a median below which no speed-up is claimed: of a handful, one that another program
disturbed decides it."""


def is_hardly_timed(runs: Sequence[Run]) -> bool:
    """Whether a median of one of the runs is of a handful of steps."""
    counts = [run.results.counted_steps for run in runs]
    return any(count is not None and count < LEAST_TIMED_STEPS for count in counts)


def on_times(rows: Sequence[Sequence[Run]], baseline: Sequence[Run]) -> list[str]:
    """What the times are, and why a speed-up may be missing.

    Args:
        rows: The runs of each row.
        baseline: Those of the baseline's.
    """
    if not any(run.results.step_ms_median for runs in rows for run in runs):
        return []
    sentences = ["Batch time: median of the steps."]
    short = [is_hardly_timed(runs) for runs in rows]
    if len(rows) > 1 and not is_hardly_timed(baseline) and not all(short):
        sentences.append(
            "Speed-up: samples per second, from the batch time, relative to the baseline."
        )
    if len(rows) > 1 and any(short):
        sentences.append(
            f"No speed-up where fewer than {LEAST_TIMED_STEPS} steps were timed on either side: "
            "their median says more about the moment than about the run."
        )
    sentences = [" ".join(sentences)]
    excludes = {run.results.throughput_excludes for run in baseline} - {""}
    if excludes:
        sentences.append(f"Times exclude {'; '.join(sorted(excludes))}.")
    return sentences
