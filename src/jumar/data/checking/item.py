"""What a check records about an item of any kind of data set."""

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
        fault: Why it cannot be used; everything else is then missing.
        content: Hash of its bytes.
        meaning: Hash of what they decode to, which another encoding or spelling may share.
        label: Its target; items with the same content should have the same.
        classes: The classes that it counts for.
        size: Sizes compared with those of other items, by name: width, height, duration, length.
        traits: What may set it apart, such as `grey` or `stereo`.
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
    """The items of a part; read from several threads."""

    def __len__(self) -> int: ...

    def item(self, index: int) -> Item:
        """Everything about an item; an unreadable one is an item with a fault."""
        ...


@dataclass(frozen=True, kw_only=True)
class CheckedPart:
    """A part of a data set to check.

    Attributes:
        name: `training` or `evaluation`.
        reader: Its items.
        classes: All classes that it should have; empty if unknown.
        faults: What was found while it was opened: labels without an image, malformed lines.
    """

    name: str
    reader: ItemReader
    classes: Sequence[str] = ()
    faults: Sequence[Fault] = field(default=())
