"""The constants of a frozen GraphDef, into which `freeze_graph` turns variables.

GraphDef {1: node}, NodeDef {1: name, 2: op, 5: attributes}; a `Const` node has an attribute
`value` with a tensor {1: element type, 2: shape, 4: raw bytes, or a list of values in the field for
its type}. If the list is shorter than the tensor, its last value is repeated. Sources: TensorFlow,
core/framework/{graph,node_def,attr_value,tensor}.proto, tensor_util's MakeNdarray.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jumar.data.records.wire import DELIMITED, VARINT, fields, varint
from jumar.ground.errors import UserError, did_you_mean
from jumar.ground.paths import is_file, missing, unreadable
from jumar.weights.tensor_types import (
    BFLOAT16,
    HALF,
    STRING,
    Array,
    ElementType,
    TensorEntry,
    decode_shape,
    element_type,
    printable,
    shape_text,
)

LARGEST_MESSAGE = 2**31
"""The limit of protobuf, and therefore of TensorFlow, in bytes."""
_LARGEST_FILL = 2**28
"""Maximum size in bytes of a constant that repeats a value: a hostile file can claim any shape."""
_CONTENT = 4
_LISTS = {
    kind: field
    for field, kinds in (
        (5, (1,)),
        (6, (2,)),
        (7, (3, 4, 5, 6, 11, 12, 13, 15, 16, 17)),
        (8, (STRING,)),
        (9, (8,)),
        (10, (9,)),
        (11, (10,)),
        (12, (18,)),
        (13, (BFLOAT16, HALF)),
        (16, (22,)),
        (17, (23,)),
    )
    for kind in kinds
}
"""The field of TensorProto that lists the values of each element type."""
_FIXED_FIELDS = {5: "<f4", 6: "<f8", 9: "<c8", 12: "<c16"}
"""The lists whose values have a fixed size, with the dtype of a value."""


@dataclass(frozen=True, kw_only=True)
class _StoredConstant:
    """The shape and type of a constant, and the position of its tensor message."""

    entry: TensorEntry
    kind: ElementType
    begin: int
    end: int


class FrozenConstants(Mapping[str, Array]):
    """The constants of a graph by name; arrays are created on demand.

    Most arrays are read-only: views of the file's bytes, or of one repeated value.

    Args:
        data: The serialized GraphDef, available as the attribute `data`.
        where: The file's name, for error messages.

    Raises:
        UserError: The bytes are not a frozen graph.
    """

    def __init__(self, data: bytes, where: str) -> None:
        self.data = data
        self._where = where
        self._constants: dict[str, _StoredConstant] = {}
        try:
            for begin, end in _nodes(data):
                self._add_node(begin, end)
        except ValueError as error:
            raise UserError(
                f"is not a frozen TensorFlow graph: {error}",
                where=where,
                todo="Copy it again, or use the .pb file that freeze_graph wrote.",
            ) from None
        if not self._constants:
            raise UserError(
                "contains no constants",
                where=where,
                todo="The weights of a frozen graph are Const nodes; those of a .meta file or an "
                "unfrozen .pb are in a checkpoint beside it.",
            )

    def __getitem__(self, name: str) -> Array:
        constant = self._constants[name]
        try:
            return _decode_values(self.data, constant)
        except ValueError as error:
            raise UserError(
                f"cannot be read: {error}",
                where=f"{self._where}, constant '{name}'",
                todo="The file is damaged: copy or download it again.",
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._constants)

    def __len__(self) -> int:
        return len(self._constants)

    def names(self) -> list[str]:
        """Return the constants' names, in the order of the graph."""
        return list(self._constants)

    def read(self, name: str) -> Array:
        """Return the values of a constant; unlike `self[name]`, suggests a similar name."""
        return self[self.entry(name).name]

    def entry(self, name: str) -> TensorEntry:
        """Return the shape and element type of a constant.

        Raises:
            UserError: There is no constant with that name.
        """
        if name not in self._constants:
            raise UserError(
                f"there is no constant '{name}'",
                where=self._where,
                todo=did_you_mean(name, self._constants).strip(),
            )
        return self._constants[name].entry

    def _add_node(self, begin: int, end: int) -> None:
        constant = find_constant(self.data, begin, end)
        if constant is None:
            return
        name, start, stop = constant
        if name in self._constants:
            raise ValueError(f"two constants are called '{name}'")
        kind, shape = _type_and_shape(self.data, name, start, stop)
        if kind is not None:
            entry = TensorEntry(name=name, shape=shape, dtype=kind.name)
            self._constants[name] = _StoredConstant(entry=entry, kind=kind, begin=start, end=stop)


def read_constants(path: Path) -> FrozenConstants:
    """Read the constants of a frozen GraphDef, in the order of the graph.

    Args:
        path: A `.pb` file written by `freeze_graph` or `convert_variables_to_constants`.

    Raises:
        UserError: The file cannot be read or is not a frozen graph.
    """
    try:
        if not is_file(path):
            raise missing(path, "file")
        size = path.stat().st_size
        if size >= LARGEST_MESSAGE:
            raise UserError(
                f"is not a graph: {size} bytes exceed the limit of a protobuf message",
                where=str(path),
            )
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    return FrozenConstants(data, str(path))


