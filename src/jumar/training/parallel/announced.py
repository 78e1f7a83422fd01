"""The processes of a run according to the environment variables set by torchrun."""

import os

from jumar.ground.errors import UserError
from jumar.training.parallel.ranks import Ranks
from jumar.training.parallel.replicated import Replicated


def is_elastic() -> bool:
    """Whether torchrun restarts the ranks after a loss, possibly on several machines."""
    restarts = os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")
    return restarts.isdigit() and int(restarts) > 0


def announced_ranks() -> Ranks:
    """The ranks announced by the environment, without connecting them.

    Raises:
        UserError: The variables contradict each other.
    """
    try:
        rank, world, local_world = (
            int(os.environ.get(name, default))
            for name, default in (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_WORLD_SIZE", "1"))
        )
    except ValueError as error:
        raise UserError(f"RANK and WORLD_SIZE must be whole numbers: {error}") from None
    if not 0 <= rank < world:
        raise UserError(
            f"RANK={rank} does not fit WORLD_SIZE={world}",
            todo="Start several ranks with: torchrun --nproc-per-node N -m jumar train ...",
        )
    kind = Ranks if world == 1 else Replicated
    return kind(rank=rank, world=world, local_world=local_world)
