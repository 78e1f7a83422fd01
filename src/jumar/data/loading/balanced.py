"""Balanced sampling: every class is drawn equally often, however many samples it has.

The length of an epoch is the size of the set. All classes have the same number of samples in it, to
within one. The samples of a class are drawn in one permutation after another, across epochs: a
frequent class needs several epochs to use all its samples, a rare one repeats its samples within an
epoch. The epoch of a key is the pass through the class, so that a sample drawn twice in an epoch is
augmented differently.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from jumar.data.samples import SampleKey
from jumar.ground.errors import UserError
from jumar.ground.text import counted

_ORDER, _CLASS = 5, 6
"""First entropy words; see `sampler.py` and `keyword_set.py` for others."""


class BalancedKeys:
    """The keys of an epoch in which all classes are equally frequent; an `EpochKeys`.

    Args:
        labels: The class of each sample, [samples]; samples with negative labels are left out.

    Raises:
        UserError: There are fewer than two classes.
    """

    def __init__(self, labels: NDArray[np.integer]) -> None:
        self._size = len(labels)
        self._members = [
            np.flatnonzero(labels == label) for label in np.unique(labels) if int(label) >= 0
        ]
        if len(self._members) < 2:
            raise UserError(
                f"the training set has {counted(len(self._members), 'class')}: there is nothing "
                "to balance",
                where="data.sampling",
                todo="Use data.sampling=natural.",
            )
        self._epoch = lru_cache(maxsize=2)(self._order)

    @property
    def counts(self) -> Sequence[int]:
        """Number of samples of each class."""
        return [len(members) for members in self._members]

    def __call__(self, seed: int, epoch: int, rows: slice) -> list[SampleKey]:
        """See `EpochKeys`."""
        passes, items = self._epoch(seed, epoch)
        pairs = zip(passes[rows].tolist(), items[rows].tolist(), strict=True)
        return [SampleKey(number, item) for number, item in pairs]

    def __reduce__(self) -> tuple[type["BalancedKeys"], tuple[NDArray[np.int64]]]:
        labels = np.full(self._size, -1, np.int64)
        for number, members in enumerate(self._members):
            labels[members] = number
        return BalancedKeys, (labels,)

    def _order(self, seed: int, epoch: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the pass through its class and the sample, for each row of an epoch."""
        random = np.random.default_rng((_ORDER, seed, epoch))
        num_classes = len(self._members)
        base_count, extra = divmod(self._size, num_classes)
        has_extra = random.permutation(num_classes) < extra
        passes: list[NDArray[np.int64]] = []
        items: list[NDArray[np.int64]] = []
        for number, members in enumerate(self._members):
            count = base_count + int(has_extra[number])
            numbers, samples = self._passes_and_samples(
                seed, epoch, number, members, base_count + 1
            )
            passes.append(numbers[:count])
            items.append(samples[:count])
        order = random.permutation(self._size)
        return np.concatenate(passes)[order], np.concatenate(items)[order]

    @staticmethod
    def _passes_and_samples(
        seed: int, epoch: int, number: int, members: NDArray[np.int64], slots: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the passes and samples of a class in an epoch with `slots` samples of it."""
        size = len(members)
        if size < slots:
            count = -(-slots // size)
            random = np.random.default_rng((_CLASS, seed, number, epoch))
            orders = random.permuted(np.tile(members, (count, 1)), axis=1)
            return np.repeat(epoch * count + np.arange(count), size), orders.ravel()
        # The positions do not depend on which classes had an extra sample in earlier epochs.
        positions = np.arange(epoch * slots, (epoch + 1) * slots)
        numbers = positions // size
        samples = np.empty(slots, np.int64)
        for pass_number in np.unique(numbers):
            in_pass = numbers == pass_number
            random = np.random.default_rng((_CLASS, seed, number, int(pass_number)))
            samples[in_pass] = random.permutation(members)[positions[in_pass] % size]
        return numbers, samples
