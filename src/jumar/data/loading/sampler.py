"""Selects the samples of each step, as a function of seed, step, rank and world size.

Nothing here has state, so starting at any step costs the same. All ranks together have the samples
that a single rank with the whole batch would have, in the same order.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from jumar.data.samples import SampleKey
from jumar.ground.errors import UserError
from jumar.ground.text import counted

_ORDER, _AUGMENTATION = 1, 2
"""First entropy words, so that different uses of a seed draw different numbers."""
_MAX_WORD = 2**32 - 1


@lru_cache(maxsize=2)
def epoch_order(seed: int, epoch: int, size: int) -> NDArray[np.int64]:
    """Return the order of an epoch: a permutation of 0 to size - 1, read-only."""
    order = np.random.default_rng((_ORDER, seed, epoch)).permutation(size).astype(np.int64)
    order.flags.writeable = False
    return order


def sample_random(seed: int, key: SampleKey) -> np.random.Generator:
    """Return the random generator of a sample in an epoch, which takes about 5 microseconds."""
    words = (_AUGMENTATION, seed, key.epoch, key.index)
    if max(words) > _MAX_WORD:
        return np.random.default_rng(words)
    # The same generator in half the time, since numpy converts tuples element by element.
    return np.random.default_rng(np.array(words, dtype=np.uint32))


def steps_per_epoch(size: int, global_batch: int) -> int:
    """Return the number of full batches per epoch; training drops an incomplete last one.

    Raises:
        UserError: The set is smaller than one batch.
    """
    if size < global_batch:
        raise UserError(
            f"a batch of {counted(global_batch, 'sample')} over all ranks is larger than the "
            f"training set of {counted(size, 'sample')}",
            todo=f"Choose a batch size of at most {size} over all ranks.",
        )
    return size // global_batch


class EpochKeys(Protocol):
    """Defines the samples of an epoch and their order."""

    def __call__(self, seed: int, epoch: int, rows: slice, /) -> list[SampleKey]:
        """Return the keys of some rows of an epoch, deterministically."""
        ...


@runtime_checkable
class Ordered(Protocol):
    """A set that defines its own order instead of a permutation."""

    @property
    def epoch_keys(self) -> EpochKeys | None:
        """The order of its epochs; None for a permutation."""
        ...


def batch_keys(
    seed: int,
    step: int,
    *,
    size: int,
    batch_per_rank: int,
    rank: int,
    world: int,
    epoch_keys: EpochKeys | None = None,
) -> list[SampleKey]:
    """Return the samples of one rank at one step, counted from 0 over the whole run.

    Args:
        seed: Seed of the order of every epoch.
        step: Training step, which determines the epoch.
        size: Number of samples in the training set.
        batch_per_rank: Samples per rank and step.
        rank: This rank, whose rows of the global batch start at rank * batch_per_rank.
        world: Number of ranks.
        epoch_keys: The order of an epoch; None for a permutation.

    Raises:
        UserError: The global batch is larger than the set.
    """
    global_batch = batch_per_rank * world
    epoch, step_in_epoch = divmod(step, steps_per_epoch(size, global_batch))
    start = step_in_epoch * global_batch + rank * batch_per_rank
    selection = slice(start, start + batch_per_rank)
    if epoch_keys is not None:
        return epoch_keys(seed, epoch, selection)
    rows = epoch_order(seed, epoch, size)[selection]
    return [SampleKey(epoch, index) for index in rows.tolist()]


def evaluation_keys(size: int, batch: int, rank: int, world: int) -> Iterator[list[SampleKey]]:
    """Yield batches of at most `batch` keys, such that all ranks together have each sample once.

    The last batch may be smaller, and a rank may have one batch fewer than another.
    """
    for start in range(rank * batch, size, batch * world):
        yield [SampleKey(0, index) for index in range(start, min(start + batch, size))]
