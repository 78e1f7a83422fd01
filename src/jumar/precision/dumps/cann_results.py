"""Read results of Ascend's tools: msaccucmp's `result_*.csv`, and decoded overflow records.

Columns are found by name, because releases add and drop them. `NaN` means not compared, but `nan` a
compared value that is not a number, for instance after an overflow.
"""

import csv
import functools
import io
import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jumar.ground.errors import UserError
from jumar.ground.json_text import parse_json
from jumar.ground.paths import read_bytes, read_text

_REQUIRED_COLUMNS: Final = ("Index", "OpType", "NPUDump", "GroundTruth", "TensorIndex")
_TEXTS: Final = frozenset(
    {
        *_REQUIRED_COLUMNS,
        "OpSequence",
        "DataType",
        "Address",
        "Shape",
        "OverFlow",
        "CompareFailReason",
    }
)
_CORES: Final = ("AI Core", "AIC", "AIV")
"""Units whose status has the bits below; that of AI CPUs and SDMA is not documented."""
_BITS: Final = {
    0x8: "sign inversion",
    0x10: "integer overflow",
    0x20: "float overflow",
    0x80: "negative number to unsigned",
    0x100: "overflow of a cast to fp16 or integer",
    0x400: "overflow of an accumulation in a matrix product",
}
_ATOMIC: Final = (
    "overflow of an atomic addition",
    "underflow of an atomic addition",
    "atomic addition of NaN",
    "atomic addition to NaN",
    "atomic addition of NaN to NaN",
)
_ATOMIC_CODES: Final = {"DHA Atomic Add": (8, 0xFF, 9), "L2 Atomic Add": (16, 0b111, 1)}
"""The position of the code in the status, its bits, and the code of the first meaning, as in
precision_tool. By CANN's documents, any status but 0 is an overflow."""
_RECORD: Final = re.compile(r"Opdebug\.Node_OpDebug\.(?P<task>\d+)(?:\.(?P<stream>\d{1,15}))?\..*")
"""Older releases omit the stream; the time that follows has 16 digits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AscendResult:
    """A row in a result of msaccucmp.

    Attributes:
        op_type: CANN op type.
        npu: Name of the op on the NPU.
        golden: Name of the op's partner; empty if it has none.
        tensor: `input` or `output`, with the index, as `output:0`; empty if unmatched.
        overflowed: Whether the NPU's value reached float16's maximum; None if not checked.
        numbers: The result of each metric, possibly NaN; without metrics that were not computed.
        reason: The reason why it was not compared, or not by one of the metrics; empty otherwise.
    """

    op_type: str
    npu: str
    golden: str
    tensor: str
    overflowed: bool | None
    numbers: Mapping[str, float]
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Overflow:
    """An overflow reported by a device.

    Attributes:
        unit: The reporting unit, such as `AIC` or `DHA Atomic Add`.
        task: Number of the task, which identifies the op's dump; None if unknown.
        stream: Number of the stream; None if unknown.
        status: The status bits.
        meanings: The meanings of the bits that are set.
        is_task_from_name: Whether the record has no task and the file's name was used instead, as
            in precision_tool. By CANN's documents, that number need not be the op's.
    """

    unit: str
    task: int | None
    stream: int | None
    status: int
    meanings: Sequence[str]
    is_task_from_name: bool = False


def is_record(path: Path) -> bool:
    """Return whether a file is JSON, as overflow records are, rather than a table.

    Raises:
        UserError: The file cannot be read, or is neither.
    """
    start = read_bytes(path, 4096).lstrip()
    if b"\0" in start:
        raise UserError(
            "is neither a result of msaccucmp nor a decoded overflow record",
            where=str(path),
            todo="Decode an Opdebug file first: python3 msaccucmp.py convert -d FILE -out FOLDER",
        )
    return start.startswith((b"{", b"["))


def read_results(path: Path) -> list[AscendResult]:
    """Read the rows of a `result_*.csv`.

    Raises:
        UserError: The file cannot be read, or has other columns.
    """
    try:
        # Spreadsheets save UTF-8 with a mark at the beginning.
        text = read_text(path).removeprefix("\ufeff")
        header, *rows = [*csv.reader(io.StringIO(text))] or [[]]
    except csv.Error as error:
        raise UserError(f"is not CSV: {error}", where=str(path)) from error
    if not set(_REQUIRED_COLUMNS) <= set(header):
        raise UserError(
            "is not a result of msaccucmp",
            where=str(path),
            todo=f"Expected: a CSV file with the columns {', '.join(_REQUIRED_COLUMNS)}.",
        )
    return [_result(header, row, f"{path}:{number}") for number, row in enumerate(rows, 2) if row]


def read_overflow(path: Path) -> list[Overflow]:
    """Read a decoded overflow record, without units whose status is 0.

    Raises:
        UserError: The file cannot be read, is truncated, or is not an overflow record.
    """
    try:
        content = parse_json(read_text(path))
    except ValueError as error:
        raise UserError(
            f"is truncated or not JSON: {error}", where=str(path), todo="Decode it again."
        ) from error
    match = _RECORD.fullmatch(path.name)
    task = int(match["task"]) if match else None
    stream = int(match["stream"]) if match and match["stream"] else None
    try:
        return [
            Overflow(
                unit=unit,
                task=_number_or(record.get("task_id"), task),
                stream=_number_or(record.get("stream_id"), stream),
                status=status,
                meanings=_meanings(unit, status),
                is_task_from_name=(
                    task is not None and _number_or(record.get("task_id"), None) is None
                ),
            )
            for unit, record in _records(content)
            if (status := _status(record.get("status", 0)))
        ]
    except (
        *(AttributeError, KeyError, TypeError, ValueError),
        *(OverflowError, RecursionError),
    ) as error:
        raise UserError(
            f"is not an overflow record: {type(error).__name__} {error}",
            where=str(path),
            todo="Expected: a decoded Opdebug file, with 'acc_list' or one status per unit.",
        ) from error


def _result(header: Sequence[str], row: Sequence[str], where: str) -> AscendResult:
    if len(row) != len(header):
        raise UserError(f"has {len(row)} cells instead of {len(header)}", where=where)
    cells = dict(zip(header, row, strict=True))
    tensor_index = re.fullmatch(r".*:(input|output):(\d+)", cells["TensorIndex"])
    overflowed = {"YES": True, "NO": False}.get(cells.get("OverFlow", ""))
    return AscendResult(
        op_type=cells["OpType"],
        npu=cells["NPUDump"],
        golden="" if cells["GroundTruth"] in ("*", "NaN") else cells["GroundTruth"],
        tensor=f"{tensor_index[1]}:{tensor_index[2]}" if tensor_index else "",
        overflowed=overflowed,
        numbers={
            name: number
            for name, text in cells.items()
            if name not in _TEXTS and (number := _number(text)) is not None
        },
        reason=cells.get("CompareFailReason", ""),
    )


def _number(text: str) -> float | None:
    if text == "NaN":
        return None
    try:
        number = float(text)
    except ValueError:
        return None  # StandardDeviation contains two pairs.
    return number + 0.0 if math.isfinite(number) else number


def _records(content: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the units of either format: one record with `acc_list`, or one object per unit."""
    if isinstance(content, dict) and "acc_list" in content:
        records = content["acc_list"]
        for entry in records if isinstance(records, list) else [records]:
            if int(entry["valid"]):
                yield str(entry["acc_type"]), entry["data"]
        return
    parts = content if isinstance(content, list) else [content]
    for part in parts:
        for unit, record in part.items():
            yield str(unit), record


def _meanings(unit: str, status: int) -> list[str]:
    if unit in _ATOMIC_CODES:
        shift, mask, first = _ATOMIC_CODES[unit]
        number = (status >> shift & mask) - first
        return [_ATOMIC[number] if 0 <= number < len(_ATOMIC) else _ATOMIC[0]]
    return [text for bit, text in _BITS.items() if status & bit] if unit in _CORES else []


def _status(content: Any) -> int:
    if isinstance(content, list):
        return functools.reduce(operator.or_, map(_status, content), 0)
    status = int(content, 0) if isinstance(content, str) else int(content)
    if not 0 <= status < 1 << 64:
        raise ValueError("the status is not one of 64 bits")
    return status


def _number_or(content: Any, default: int | None) -> int | None:
    """Return a number, or the default if it is missing or -1."""
    return default if content is None or int(content) < 0 else int(content)
