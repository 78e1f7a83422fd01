"""Read files of CANN, precision_tool and the TensorFlow adapter: one per tensor, or one per op.

Decoded files are numpy's, and all metadata of a tensor is in the file's name. Raw files contain a
length, a protobuf message (`toolkit.dumpdata.DumpData`) and the tensors without gaps.
"""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import torch

from jumar.data.records.wire import DELIMITED, fields, varint
from jumar.ground.errors import UserError
from jumar.ground.paths import is_file, open_to_read, read_text, unreadable
from jumar.ground.text import counted
from jumar.precision.dumps.dump import Call, Dump, Phase, Role, Value, dtype_name
from jumar.precision.dumps.tensor_files import TensorFiles, read_npy

_TAIL: Final = r"\.\d+(?:\.\d+)?\.(?P<time>\d{16})(?:\.\d+)*"
RAW: Final = re.compile(rf"(?P<type>\w+)\.(?P<name>.+?){_TAIL}")
DECODED: Final = re.compile(
    rf"(?P<type>\w+)\.(?P<name>.+?){_TAIL}\.(?P<role>input|output)\.(?P<place>\d+)\.npy"
)
GOLDEN: Final = re.compile(r"(?P<name>.+)\.(?P<place>\d+)\.(?P<time>\d{16})\.npy")
_DTYPES: Final = {
    1: torch.float32,
    2: torch.float16,
    3: torch.int8,
    4: torch.uint8,
    6: torch.int16,
    7: torch.int32,
    8: torch.int64,
    11: torch.bool,
    12: torch.float64,
    27: torch.bfloat16,
    34: torch.float8_e5m2,
    35: torch.float8_e4m3fn,
}
_INPUT, _OUTPUT, _BUFFER, _SPACE = 4, 3, 5, 8
"""Fields of a raw file's message."""
_SIZE_FIELDS: Final = {_INPUT: 5, _OUTPUT: 6, _BUFFER: 2, _SPACE: 2}
"""The field with the size in bytes, in each of these fields."""
_MAX_MESSAGE_BYTES: Final = 1 << 26


@dataclass
class _PartialOp:
    """An op whose files are being read."""

    op: str
    layer: str
    time: int
    values: list[Value] = field(default_factory=list)


def read_decoded(folder: Path, files: Sequence[Path]) -> Dump:
    """Read decoded tensors of an NPU, or those of TensorFlow.

    Args:
        folder: The folder of the files.
        files: The `.npy` files.

    Raises:
        UserError: A file cannot be read.
    """
    mapping = _mapping(folder / "mapping.csv")
    ops: dict[tuple[str, str, str], _PartialOp] = {}
    num_ignored = 0
    framework = "tensorflow"
    for path in files:
        name = mapping.get(path.name, path.name)
        decoded = DECODED.fullmatch(name)
        match = decoded or GOLDEN.fullmatch(name)
        if match is None:
            num_ignored += 1
            continue
        framework = "" if decoded else framework
        op = match["type"] if decoded else ""
        # The outputs of a TensorFlow op have different times.
        key = (op, match["name"], match["time"] if decoded else "")
        partial_op = ops.setdefault(key, _PartialOp(op, match["name"], int(match["time"])))
        partial_op.time = min(partial_op.time, int(match["time"]))
        role: Role = "input" if decoded and match["role"] == "input" else "output"
        tensor = read_npy(path, header_only=True)
        partial_op.values.append(
            Value(
                role=role,
                name=str(int(match["place"])),
                dtype=dtype_name(tensor.dtype),
                shape=tuple(tensor.shape),
                tensor=path.name,
            )
        )
    notices = [f"{counted(num_ignored, 'file')} with other names ignored."] if num_ignored else []
    return Dump(
        where=folder,
        tool="TensorFlow" if framework else "CANN, decoded",
        framework=framework,
        calls=_calls(ops.values()),
        tensors=TensorFiles({path.name: path for path in files}),
        notices=notices,
    )


def read_raw(folder: Path, files: Sequence[Path]) -> Dump:
    """Read raw dumps of an NPU.

    Args:
        folder: The folder of the files.
        files: The files, one per op.

    Raises:
        UserError: A file is truncated or not a dump.
    """
    mapping = _mapping(folder / "mapping.csv")
    ops: dict[tuple[str, str, str], _PartialOp] = {}
    blobs: dict[str, _Blob] = {}
    notices: list[str] = []
    for path in files:
        match = RAW.fullmatch(mapping.get(path.name, path.name))
        if match is None:
            notices.append(f"{path.name} is not named like a dump; ignored.")
            continue
        op = _PartialOp(match["type"], match["name"], int(match["time"]))
        ops[op.op, op.layer, match["time"]] = op
        for role, blob in _raw_tensors(path):
            name = f"{path.name}:{role}.{blob.number}"
            if blob.dtype is None:
                notices.append(f"{name} has an unknown dtype; ignored.")
                continue
            blobs[name] = blob
            op.values.append(
                Value(
                    role=role,
                    name=str(blob.number),
                    dtype=dtype_name(blob.dtype),
                    shape=blob.shape,
                    tensor=name,
                )
            )
    return Dump(
        where=folder,
        tool="CANN",
        calls=_calls(ops.values()),
        tensors=_Blobs(blobs),
        notices=notices,
    )


