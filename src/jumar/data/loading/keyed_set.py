"""Samples of any kind by key: reads them with retries, skips unreadable ones, makes batches.

A kind of data defines how to read (`open`) and process (`map`) a sample. Everything else is the
same for all kinds, and is implemented here.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from jumar.data.loading.collate import Collate
from jumar.data.loading.sampler import EpochKeys
from jumar.data.samples import (
    Arrays,
    Batch,
    CorruptRecord,
    Fault,
    Fetched,
    SampleKey,
    fingerprint_of,
    read_ahead,
)
from jumar.ground.errors import UserError
from jumar.ground.paths import is_transient

RETRY_AFTER_S = (0.1, 0.5, 2.0)
"""Delays before retries, in total for all samples of a batch: if a disk has failed, an epoch would
otherwise take days to fail."""

Opened = TypeVar("Opened")


class SampleKind(Protocol[Opened]):
    """A kind of data: items (images, clips, documents) and the samples made from them."""

    def __len__(self) -> int:
        """Number of items."""
        ...

    def open(self, item: int, key: SampleKey, /) -> Opened:
        """Read an item; called again after a transient system error.

        Args:
            item: Index of the item: that of the key, or of the item that replaces it.
            key: The requested sample.

        Raises:
            CorruptRecord: It cannot be read.
        """
        ...

    def map(self, opened: Opened, item: int, key: SampleKey, /) -> Arrays:
        """Decode, preprocess and augment; the same for the same arguments and seed.

        Args:
            opened: The result of `open`.
            item: See `open`.
            key: See `open`.

        Returns:
            Arrays that may change as soon as the next sample is requested.

        Raises:
            CorruptRecord: It cannot be decoded.
        """
        ...


Kind = TypeVar("Kind", bound=SampleKind[Any])


@dataclass(frozen=True, kw_only=True, eq=False)
class KeyedSet(Generic[Kind]):
    """The samples of one kind of data as batches; a `SampleSet`.

    A sample that cannot be read is reported as a fault. In training, the next readable item
    replaces it, so that the batch keeps its size; in evaluation, it is skipped.

    Attributes:
        kind: Reads and processes the samples.
        collate: Collates them into a batch.
        training: Whether other items replace unreadable ones.
        per_item: Samples of each item in an epoch; those of one item have consecutive indices.
        what: Name of the items in messages, in the plural.
        todo: What to check if no item can be read.
        epoch_keys: The order of an epoch; None for a permutation.
        finish: Adds to a batch whatever depends on several of its samples, given their keys.
    """

    kind: Kind
    collate: Collate
    training: bool
    per_item: int = 1
    what: str = "samples"
    todo: str = ""
    epoch_keys: EpochKeys | None = None
    finish: Callable[[Batch, Sequence[SampleKey]], Batch] | None = None

    def __len__(self) -> int:
        return len(self.kind) * self.per_item

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the items; see `Fingerprinted`. Empty if the kind has none."""
        return fingerprint_of(self.kind)

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        """Return the batch of these keys, in their order.

        Raises:
            UserError: The samples do not match or do not fit into memory, or no item of the whole
                set can be read.
        """
        faults: list[Fault] = []
        read_ahead(self.kind, [key.index // self.per_item for key in keys])
        batch = self.collate(self._readable(keys, faults), len(keys))
        if self.finish is not None:
            batch = self.finish(batch, keys)
        return Fetched(batch=batch, faults=faults)

    def _readable(self, keys: Sequence[SampleKey], faults: list[Fault]) -> Iterator[Arrays]:
        waits = iter(RETRY_AFTER_S)
        items = len(self.kind)
        for key in keys:
            for skipped in range(items if self.training else 1):
                item = (key.index // self.per_item + skipped) % items
                try:
                    opened = self._opened(item, key, waits)
                    sample = self.kind.map(opened, item, key)
                except CorruptRecord as error:
                    faults.append(error.fault)
                else:
                    yield sample
                    break
            else:
                if self.training:
                    raise UserError(
                        f"none of the {items} {self.what} can be read; the last error: "
                        f"{faults[-1].reason}",
                        where=faults[-1].origin,
                        todo=self.todo,
                    )

    def _opened(self, item: int, key: SampleKey, waits: Iterator[float]) -> Any:
        while True:
            try:
                return self.kind.open(item, key)
            except CorruptRecord as error:
                wait = next(waits, None) if is_transient(error.__cause__) else None
                if wait is None:
                    raise
                time.sleep(wait)
