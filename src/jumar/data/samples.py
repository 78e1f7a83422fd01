"""The types passed between data sets and the trainer: keys, batches, sources and faults."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from jumar.ground.paths import reason as system_reason

if TYPE_CHECKING:
    import torch  # takes seconds, and commands that write data do not need it

Arrays = dict[str, NDArray[np.generic]]
"""The arrays of one sample, by name. An image is [height, width, channels]; a number is an array of
shape []."""

Batch = Mapping[str, "torch.Tensor"]
"""Tensors by name; the first dimension of each is the sample, so a batch splits by slicing."""


Notice = Callable[[str], None]
"""Called with information for the user only, such as skipped or unpacked files."""


class SampleKey(NamedTuple):
    """A sample and its epoch: with the seed, they determine its augmentation."""

    epoch: int
    index: int  # pyright: ignore[reportIncompatibleMethodOverride]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A sample that could not be read."""

    origin: str
    """File, and entry or byte offset in it."""
    reason: str

    def __str__(self) -> str:
        return f"{self.origin}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A batch and the faults that occurred while it was prepared.

    Workers return faults instead of raising, because an exception that crosses a process
    boundary arrives as text with a traceback.
    """

    batch: Batch
    faults: Sequence[Fault] = field(default=())


class SampleSet(Protocol):
    """Samples that the loader can fetch by key, in the main process or in a worker."""

    def __len__(self) -> int:
        """Number of samples per epoch."""
        ...

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        """The batch for these keys, in order; deterministic in keys and seed."""
        ...


@runtime_checkable
class Fingerprinted(Protocol):
    """Data whose items can be compared without reading them."""

    @property
    def fingerprint(self) -> str:
        """The same for the same items in the same order, wherever they are stored."""
        ...


@runtime_checkable
class ReadsAhead(Protocol):
    """Data that benefits from knowing which items are read next, such as that of a store."""

    def read_ahead(self, items: Sequence[int]) -> None:
        """Prefetch some items, which are then read one by one."""
        ...


def read_ahead(data: object, items: Sequence[int]) -> None:
    """Tell data which items are read next, if it can use that."""
    if isinstance(data, ReadsAhead):
        data.read_ahead(items)


def fingerprint_of(data: object) -> str:
    """The fingerprint of a source or set; empty if it has none."""
    return data.fingerprint if isinstance(data, Fingerprinted) else ""


def fingerprint(*contents: bytes) -> str:
    """A fingerprint of what identifies the items, such as their names, labels and sizes."""
    digest = hashlib.sha256()
    for content in contents:
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Record:
    """One undecoded sample of an image source."""

    encoded: bytes
    label: int
    origin: str
    """File, and entry or byte offset in it, for messages."""
    boxes: Sequence[tuple[float, float, float, float]] = ()
    """Annotated objects as relative (ymin, xmin, ymax, xmax)."""


class ImageSource(Protocol):
    """Undecoded images with labels, addressed by index: a folder, a zip, TFRecord shards."""

    @property
    def classes(self) -> Sequence[str]:
        """Class names in label order; empty if the source does not know them (TFRecord)."""
        ...

    def __len__(self) -> int: ...

    def read(self, index: int) -> Record:
        """One record. Raises `CorruptRecord` if the bytes cannot be read."""
        ...


class CorruptRecord(Exception):
    """A sample that cannot be read or decoded.

    Args:
        origin: File, and entry or byte offset in it.
        reason: What is wrong, or the error itself.

    Attributes:
        fault: Both, as runs count and report them.
    """

    def __init__(self, origin: str, reason: str | Exception) -> None:
        if isinstance(reason, OSError):
            reason = f"cannot be read: {system_reason(reason)}"
        self.fault = Fault(origin=origin, reason=str(reason))
        super().__init__(str(self.fault))
