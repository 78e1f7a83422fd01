"""Replace weights in a frozen graph: only the values of some constants change.

A graph is more than weights: the computation, a front end, the names of inputs and outputs. So none
is created from scratch here: an existing graph is copied node by node, and unknown parts are kept
byte for byte.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from jumar.data.records.wire import DELIMITED, delimited, encode_varint, fields
from jumar.ground.errors import UserError
from jumar.ground.files import written_beside
from jumar.ground.paths import exists
from jumar.weights.frozen_graph import LARGEST_MESSAGE, FrozenConstants, find_constant, find_tensor
from jumar.weights.tensor_types import Array, shape_text

_FLOAT32 = 1
"""TensorFlow's number for the element type."""


def with_constants(graph: FrozenConstants, values: Mapping[str, Array]) -> Iterator[bytes]:
    """Yield the serialized graph with new values for some of its constants, piece by piece.

    Args:
        graph: An existing graph.
        values: The new values by constant name; float32, with the shapes of the old ones.

    Raises:
        ValueError: The shape or element type of a value differs from its constant's.
    """
    for name, value in values.items():
        entry = graph.entry(name)
        if (entry.shape, entry.dtype) != (value.shape, str(value.dtype)) or value.dtype != "<f4":
            raise ValueError(
                f"'{name}' is {entry.dtype} {shape_text(entry.shape)} and cannot hold "
                f"{value.dtype} {shape_text(value.shape)}"
            )
    data, previous_end = graph.data, 0
    for field, wire, begin, end in fields(data, 0, len(data)):
        constant = find_constant(data, begin, end) if (field, wire) == (1, DELIMITED) else None
        if constant is not None and constant[0] in values:
            yield delimited(1, _node(data, begin, end, _tensor(values[constant[0]])))
        else:
            yield data[previous_end:end]
        previous_end = end


def write_frozen(path: Path, graph: FrozenConstants, values: Mapping[str, Array]) -> None:
    """Write a graph with new values for some of its constants.

    Args:
        path: A file that does not exist yet.
        graph: An existing graph.
        values: As in `with_constants`.

    Raises:
        UserError: The file exists, cannot be written, or would be longer than a protobuf
            message.
    """
    if exists(path):
        raise UserError(f"'{path}' already exists", where="--out", todo="Choose another file name.")
    with written_beside(path, what="the graph cannot be written") as temporary:
        size = 0
        with temporary.open("wb") as file:
            for piece in with_constants(graph, values):
                size += file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if size >= LARGEST_MESSAGE:
            raise UserError(
                f"would have {size:,} bytes, but TensorFlow cannot read a graph of 2 GiB or more",
                where=str(path),
            )


def _node(data: bytes, begin: int, end: int, tensor: bytes) -> bytes:
    """Return a node with another tensor in its attribute `value`."""
    pieces: list[bytes] = []
    previous_stop = begin
    for field, wire, start, stop in fields(data, begin, end):
        is_attribute = field == 5 and wire == DELIMITED
        if is_attribute and find_tensor(data, start, stop) is not None:
            attribute = delimited(1, b"value") + delimited(2, delimited(8, tensor))
            pieces.append(delimited(5, attribute))
        else:
            pieces.append(data[previous_stop:stop])
        previous_stop = stop
    return b"".join(pieces)


def _tensor(value: Array) -> bytes:
    axes = b"".join(delimited(2, b"\x08" + encode_varint(size)) for size in value.shape)
    array = np.ascontiguousarray(value, dtype="<f4")
    return b"\x08" + encode_varint(_FLOAT32) + delimited(2, axes) + delimited(4, array.tobytes())
