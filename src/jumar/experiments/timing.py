"""Reliability of a table's times: a few steps do not show a speed-up."""

from collections.abc import Sequence

from jumar.experiments.run_reading import Run

MIN_TIMED_STEPS = 20
"""Minimum number of steps for a speed-up; of fewer, one disturbed step could change the median."""


def is_hardly_timed(runs: Sequence[Run]) -> bool:
    """Return whether the median of a run is over too few steps."""
    counts = [run.results.counted_steps for run in runs]
    return any(count is not None and count < MIN_TIMED_STEPS for count in counts)


def timing_notes(rows: Sequence[Sequence[Run]], baseline: Sequence[Run]) -> list[str]:
    """Return explanations of the times, and why a speed-up may be missing.

    Args:
        rows: The runs of each row.
        baseline: The runs of the baseline row.
    """
    if not any(run.results.step_ms_median for runs in rows for run in runs):
        return []
    sentences = ["Batch time: median of the steps."]
    hardly_timed = [is_hardly_timed(runs) for runs in rows]
    if len(rows) > 1 and not is_hardly_timed(baseline) and not all(hardly_timed):
        sentences.append(
            "Speed-up: samples per second, from the batch time, relative to the baseline."
        )
    if len(rows) > 1 and any(hardly_timed):
        sentences.append(
            f"No speed-up if fewer than {MIN_TIMED_STEPS} steps were timed on either side, since "
            "their median depends more on the load of the machine than on the run."
        )
    sentences = [" ".join(sentences)]
    excludes = {run.results.throughput_excludes for run in baseline} - {""}
    if excludes:
        sentences.append(f"Times exclude {'; '.join(sorted(excludes))}.")
    return sentences