@dataclass(frozen=True, slots=True)
class _Blob:
    """A tensor in a raw file: its position, dtype and shape."""

    path: Path
    number: int
    dtype: torch.dtype | None
    shape: tuple[int, ...]
    begin: int
    size: int


class _Blobs:
    """The tensors of raw files.

    Args:
        blobs: The tensors by name.
    """

    def __init__(self, blobs: Mapping[str, _Blob]) -> None:
        self._blobs = blobs

    def read(self, name: str) -> torch.Tensor:
        """See `Tensors.read`."""
        blob = self._blobs.get(name)
        if blob is None or blob.dtype is None:
            raise UserError(f"the dump contains no tensor '{name}'")
        try:
            with open_to_read(blob.path) as file:
                file.seek(blob.begin)
                content = bytearray(file.read(blob.size))
        except OSError as error:
            raise unreadable(blob.path, error) from error
        if len(content) != math.prod(blob.shape) * blob.dtype.itemsize:
            raise UserError(
                f"the tensor {name} has {blob.size} bytes, which contradicts its shape",
                where=str(blob.path),
            )
        if not content:
            return torch.empty(blob.shape, dtype=blob.dtype)
        return torch.frombuffer(content, dtype=blob.dtype).reshape(blob.shape)


def _raw_tensors(path: Path) -> Iterator[tuple[Role, _Blob]]:
    """Yield the tensors of a raw file: inputs, then outputs."""
    try:
        with open_to_read(path) as file:
            length = int.from_bytes(file.read(8), "little")
            if length > _MAX_MESSAGE_BYTES:
                raise ValueError(f"its message would have {length} bytes")
            message = file.read(length)
            end = file.seek(0, io.SEEK_END)
        if len(message) < length:
            raise ValueError(f"its message has {len(message)} of {length} bytes")
        begin = 8 + length
        parts = [
            (number, start, stop)
            for number, wire, start, stop in fields(message, 0, length)
            if wire == DELIMITED
        ]
        for field_number, size_field in _SIZE_FIELDS.items():
            descriptions = [part for part in parts if part[0] == field_number]
            for number, (_, start, stop) in enumerate(descriptions):
                dtype, shape, size = _description(message, start, stop, size_field)
                if field_number in (_INPUT, _OUTPUT):
                    role: Role = "input" if field_number == _INPUT else "output"
                    yield role, _Blob(path, number, _DTYPES.get(dtype), shape, begin, size)
                begin += size
        if begin > end:
            raise ValueError(f"it has {end} of {begin} bytes")
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:
        raise UserError(
            f"is truncated, or not a dump of CANN: {error}", where=str(path), todo="Copy it again."
        ) from error


def _description(
    message: bytes, start: int, stop: int, size_field: int
) -> tuple[int, tuple[int, ...], int]:
    """Return the number of a tensor's dtype, its shape and its size in bytes."""
    dtype = size = 0
    shape: list[int] = []
    for number, wire, begin, end in fields(message, start, stop):
        if number == 1 and wire != DELIMITED:
            dtype = varint(message, begin, end)[0]
        elif number == size_field and wire != DELIMITED:
            size = varint(message, begin, end)[0]
        elif number == 3 and wire == DELIMITED:
            for inner_number, inner_wire, inner_begin, inner_end in fields(message, begin, end):
                if inner_number != 1:
                    continue
                position = inner_begin
                while position < inner_end:
                    extent, position = varint(message, position, inner_end)
                    shape.append(extent)
                    if inner_wire != DELIMITED:
                        break
    return dtype, tuple(shape), size


def _calls(ops: Iterable[_PartialOp]) -> list[Call]:
    calls: list[Call] = []
    numbers: Counter[tuple[str, str]] = Counter()
    for op in sorted(ops, key=lambda op: op.time):
        phase: Phase = "backward" if op.layer.startswith("gradients") else "forward"
        values = sorted(op.values, key=lambda value: (value.role, int(value.name)))
        calls.append(
            Call(
                kind="op",
                op=op.op,
                layer=op.layer,
                number=numbers[op.op, op.layer],
                phase=phase,
                values=tuple(values),
                cann=op.op,
            )
        )
        numbers[op.op, op.layer] += 1
    return calls


def _mapping(path: Path) -> Mapping[str, str]:
    """Return the original names of files whose names were too long for the file system."""
    if not is_file(path):
        return {}
    rows = csv.reader(io.StringIO(read_text(path)))
    return {row[0]: row[1] for row in rows if len(row) > 1}
