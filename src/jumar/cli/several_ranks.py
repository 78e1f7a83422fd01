"""The behaviour of commands in the processes of torchrun.

A few commands divide their work among the ranks. The others would repeat it in every rank, writing
to the same files, so only the first rank runs them.
"""

import os
import sys
from collections.abc import Sequence

from jumar.ground.errors import UserError

_DIVIDED = {("train",), ("evaluate",), ("profile",), ("precision", "dump"), ("doctor",)}
"""Commands whose ranks work together; `profile` without a subcommand records training."""


def _starts_runs(noun: str) -> UserError:
    return UserError(
        f"{noun} starts a separate process for each run, without torchrun",
        todo="Start it without torchrun. To run on several ranks, start each run yourself: "
        "torchrun --nproc-per-node N -m jumar train ..., and compare them with `jumar report`.",
    )


_REFUSED: dict[tuple[str, ...], UserError] = {
    ("sweep",): _starts_runs("a sweep"),
    ("tune", "accuracy"): _starts_runs("a tuning"),
}
"""Commands that are rejected under torchrun, since a single rank would run something else."""

_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def takes_part(command: Sequence[str]) -> bool:
    """Return whether this process takes part in a command.

    Outside torchrun, every process does. If the first rank works alone, torchrun's variables are
    removed from the environment, so that neither it nor a process that it starts waits for ranks
    that have exited.

    The other ranks must exit with 0 even if the command is rejected: if one of them fails, torchrun
    kills the first rank too, perhaps before it has printed the reason.

    Args:
        command: The names of command and subcommand.

    Raises:
        UserError: The command does not support several ranks (only in the first rank), or the
            variables of torchrun contradict each other.
    """
    name = tuple(command)
    if not name or name in _DIVIDED:
        return True
    return alone_or_first(*name)


def alone_or_first(*name: str) -> bool:
    """Return whether this process does work that is not divided among the ranks.

    Raises:
        UserError: See `takes_part`.
    """
    # Schedulers set RANK and WORLD_SIZE for whole machines too; only a launcher sets LOCAL_RANK.
    if "LOCAL_RANK" not in os.environ:
        return True
    from jumar.training.parallel.announced import announced_ranks

    ranks = announced_ranks()
    if ranks.world == 1:
        return True
    if not ranks.is_first:
        return False
    if name in _REFUSED:
        raise _REFUSED[name]
    sys.stderr.write(
        f"jumar: '{' '.join(name)}' does not share its work between ranks; rank 0 of "
        f"{ranks.world} does all of it\n"
    )
    for variable in _VARIABLES:
        os.environ.pop(variable, None)
    return True
