"""Finding the newest and the best checkpoint of a run, and removing those that are not kept.

There is no pointer to the newest or best checkpoint that could become stale: both are determined
from the checkpoints on disk. A request for either returns the newest or best intact one and
reports the damaged ones that it skipped; a request for a specific damaged one is an error.
"""

import math
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
        say: Called with a line about each damaged checkpoint.

    Raises:
        UserError: All checkpoints are damaged.
    """
    return list(_intact(_records(directory), directory, say, with_state=False))


def newest_checkpoint(
    directory: Path, say: Callable[[str], None], *, until: int | None = None
) -> Checkpoint | None:
    """The newest checkpoint that a run can resume from; None if there are no checkpoints.

    Args:
        directory: The run's `checkpoints` directory.
        say: Called with a line about each newer checkpoint that is damaged.
        until: The maximum step of the checkpoint; None for no limit.

    Raises:
        UserError: All checkpoints are damaged.
    """
    newest_first = reversed(_records(directory, until))
    return next(iter(_intact(newest_first, directory, say, with_state=True)), None)


def newest_weights(directory: Path, say: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint whose weights can be used; None if there are no checkpoints.

    Args:
        directory: The run's `checkpoints` directory.
        say: Called with a line about each newer checkpoint that is damaged.

    Raises:
        UserError: All checkpoints are damaged.
    """
    newest_first = reversed(_records(directory))
    return next(iter(_intact(newest_first, directory, say, with_state=False)), None)


def set_aside_newer(directory: Path, checkpoint: Checkpoint) -> list[Path]:
    """Rename checkpoints newer than the one a run resumes from, so that they do not count.

    They are damaged; otherwise the run would have resumed from them. If they kept their names, they
    would count as the newest ones, and intact checkpoints would be removed instead of them.

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
        which: `last`, `best`, or the number of a step.
        headline: For `best`: the metric's name and whether higher is better.
        say: Called with a line about each damaged checkpoint that `last` or `best` skips.

    Raises:
        UserError: There is no such checkpoint, or it is damaged.
    """
    refuse_missing(directory, which)
    records = _records(directory)
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
    raise _no_such(directory, which)


def refuse_missing(directory: Path, which: str) -> None:
    """Check that there is a checkpoint as requested, without reading any.

    Args:
        directory: The run's `checkpoints` directory.
        which: `all`, `last`, `best`, or the number of a step.

    Raises:
        UserError: There is none.
    """
    steps = [str(step_of(path)) for path in _paths(directory)]
    if not steps:
        raise UserError(f"there is no checkpoint in '{directory}'")
    if which not in ("all", "last", "best", *steps):
        raise _no_such(directory, which)


def _no_such(directory: Path, which: str) -> UserError:
    steps = ", ".join(str(step_of(path)) for path in _paths(directory))
    return UserError(
        f"there is no checkpoint '{which}'",
        where=str(directory),
        todo=f"Available: {steps}, last, best.",
    )


def best_checkpoint(
    checkpoints: Sequence[Checkpoint], headline: tuple[str, bool]
) -> Checkpoint | None:
    """The best-scored checkpoint, the later one on a tie; None if none is scored."""
    name, higher = headline
    scored = [c for c in checkpoints if not math.isnan(c.metrics.get(name, math.nan))]
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
    """Remove directories that a killed process left unfinished."""
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
    """The intact checkpoints in order; reports the damaged ones that it skips."""
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
