"""Sentences about several runs, which name each run they apply to."""

from collections.abc import Callable, Iterable, Sequence

from jumar.experiments.run_reading import Run


def notice_faults(runs: Iterable[Run], notice: Callable[[str], None]) -> None:
    """Call `notice` with a line for each part of a run that could not be read."""
    for run in runs:
        for fault in run.faults:
            notice(f"{run.directory}: {fault}, omitted")


def finished_text(runs: Sequence[Run]) -> str:
    """Return how many of the runs are finished."""
    num_finished = sum(run.state == "finished" for run in runs)
    return f"{num_finished} of {len(runs)} finished"


def sentences(notices: Iterable[tuple[str, str]], *, with_labels: bool = True) -> list[str]:
    """Return one sentence per text that is not empty, with the labels of all its runs.

    Args:
        notices: Pairs of a run's label and a text.
        with_labels: Whether the labels are named.
    """
    labels_by_text: dict[str, list[str]] = {}
    for label, text in notices:
        if text:
            labels_by_text.setdefault(text, []).append(label)
    return [
        f"{', '.join(labels)}: {text}." if with_labels else f"{text}."
        for text, labels in labels_by_text.items()
    ]
