"""Labels and keys of all items of a source, for code that needs them before reading items."""

import hashlib
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from jumar.data.samples import (
    CorruptRecord,
    ImageSource,
    Notice,
    Record,
    fingerprint_of,
    read_ahead,
)
from jumar.data.samples import fingerprint as fingerprint_from
from jumar.ground.text import counted

UNREADABLE = -1
"""The label of an item that cannot be read."""


@runtime_checkable
class Listed(Protocol):
    """A source that knows names and labels without reading its items."""

    @property
    def labels(self) -> NDArray[np.int32]:
        """The label of each item, [items]."""
        ...

    def key(self, index: int) -> str:
        """Return the name of an item, which does not depend on where the source is stored."""
        ...


def labels_of(source: ImageSource, notice: Notice) -> NDArray[np.int64]:
    """Return the stored label of each item, [items]; `UNREADABLE` if it cannot be read."""
    return keys_and_labels(source, notice)[1]


def keys_and_labels(source: ImageSource, notice: Notice) -> tuple[list[bytes], NDArray[np.int64]]:
    """Return the identifying key and the label of each item.

    The key of an item in a folder or zip is its path below the class folders. Other sources
    (TFRecord shards, registered ones) have no names, so every item is read once, and its key is a
    hash of its bytes.
    """
    if isinstance(source, Listed):
        keys = [
            source.key(index).encode("utf-8", "surrogateescape") for index in range(len(source))
        ]
        return keys, source.labels.astype(np.int64)
    if len(source) > 100_000:
        notice(f"reading the labels of {counted(len(source), 'sample')}, which takes a while")
    keys: list[bytes] = []
    labels = np.full(len(source), UNREADABLE, np.int64)
    for index in range(len(source)):
        try:
            record = source.read(index)
        except CorruptRecord as error:
            keys.append(error.fault.origin.encode("utf-8", "surrogateescape"))
        else:
            keys.append(hashlib.blake2b(record.encoded, digest_size=16).digest())
            labels[index] = record.label
    return keys, labels


class Chosen:
    """A source with some items of another source.

    Args:
        source: The whole source.
        indices: The chosen items, in their new order.
        fingerprint: Fingerprint of the selection; by default, of the source and the indices.
    """

    def __init__(
        self, source: ImageSource, indices: NDArray[np.int64], fingerprint: str = ""
    ) -> None:
        self._source, self._indices = source, indices
        self.classes: Sequence[str] = source.classes
        self.fingerprint = fingerprint or fingerprint_from(
            fingerprint_of(source).encode(), indices.tobytes()
        )

    def __len__(self) -> int:
        return len(self._indices)

    def read(self, index: int) -> Record:
        """Read one record; raises `CorruptRecord` if that fails."""
        return self._source.read(int(self._indices[index]))

    def read_ahead(self, items: Sequence[int]) -> None:
        """See `ReadsAhead`."""
        read_ahead(self._source, [int(self._indices[item]) for item in items])
