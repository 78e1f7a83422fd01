"""Rows collected one at a time: columns of numbers, on disk if there are many.

A list of Python objects needs some 60 bytes a field, and a trace has millions of rows. A batch of
rows becomes typed columns in which a text is its number in one dictionary; batches beyond the
first go to a file without a name, so that nothing of it is left however the process ends.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any, Final, Literal

import numpy as np
import polars as pl

from jumar.ground.errors import UserError

Kind = Literal["text", "whole", "digits"]
"""`text` is held as its number, `digits` is a whole number that may be written as text."""

BATCH: Final = 16_384
KEPT_BATCHES: Final = 8
"""Batches of a table that stay in memory: those of a short trace never reach the disk."""

_LARGEST: Final = (1 << 63) - 1
_SAMPLE: Final = 16


class Texts:
    """Each text once, with its number; the number of the empty text is 0."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}
        self._column = pl.Series("texts", [""], dtype=pl.String)

    def number(self, text: str) -> int:
        """The number of a text; a new one if the text is new."""
        return self._numbers.setdefault(text, len(self._numbers))

    def numbers(self, name: str, values: Sequence[Any]) -> pl.Series:
        """The numbers of many values, by their text representation."""
        known = self._numbers
        try:
            # Nearly all are texts seen before.
            numbers = list(map(known.get, values))
        except TypeError:
            numbers = [None] * len(values)
        if None in numbers:
            numbers = [
                known.setdefault(str(value), len(known))
                if number is None and value is not None
                else number
                for number, value in zip(numbers, values, strict=True)
            ]
        return pl.Series(name, numbers, dtype=pl.UInt32)

    @property
    def column(self) -> pl.Series:
        """All texts, indexed by number."""
        if len(self._column) != len(self._numbers):
            self._column = _strings("texts", list(self._numbers))
        return self._column

    def matching(self, pattern: str) -> list[int]:
        """The numbers of the texts that match a pattern."""
        return self.column.str.contains(pattern).arg_true().to_list()

    def of(self, numbers: pl.Series) -> pl.Series:
        """Texts by their numbers; equal ones share their bytes."""
        return self.column.gather(numbers).rename(numbers.name)


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """A packed batch: its data or its position in the file, with the range of its start times."""

    frame: pl.DataFrame | None
    offset: int
    length: int
    rows: int
    first: int
    last: int


