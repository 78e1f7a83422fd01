"""Items of a data set as the checks see them, for all kinds of data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jumar.data.samples import Fault


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One image, clip, text or question; about 500 bytes, regardless of file size.

    Attributes:
        where: File, and entry, line or byte offset in it.
        fault: Why it cannot be used; all other attributes are then empty.
        content: Hash of its bytes.
        meaning: Hash of its decoded content, which may be equal for different encodings.
        label: Its target; items with the same content should have the same label.
        classes: The classes that it is counted in.
        size: Sizes to compare with other items, by name: width, height, duration, length.
        traits: Properties that few other items may share, such as `grey` or `stereo`.
        look: uint8 [256], an image of 16 x 16 grey pixels; None for other kinds.
    """

    where: str
    fault: str = ""
    content: bytes = b""
    meaning: bytes = b""
    label: str = ""
    classes: tuple[str, ...] = ()
    size: tuple[tuple[str, float], ...] = ()
    traits: tuple[str, ...] = ()
    look: NDArray[np.uint8] | None = None


class ItemReader(Protocol):
    """Reads the items of a part; must be safe to use from several threads."""

    def __len__(self) -> int: ...

    def item(self, index: int) -> Item:
        """Return an item; if it cannot be read, an item with a fault."""
        ...


@dataclass(frozen=True, kw_only=True)
class CheckedPart:
    """A part of a data set to check.

    Attributes:
        name: `training` or `evaluation`.
        reader: Reader of its items.
        classes: All classes that it should have; empty if unknown.
        faults: Faults found while opening it: labels without an image, malformed lines.
    """

    name: str
    reader: ItemReader
    classes: Sequence[str] = ()
    faults: Sequence[Fault] = field(default=())
