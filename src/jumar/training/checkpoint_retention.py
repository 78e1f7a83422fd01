"""Which checkpoints a run has: the newest, the best, which are kept and which are removed.

There is no pointer to the newest or best checkpoint that could become stale: both are determined
from the checkpoints on disk. A request for either returns the newest or best intact one and
reports the damaged ones it skipped; a request for a specific damaged one is an error.
"""

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.paths import exists, is_folder
from jumar.training.checkpoint import Checkpoint, read_checkpoint, step_of
from jumar.training.checkpoint_files import DamagedError


def list_checkpoints(directory: Path) -> list[Checkpoint]:
    """The checkpoints of a run whose records are readable, oldest first."""
    return [record for record in _records(directory) if isinstance(record, Checkpoint)]


def intact_checkpoints(directory: Path, say: Callable[[str], None]) -> list[Checkpoint]:
    """The checkpoints of a run whose weights can be used, oldest first.

    Args:
        directory: The run's `checkpoints` directory.
        say: Called with a line about each damaged one.

    Raises:
        UserError: All are damaged.
    """
    return list(_intact(_records(directory), directory, say, with_state=False))


def newest_checkpoint(
    directory: Path, say: Callable[[str], None], *, until: int | None = None
) -> Checkpoint | None:
    """The newest checkpoint that a run can resume from; None if there are no checkpoints.

    Args:
        directory: The run's `checkpoints` directory.
        say: Called with a line about each newer one that is damaged.
        until: The latest step that it may have; None for any.

    Raises:
        UserError: All are damaged.
    """
    newest_first = reversed(_records(directory, until))
    return next(iter(_intact(newest_first, directory, say, with_state=True)), None)


def set_aside_newer(directory: Path, checkpoint: Checkpoint) -> list[Path]:
    """Rename checkpoints newer than the one a run resumes from, so that they are not counted.

    They are damaged, or the run would have resumed from them. Left in place, one would pass for
    the newest checkpoint, and intact ones would be dropped in its favour.

    Returns:
        The new paths.

    Raises:
        UserError: The directory cannot be written.
    """
    new_paths: list[Path] = []
    for path in _paths(directory):
        if (step_of(path) or 0) > checkpoint.step:
            new_path = path.with_name(f"damaged-{path.name}")
            number = 1
            while exists(new_path):
                number += 1
                new_path = path.with_name(f"damaged-{path.name}-{number}")
            try:
                new_paths.append(path.rename(new_path))
            except OSError as error:
                raise UserError(f"cannot be renamed: {error.strerror}", where=str(path)) from None
    return new_paths


def say_damaged(line: str) -> None:
    """Print a line to standard error, where it does not mix with output that programs read."""
    sys.stderr.write(f"jumar: {line}\n")


def find_checkpoint(
    directory: Path,
    which: str,
    headline: tuple[str, bool] | None = None,
    say: Callable[[str], None] = say_damaged,
) -> Checkpoint:
    """Find a checkpoint with intact weights by `last`, `best` or its step.

    Args:
        directory: The run's `checkpoints` directory.
        which: `last`, `best`, or a number of steps.
        headline: For `best`: the metric's name and whether higher is better.
        say: Called with a line about each damaged one that `last` or `best` skips.

    Raises:
        UserError: There is no such checkpoint, or the one of that step is damaged.
    """
    records = _records(directory)
    if not records:
        raise UserError(f"there is no checkpoint in '{directory}'")
    if which == "last":
        return next(iter(_intact(reversed(records), directory, say, with_state=False)))
    if which == "best":
        intact = intact_checkpoints(directory, say)
        best = best_checkpoint(intact, headline) if headline else None
        if best is None:
            raise UserError(
                "no checkpoint has been scored yet", where=str(directory), todo="Use 'last'."
            )
        return best
    for path, record in zip(_paths(directory), records, strict=True):
        if which == str(step_of(path)):
            if isinstance(record, DamagedError):
                raise record
            record.check(with_state=False)
            return record
    steps = ", ".join(str(step_of(path)) for path in _paths(directory))
    raise UserError(
        f"there is no checkpoint '{which}'",
        where=str(directory),
        todo=f"Available: {steps}, last, best.",
    )


def best_checkpoint(
    checkpoints: Sequence[Checkpoint], headline: tuple[str, bool]
) -> Checkpoint | None:
    """The best-scored checkpoint, the later one on a tie; None if none is scored."""
    name, higher = headline
    scored = [
        c
        for c in checkpoints
        if c.metrics.get(name) is not None and c.metrics[name] == c.metrics[name]
    ]
    if not scored:
        return None
    sign = 1.0 if higher else -1.0
    return max(scored, key=lambda c: (sign * c.metrics[name], c.step))


def drop_checkpoints(
    directory: Path, *, keep: int, keep_best: bool, headline: tuple[str, bool]
) -> None:
    """Remove all but the newest `keep` checkpoints and, with `keep_best`, the best one."""
    checkpoints = list_checkpoints(directory)
    kept_paths = {c.path for c in checkpoints[-keep:]}
    best = best_checkpoint(checkpoints, headline) if keep_best else None
    if best is not None:
        kept_paths.add(best.path)
    for checkpoint in checkpoints:
        if checkpoint.path not in kept_paths:
            hidden = directory / f".{checkpoint.path.name}.dropped"
            checkpoint.path.replace(hidden)
            shutil.rmtree(hidden, ignore_errors=True)


def remove_leftovers(directory: Path) -> None:
    """Remove what a killed process left half-written."""
    if is_folder(directory):
        for path in directory.glob(".step-*"):
            shutil.rmtree(path, ignore_errors=True)


def _paths(directory: Path, until: int | None = None) -> list[Path]:
    """The checkpoints of a directory up to a step, intact or not, oldest first."""
    if not is_folder(directory):
        return []
    steps = [(step, path) for path in directory.iterdir() if (step := step_of(path)) is not None]
    return [path for step, path in sorted(steps) if until is None or step <= until]


def _records(directory: Path, until: int | None = None) -> list[Checkpoint | DamagedError]:
    """Each checkpoint's record, or the error if the record is damaged; oldest first."""
    records: list[Checkpoint | DamagedError] = []
    for path in _paths(directory, until):
        try:
            records.append(read_checkpoint(path))
        except DamagedError as error:
            records.append(error)
    return records


def _intact(
    records: Iterable[Checkpoint | DamagedError],
    directory: Path,
    say: Callable[[str], None],
    *,
    with_state: bool,
) -> Iterator[Checkpoint]:
    """The intact ones in order; reports the ones it skips."""
    failures: list[str] = []
    any_intact = False
    for record in records:
        try:
            if isinstance(record, DamagedError):
                raise record
            record.check(with_state=with_state)
        except DamagedError as error:
            failures.append(f"{error.where} {error.what}")
            say(f"skipping damaged checkpoint: {failures[-1]}")
            continue
        any_intact = True
        yield record
    if failures and not any_intact:
        raise UserError(f"no checkpoint in '{directory}' is intact", todo="\n  ".join(failures))
