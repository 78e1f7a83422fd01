"""Spare ranks, which have no share of the batch and wait until torchrun restarts all ranks.

After a machine is lost, the number of remaining ranks may not divide the global batch. As many as
can share it train; the others are spares, which the next restart may need.
"""

# Torch documents TCPStore under this name but does not export it.
# pyright: reportPrivateImportUsage=false

import contextlib
import time
from datetime import timedelta

import torch.distributed as dist

from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.training.parallel.silence import Place, store_lost

_FINISHED = "jumar/finished"
_DISMISSED = "jumar/dismissed"
_POLL_INTERVAL = timedelta(seconds=2)
_OPENING = timedelta(seconds=60)
"""How long a spare waits for a store that a training rank has yet to open."""
_LEAVING_S = 10.0
"""How long a rank that hosts the store waits for the spares to notice the end of the run."""


def sharing(ranks: int, samples: int, part: int = 1) -> int:
    """The largest number of ranks, up to `ranks`, that can share a batch in whole parts.

    Args:
        ranks: Number of ranks.
        samples: Size of the global batch.
        part: Size of a part; the samples of a rank are a multiple of it.
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


def release_spares(place: Place, *, hosted_for: int = 0) -> None:
    """Release the spares at the end of the run.

    Args:
        place: The place of this rank.
        hosted_for: The number of spares if this process hosts the store. It then waits for their
            acknowledgement, because a spare that loses the store would cause a restart.
    """
    with contextlib.suppress(RuntimeError, dist.DistError):
        store = place.store()
        store.set(_FINISHED, "1")
        end = time.monotonic() + _LEAVING_S
        while store.add(_DISMISSED, 0) < hosted_for and time.monotonic() < end:
            time.sleep(0.05)


def wait_as_spare(place: Place) -> None:
    """Wait until the run is finished.

    Raises:
        UserError: The training ranks are lost, so torchrun must restart all ranks.
    """
    try:
        store = place.store(_OPENING)
        while not _is_finished(store):
            pass
    except (RuntimeError, dist.DistError):
        raise UserError(store_lost(place)) from None
    with contextlib.suppress(RuntimeError, dist.DistError):
        store.add(_DISMISSED, 1)


def _is_finished(store: dist.TCPStore) -> bool:
    """Whether the run has finished, after waiting for it for up to two seconds."""
    try:
        store.wait([_FINISHED], _POLL_INTERVAL)
    except dist.DistStoreError:
        return False
    # No further request to the store, which may already have ended with the training.
    return True
