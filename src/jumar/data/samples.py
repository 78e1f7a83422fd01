"""The types passed between data sets and the trainer: keys, batches, sources and faults."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from jumar.ground.paths import reason as system_reason

if TYPE_CHECKING:
    import torch  # the import takes seconds, and commands that write data do not need it

Arrays = dict[str, NDArray[np.generic]]
"""The arrays of one sample, by name. An image is [height, width, channels]; a number is an array of
shape []."""

Batch = Mapping[str, "torch.Tensor"]
"""Tensors by name, whose first dimension is the sample, so that a batch can be split by slicing."""


Notice = Callable[[str], None]
"""Called with information that is only for the user, such as skipped or unpacked files."""


class SampleKey(NamedTuple):
    """A sample and its epoch, which determine its augmentation together with the seed."""

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
    """A batch and the faults that occurred while preparing it.

    Workers return faults instead of raising exceptions, because an exception of another process
    becomes a text with a traceback.
    """

    batch: Batch
    faults: Sequence[Fault] = field(default=())


class SampleSet(Protocol):
    """Samples that the loader can fetch by key, in the main process or in a worker."""

    def __len__(self) -> int:
        """Number of samples per epoch."""
        ...

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        """Return the batch for these keys, in order, as a function of keys and seed."""
        ...


@runtime_checkable
class Fingerprinted(Protocol):
    """Data whose items can be compared without reading them."""

    @property
    def fingerprint(self) -> str:
        """A text that is equal for the same items in the same order, wherever they are stored."""
        ...


@runtime_checkable
class ReadsAhead(Protocol):
    """Data that benefits from knowing which items are read next, such as data in a store."""

    def read_ahead(self, items: Sequence[int]) -> None:
        """Prefetch items that will then be read one by one."""
        ...


def read_ahead(data: object, items: Sequence[int]) -> None:
    """Prefetch the items that are read next, if the data supports it."""
    if isinstance(data, ReadsAhead):
        data.read_ahead(items)


def fingerprint_of(data: object) -> str:
    """Return the fingerprint of a source or set; empty if it has none."""
    return data.fingerprint if isinstance(data, Fingerprinted) else ""


def fingerprint(*contents: bytes) -> str:
    """Return a fingerprint of data that identify items, such as names, labels and sizes."""
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
    """Undecoded images with labels, accessed by index: a folder, a zip, TFRecord shards."""

    @property
    def classes(self) -> Sequence[str]:
        """Class names in label order; empty if the source does not know them (TFRecord)."""
        ...

    def __len__(self) -> int: ...

    def read(self, index: int) -> Record:
        """Read one record; raises `CorruptRecord` if that fails."""
        ...


class CorruptRecord(Exception):
    """A sample that cannot be read or decoded.

    Args:
        origin: File, and entry or byte offset in it.
        reason: What is wrong, or the underlying error.

    Attributes:
        fault: Origin and reason, as counted and reported by runs.
    """

    def __init__(self, origin: str, reason: str | Exception) -> None:
        if isinstance(reason, OSError):
            reason = f"cannot be read: {system_reason(reason)}"
        self.fault = Fault(origin=origin, reason=str(reason))
        super().__init__(str(self.fault))