def _nodes(data: bytes) -> Iterator[tuple[int, int]]:
    for field, wire, begin, end in fields(data, 0, len(data)):
        if field == 1 and wire == VARINT:
            raise ValueError(
                "it is a SavedModel, whose weights are the checkpoint variables/variables beside it"
            )
        if field == 1 and wire == DELIMITED:
            yield begin, end


def find_constant(data: bytes, begin: int, end: int) -> tuple[str, int, int] | None:
    """Return the name and tensor position of a Const node; None for any other node."""
    name, op = "", b""
    attributes: list[tuple[int, int]] = []
    for field, wire, start, stop in fields(data, begin, end):
        if wire != DELIMITED:
            continue
        if field == 1:
            name = printable(data[start:stop])
        elif field == 2:
            op = data[start:stop]
        elif field == 5:
            attributes.append((start, stop))
    if op != b"Const":
        return None
    for attribute in attributes:
        tensor = find_tensor(data, *attribute)
        if tensor is not None:
            return name, *tensor
    raise ValueError(f"the constant '{name}' has no value")


def find_tensor(data: bytes, begin: int, end: int) -> tuple[int, int] | None:
    """Return the position of the tensor in a node's attribute; None if it is not `value`."""
    key = b""
    value = (0, 0)
    for field, wire, start, stop in fields(data, begin, end):
        if field == 1 and wire == DELIMITED:
            key = data[start:stop]
        elif field == 2 and wire == DELIMITED:
            value = start, stop
    if key != b"value":
        return None
    for field, wire, start, stop in fields(data, *value):
        if field == 8 and wire == DELIMITED:
            return start, stop
    return None


def _type_and_shape(
    data: bytes, name: str, begin: int, end: int
) -> tuple[ElementType | None, tuple[int, ...]]:
    number, shape = 0, ()
    try:
        for field, wire, start, stop in fields(data, begin, end):
            if field == 1 and wire == VARINT:
                number = varint(data, start, stop)[0]
            elif field == 2 and wire == DELIMITED:
                shape = decode_shape(data, start, stop)
        # A graph may have constants of types that cannot be weights (variants, resources).
        return (element_type(number) if number in _LISTS else None), shape
    except ValueError as error:
        raise ValueError(f"constant '{name}': {error}") from None


def _decode_values(data: bytes, constant: _StoredConstant) -> Array:
    content: bytes | None = None
    spans: list[tuple[int, int, int]] = []
    list_field = _LISTS[constant.kind.number]
    for field, wire, start, stop in fields(data, constant.begin, constant.end):
        if field == _CONTENT and wire == DELIMITED:
            content = data[start:stop]
        elif field == list_field:
            spans.append((wire, start, stop))
    if constant.kind.is_string:
        texts = [data[start:stop] for wire, start, stop in spans if wire == DELIMITED]
        values = np.array([*texts, None], dtype=object)[:-1]
    elif content:
        return _from_content(content, constant)
    else:
        values = _decode_list(data, list_field, spans, constant.kind)
    if not len(values):
        # TensorFlow omits fields that are zero or empty.
        values = np.array([b"" if constant.kind.is_string else 0], dtype=constant.kind.stored)
        values = values[: constant.entry.elements]
    return _fill_shape(constant.kind.values(values), constant.entry.shape)


def _from_content(content: bytes, constant: _StoredConstant) -> Array:
    num_bytes = constant.entry.elements * constant.kind.stored.itemsize
    if len(content) != num_bytes:
        raise ValueError(
            f"it has {len(content)} bytes, but the shape {shape_text(constant.entry.shape)} "
            f"needs {num_bytes}"
        )
    array = np.frombuffer(content, dtype=constant.kind.stored).reshape(constant.entry.shape)
    return constant.kind.values(array)


def _decode_list(
    data: bytes, field: int, spans: list[tuple[int, int, int]], kind: ElementType
) -> Array:
    """Decode a list of values, packed or not, in their stored type."""
    if field in _FIXED_FIELDS:
        parts = b"".join(data[start:stop] for wire, start, stop in spans if wire != VARINT)
        size = np.dtype(_FIXED_FIELDS[field]).itemsize
        if len(parts) % size:
            raise ValueError(f"its list has {len(parts)} bytes, which is not a multiple of {size}")
        return np.frombuffer(parts, dtype=_FIXED_FIELDS[field])
    numbers: list[int] = []
    for wire, position, stop in spans:
        while wire in (VARINT, DELIMITED) and position < stop:
            value, position = varint(data, position, stop)
            numbers.append(value & 2**64 - 1)
    unsigned = np.array(numbers, dtype=np.uint64)
    if kind.number == HALF:
        return unsigned.astype("<u2").view(kind.stored)
    return unsigned.astype(kind.stored)


def _fill_shape(values: Array, shape: tuple[int, ...]) -> Array:
    """Return a list of values as a tensor, with the last value repeated to fill the shape."""
    count = math.prod(shape)
    if len(values) == count:
        return values.reshape(shape)
    if len(values) > count:
        raise ValueError(f"it has {len(values)} values, too many for {shape_text(shape)}")
    if count * values.itemsize > _LARGEST_FILL:
        raise ValueError(f"the shape {shape_text(shape)} is too large for a repeated value")
    if len(values) < 2:
        # A view of the single value takes no memory.
        return np.broadcast_to(values.reshape(()), shape)
    full = np.full(count, values[-1], dtype=values.dtype)
    full[: len(values)] = values
    return full.reshape(shape)
