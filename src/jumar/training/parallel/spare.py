"""Ranks that have no share of the batch: they wait until torchrun restarts all ranks.

After a machine is lost, the number of remaining ranks may not divide the global batch. As many as
can share it train; the others are spares, which the next restart may need.
"""

import contextlib
from datetime import timedelta

import torch.distributed as dist

from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.training.parallel.silence import Place, store_lost

_FINISHED = "jumar/finished"
_LOOK = timedelta(seconds=2)


def sharing(ranks: int, samples: int, part: int = 1) -> int:
    """The largest number of ranks, up to `ranks`, that can share a batch in whole parts.

    Args:
        ranks: Number of ranks.
        samples: The global batch.
        part: Samples that stay together; a rank takes a multiple of them.
    """
    parts = samples // part
    return next(count for count in range(min(ranks, parts), 0, -1) if parts % count == 0)


def spares_line(ranks: int, training: int, samples: int) -> str:
    """The first rank's message about spares."""
    verb = "trains" if training == 1 else "train"
    spares = "1 waits as a spare" if ranks - training == 1 else f"{ranks - training} wait as spares"
    return (
        f"{counted(ranks, 'rank')} cannot share batches of {samples} samples: {training} {verb}, "
        f"{spares} (a global batch that every number of ranks divides needs none)"
    )


def tell_spares(place: Place) -> None:
    """Release the spares: the run is finished."""
    with contextlib.suppress(RuntimeError, dist.DistError):
        place.store().set(_FINISHED, "1")


def wait_as_spare(place: Place) -> None:
    """Wait until the run is finished.

    Raises:
        UserError: The ranks that train are gone; torchrun starts over.
    """
    try:
        store = place.store()
        while not store.check([_FINISHED]):
            with contextlib.suppress(dist.DistStoreError):
                store.wait([_FINISHED], _LOOK)
    except (RuntimeError, dist.DistError):
        raise UserError(store_lost(place)) from None
