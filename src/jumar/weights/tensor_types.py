"""TensorFlow's element types and shapes, as stored in its files.

Sources: TensorFlow, core/framework/{types,tensor_shape}.proto.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumar.data.records.wire import DELIMITED, VARINT, fields, varint
from jumar.ground.text import plain_text

Array = NDArray[Any]

STRING = 7
BOOL = 10
BFLOAT16 = 14
HALF = 19
MAX_AXES = 32
"""The limit of numpy 1; TensorFlow's variables have at most 8."""
_INT64 = 2**63


@dataclass(frozen=True, kw_only=True)
class ElementType:
    """One of TensorFlow's element types.

    Attributes:
        number: Its number in `DataType`.
        name: TensorFlow's name for it.
        stored: The type of an element in a file; object for strings, which have no fixed size.
    """

    number: int
    name: str
    stored: np.dtype[Any]

    @property
    def is_string(self) -> bool:
        """Whether the elements are byte strings of any length."""
        return self.number == STRING

    @property
    def in_numpy(self) -> bool:
        """Whether numpy has the type; if not, it is stored as integers or bits of another type."""
        return self.number not in (STRING, BOOL, BFLOAT16) and not self.name.startswith("q")

    def values(self, stored: Array) -> Array:
        """Convert stored values to a type that numpy has; bfloat16 becomes float32, exactly."""
        if self.number == BFLOAT16:
            return (stored.astype("<u4") << 16).view("<f4")
        if self.number == BOOL:
            return stored != 0
        return stored


@dataclass(frozen=True, kw_only=True)
class TensorEntry:
    """The name, shape and element type of a tensor, known before any value is read."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Size of the values in bytes; 0 for strings, whose lengths are unknown until read."""
        return self.elements * _ITEM_BYTES.get(self.dtype, 0)


ELEMENT_TYPES = {
    number: ElementType(number=number, name=name, stored=np.dtype(stored))
    for number, name, stored in (
        (1, "float32", "<f4"),
        (2, "float64", "<f8"),
        (3, "int32", "<i4"),
        (4, "uint8", "u1"),
        (5, "int16", "<i2"),
        (6, "int8", "i1"),
        (STRING, "string", "O"),
        (8, "complex64", "<c8"),
        (9, "int64", "<i8"),
        (BOOL, "bool", "u1"),
        (11, "qint8", "i1"),
        (12, "quint8", "u1"),
        (13, "qint32", "<i4"),
        (BFLOAT16, "bfloat16", "<u2"),
        (15, "qint16", "<i2"),
        (16, "quint16", "<u2"),
        (17, "uint16", "<u2"),
        (18, "complex128", "<c16"),
        (HALF, "half", "<f2"),
        (22, "uint32", "<u4"),
        (23, "uint64", "<u8"),
    )
}

_ITEM_BYTES = {
    kind.name: kind.stored.itemsize for kind in ELEMENT_TYPES.values() if not kind.is_string
} | {"float8_e4m3": 1, "float8_e5m2": 1}


def element_type(number: int) -> ElementType:
    """Return the element type with that number.

    Raises:
        ValueError: It does not exist, or cannot be stored (a reference, a resource, a variant).
    """
    kind = ELEMENT_TYPES.get(number)
    if kind is None:
        raise ValueError(f"the element type {number} is not supported")
    return kind


def decode_shape(data: bytes, begin: int, end: int) -> tuple[int, ...]:
    """Decode the sizes in a TensorShapeProto.

    Raises:
        ValueError: The bytes are not a shape, a size is negative or unknown, or no array can have
            that shape.
    """
    sizes: list[int] = []
    for field, wire, start, stop in fields(data, begin, end):
        if field == 3 and wire == VARINT and varint(data, start, stop)[0]:
            raise ValueError("the number of axes is unknown")
        if field == 2 and wire == DELIMITED:
            sizes.append(_decode_size(data, start, stop))
            if len(sizes) > MAX_AXES:
                raise ValueError(f"the shape has more than {MAX_AXES} axes")
    # Numpy multiplies the sizes, also those next to a zero, and must not overflow.
    if math.prod(max(size, 1) for size in sizes) >= _INT64:
        raise ValueError(f"the shape {shape_text(sizes)} does not fit into memory")
    return tuple(sizes)


def printable(name: bytes) -> str:
    """Return a tensor's name as text, with terminal control characters escaped."""
    return plain_text(name.decode("utf-8", "backslashreplace"))


def shape_text(shape: "tuple[int, ...] | list[int]") -> str:
    """Return a shape in the form `3x3x64`, or `scalar` if it has no axes."""
    return "x".join(str(size) for size in shape) or "scalar"


def _decode_size(data: bytes, begin: int, end: int) -> int:
    size = 0
    for field, wire, start, stop in fields(data, begin, end):
        if field == 1 and wire == VARINT:
            size = varint(data, start, stop)[0]
    if size >= _INT64:
        raise ValueError("the size of an axis is negative or unknown")
    return size
