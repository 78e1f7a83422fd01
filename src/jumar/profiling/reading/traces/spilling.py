"""Tables that are filled row by row, and moved to disk when they become large.

A list of Python objects needs some 60 bytes per field, and a trace has millions of rows. So each
batch of rows is packed into typed columns, in which texts are replaced by numbers. All but the
first batches are written to an unnamed temporary file, which vanishes however the process ends.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any, Final, Literal

import numpy as np
import polars as pl

from jumar.ground.errors import UserError

ColumnType = Literal["text", "integer", "digits"]
"""`text` is stored as a number; `digits` are integers that may be written as text."""

ROWS_PER_BATCH: Final = 16_384
BATCHES_IN_MEMORY: Final = 8
"""Number of a table's batches that stay in memory; a short trace is never written to disk."""

_MAX_INT64: Final = (1 << 63) - 1
_SAMPLE_STRIDE: Final = 16


class TextNumbers:
    """Numbers for texts, counted up from the empty text, which is 0."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}
        self._cached_column = pl.Series("texts", [""], dtype=pl.String)

    def number(self, text: str) -> int:
        """The number of a text, which is added if it is new."""
        return self._numbers.setdefault(text, len(self._numbers))

    def numbers(self, name: str, values: Sequence[Any]) -> pl.Series:
        """The numbers of many values, converted to text; None stays null."""
        numbers_by_text = self._numbers
        try:
            # Nearly all values are texts that already have a number.
            numbers = list(map(numbers_by_text.get, values))
        except TypeError:
            numbers = [None] * len(values)
        if None in numbers:
            numbers = [
                numbers_by_text.setdefault(str(value), len(numbers_by_text))
                if number is None and value is not None
                else number
                for number, value in zip(numbers, values, strict=True)
            ]
        return pl.Series(name, numbers, dtype=pl.UInt32)

    @property
    def column(self) -> pl.Series:
        """All texts, indexed by number."""
        if len(self._cached_column) != len(self._numbers):
            self._cached_column = _strings("texts", list(self._numbers))
        return self._cached_column

    def matching(self, pattern: str) -> list[int]:
        """The numbers of the texts that match a pattern."""
        return self.column.str.contains(pattern).arg_true().to_list()

    def texts_of(self, numbers: pl.Series) -> pl.Series:
        """The texts of some numbers; equal texts share memory."""
        return self.column.gather(numbers).rename(numbers.name)


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """A packed batch, in memory or at an offset in the file, with the range of its start times."""

    frame: pl.DataFrame | None
    offset: int
    length: int
    rows: int
    first_start: int
    last_start: int


class SpillingTable:
    """A table that is filled row by row, with only the first and the last batches in memory.

    Args:
        columns: The type of each column, by name; `spans` needs a column `start_ns`.
        texts: The numbers of the texts.
    """

    def __init__(self, columns: Mapping[str, ColumnType], texts: TextNumbers) -> None:
        self._columns = dict(columns)
        self._texts = texts
        self._rows: list[tuple[Any, ...]] = []
        self._batches: list[_Batch] = []
        self._packed = 0
        self._samples: list[np.ndarray] = []
        self._file: IO[bytes] | None = None
        self._file_end = 0

    def __len__(self) -> int:
        return self._packed + len(self._rows)

    def add(self, row: tuple[Any, ...]) -> None:
        """Add a row: a value for each column, in order."""
        self._rows.append(row)
        if len(self._rows) >= ROWS_PER_BATCH:
            self.pack()

    def close(self) -> None:
        """Free the disk space."""
        if self._file is not None:
            self._file.close()

    def pack(self) -> None:
        """Pack the pending rows into columns; integers beyond 64 bits become null."""
        if not self._rows:
            return
        packed = pl.DataFrame(
            [
                _packed(name, kind, values, self._texts)
                for (name, kind), values in zip(
                    self._columns.items(), zip(*self._rows, strict=True), strict=True
                )
            ]
        )
        first_start, last_start = 0, 0
        if "start_ns" in self._columns:
            starts = packed["start_ns"].to_numpy()
            first_start, last_start = int(starts.min()), int(starts.max())
            self._samples.append(starts[::_SAMPLE_STRIDE].copy())
        in_memory = len(self._batches) < BATCHES_IN_MEMORY
        offset, length = (0, 0) if in_memory else self._spill(packed)
        self._batches.append(
            _Batch(
                frame=packed if in_memory else None,
                offset=offset,
                length=length,
                rows=packed.height,
                first_start=first_start,
                last_start=last_start,
            )
        )
        self._packed += packed.height
        self._rows.clear()

    def _spill(self, packed: pl.DataFrame) -> tuple[int, int]:
        buffer = BytesIO()
        packed.write_ipc_stream(buffer, compression="lz4")
        content = buffer.getbuffer()
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="jumar-", buffering=0)  # noqa: SIM115
            self._file.seek(self._file_end)
            remaining = content
            while remaining:
                remaining = remaining[self._file.write(remaining) :]
        except OSError as error:
            self.close()
            raise UserError(
                f"cannot store the columns of a long trace: {error.strerror or error}",
                where=tempfile.gettempdir(),
                todo="Free up a twentieth of the unpacked trace's size, or use another folder: "
                "TMPDIR=/path jumar profile ...",
            ) from None
        offset, self._file_end = self._file_end, self._file_end + len(content)
        return offset, len(content)

    def frames(self, *names: str) -> Iterator[pl.DataFrame]:
        """The rows in order, a batch at a time, with texts as numbers.

        Args:
            names: The columns to return; none for all.
        """
        self.pack()
        for batch in self._batches:
            yield self._loaded(batch, names)

    def joined(self, frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """Concatenate frames of this table; without any, an empty one with its columns."""
        all_frames = list(frames)
        if all_frames:
            return pl.concat(all_frames)
        return pl.DataFrame(
            schema={
                name: pl.UInt32() if kind == "text" else pl.Int64()
                for name, kind in self._columns.items()
            }
        )

    def decoded(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A frame with numbers replaced by their texts."""
        return frame.with_columns(
            self._texts.texts_of(frame[name])
            for name in frame.columns
            if self._columns.get(name) == "text"
        )

    def spans(self, rows: int) -> Iterator[pl.DataFrame]:
        """The rows in spans of start times, and in the table's order within each span.

        For each span, only the batches with rows in it are read. Producers write roughly in order
        of time, so most batches are read once.

        Args:
            rows: Approximate number of rows per span.

        Yields:
            Frames with all columns and `row`, the index of the row in the table.
        """
        self.pack()
        if not self._batches:
            return
        starts = np.sort(np.concatenate(self._samples))
        count = max(1, round(self._packed / rows))
        edges = np.unique(starts[[len(starts) * index // count for index in range(1, count)]])
        low = -_MAX_INT64 - 1
        for high in [*(int(edge) for edge in edges), _MAX_INT64]:
            pieces: list[pl.DataFrame] = []
            row_offset = 0
            for batch in self._batches:
                if batch.last_start >= low and batch.first_start <= high:
                    frame = self._loaded(batch, ()).with_row_index("row", offset=row_offset)
                    inside = pl.col("start_ns").is_between(low, high, closed="left")
                    if high == _MAX_INT64:
                        inside = pl.col("start_ns") >= low
                    pieces.append(frame.filter(inside))
                row_offset += batch.rows
            if pieces:
                yield pl.concat(pieces)
            low = high

    def _loaded(self, batch: _Batch, names: Sequence[str]) -> pl.DataFrame:
        if batch.frame is not None:
            return batch.frame.select(names) if names else batch.frame
        assert self._file is not None
        self._file.seek(batch.offset)
        content = BytesIO(self._file.read(batch.length))
        return pl.read_ipc_stream(content, columns=list(names) or None)


def _packed(name: str, kind: ColumnType, values: Sequence[Any], texts: TextNumbers) -> pl.Series:
    if kind == "text":
        return texts.numbers(name, values)
    if kind == "digits":
        digits = [None if value is None else str(value) for value in values]
        return _strings(name, digits).cast(pl.Int64, strict=False)
    try:
        return pl.Series(name, values, dtype=pl.Int64, strict=True)
    except (TypeError, OverflowError, UnicodeEncodeError, pl.exceptions.PolarsError):
        return pl.Series(name, [_integer(value) for value in values], dtype=pl.Int64)


def _strings(name: str, texts: Sequence[str | None]) -> pl.Series:
    """A string column; unpaired surrogates, which JSON allows but UTF-8 does not, are replaced."""
    try:
        return pl.Series(name, texts, dtype=pl.String)
    except UnicodeEncodeError:
        encodable = [text and text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        return pl.Series(name, encodable, dtype=pl.String)


def _integer(value: Any) -> int | None:
    """The value as an integer, or None; old traces write ids as text."""
    if type(value) is str and len(value) < len(str(_MAX_INT64)) and value.isdecimal():
        return int(value)
    return value if type(value) is int and -_MAX_INT64 <= value <= _MAX_INT64 else None