class Table:
    """A table that grows by rows, of which memory keeps the last batch and the first few.

    Args:
        columns: Names with what each holds. Calls have `start_ns`.
        texts: The dictionary of its texts.
    """

    def __init__(self, columns: Mapping[str, Kind], texts: Texts) -> None:
        self._columns = dict(columns)
        self._texts = texts
        self._rows: list[tuple[Any, ...]] = []
        self._batches: list[_Batch] = []
        self._packed = 0
        self._samples: list[np.ndarray] = []
        self._file: IO[bytes] | None = None
        self._end = 0

    def __len__(self) -> int:
        return self._packed + len(self._rows)

    def add(self, row: tuple[Any, ...]) -> None:
        """Add a row, with a value for each column."""
        self._rows.append(row)
        if len(self._rows) >= BATCH:
            self.pack()

    def close(self) -> None:
        """Free the disk space."""
        if self._file is not None:
            self._file.close()

    def pack(self) -> None:
        """Turn the rows so far into columns. A number beyond 64 bits becomes null."""
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
        first, last = 0, 0
        if "start_ns" in self._columns:
            starts = packed["start_ns"].to_numpy()
            first, last = int(starts.min()), int(starts.max())
            self._samples.append(starts[::_SAMPLE].copy())
        stays = len(self._batches) < KEPT_BATCHES
        offset, length = (0, 0) if stays else self._spill(packed)
        self._batches.append(
            _Batch(
                frame=packed if stays else None,
                offset=offset,
                length=length,
                rows=packed.height,
                first=first,
                last=last,
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
            self._file.seek(self._end)
            left = content
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self.close()
            raise UserError(
                f"the columns of a long trace do not fit there: {error.strerror or error}",
                where=tempfile.gettempdir(),
                todo="Free up a twentieth of the unpacked trace's size, or name another folder: "
                "TMPDIR=/path jumar profile ...",
            ) from None
        offset, self._end = self._end, self._end + len(content)
        return offset, len(content)

    def frames(self, *names: str) -> Iterator[pl.DataFrame]:
        """The rows in order, a batch at a time, with numbers for texts.

        Args:
            names: The columns; all without one.
        """
        self.pack()
        for batch in self._batches:
            yield self._loaded(batch, names)

    def joined(self, frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """The frames of this table concatenated, with its columns even if there are no frames."""
        listed = list(frames)
        if listed:
            return pl.concat(listed)
        return pl.DataFrame(
            schema={
                name: pl.UInt32() if kind == "text" else pl.Int64()
                for name, kind in self._columns.items()
            }
        )

    def decoded(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A frame with its texts in place of their numbers."""
        return frame.with_columns(
            self._texts.of(frame[name])
            for name in frame.columns
            if self._columns.get(name) == "text"
        )

    def spans(self, rows: int) -> Iterator[pl.DataFrame]:
        """The rows by start, one span of time at a time, in the table's order within a span.

        Only batches that begin in a span are read for it. Producers write more or less in the
        order of time, so nearly all are read once.

        Args:
            rows: Approximate number per span.

        Yields:
            The columns and `row`, the place of each row in the table.
        """
        self.pack()
        if not self._batches:
            return
        starts = np.sort(np.concatenate(self._samples))
        count = max(1, round(self._packed / rows))
        edges = np.unique(starts[[len(starts) * i // count for i in range(1, count)]])
        low = -_LARGEST - 1
        for high in [*(int(edge) for edge in edges), _LARGEST]:
            waiting: list[pl.DataFrame] = []
            place = 0
            for batch in self._batches:
                if batch.last >= low and batch.first <= high:
                    frame = self._loaded(batch, ()).with_row_index("row", offset=place)
                    inside = pl.col("start_ns").is_between(low, high, closed="left")
                    if high == _LARGEST:
                        inside = pl.col("start_ns") >= low
                    waiting.append(frame.filter(inside))
                place += batch.rows
            if waiting:
                yield pl.concat(waiting)
            low = high

    def _loaded(self, batch: _Batch, names: Sequence[str]) -> pl.DataFrame:
        if batch.frame is not None:
            return batch.frame.select(names) if names else batch.frame
        assert self._file is not None
        self._file.seek(batch.offset)
        content = BytesIO(self._file.read(batch.length))
        return pl.read_ipc_stream(content, columns=list(names) or None)


def _packed(name: str, kind: Kind, values: Sequence[Any], texts: Texts) -> pl.Series:
    if kind == "text":
        return texts.numbers(name, values)
    if kind == "digits":
        written = [None if value is None else str(value) for value in values]
        return _strings(name, written).cast(pl.Int64, strict=False)
    try:
        return pl.Series(name, values, dtype=pl.Int64, strict=True)
    except (TypeError, OverflowError, UnicodeEncodeError, pl.exceptions.PolarsError):
        return pl.Series(name, [_whole(value) for value in values], dtype=pl.Int64)


def _strings(name: str, texts: Sequence[str | None]) -> pl.Series:
    """A column of texts; JSON can name half of a surrogate pair, which UTF-8 cannot encode."""
    try:
        return pl.Series(name, texts, dtype=pl.String)
    except UnicodeEncodeError:
        encodable = [text and text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        return pl.Series(name, encodable, dtype=pl.String)


def _whole(value: Any) -> int | None:
    """An integer within 64 bits; old traces write ids as text."""
    if type(value) is str and len(value) < len(str(_LARGEST)) and value.isdecimal():
        return int(value)
    return value if type(value) is int and -_LARGEST <= value <= _LARGEST else None
