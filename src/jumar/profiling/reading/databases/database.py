"""Reads databases of torch_npu and msprof, whose times are already integer nanoseconds."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

import polars as pl

from jumar.profiling.profile import COMMUNICATION, Missing
from jumar.profiling.reading.databases.database_tables import (
    Columns,
    displayed_tables,
    int_columns,
    text_of,
)
from jumar.profiling.reading.databases.journals import with_journal_applied
from jumar.profiling.reading.databases.module_calls import layers_of
from jumar.profiling.reading.events import BrokenJson
from jumar.profiling.reading.exact import NO_VALUE, whole_number
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.traces.nesting import step_at, with_waits
from jumar.profiling.reading.unreadable import Unreadable

_NS_PER_MS: Final = 1_000_000
_TASK_COLUMNS: Final = (
    "startNs",
    "endNs",
    "deviceId",
    "connectionId",
    "globalTaskId",
    "streamId",
    "taskId",
)
_TEXT_COLUMNS: Final = {
    "name": "name",
    "opType": "type",
    "taskType": "core",
    "inputShapes": "input_shapes",
    "outputShapes": "output_shapes",
}
_PREFIXED_COLUMNS: Final = {
    "inputDataTypes": "input_types",
    "outputDataTypes": "output_types",
    "inputFormats": "input_formats",
    "outputFormats": "output_formats",
}
"""Columns of compute tasks with texts, some with `DT_` and `FORMAT_`, by column of the op table."""


def read_database(path: Path, display_name: str, kind: str) -> FileContent:
    """Read `ascend_pytorch_profiler_*.db`, `msprof_*.db` or `analysis.db`."""
    try:
        with (
            with_journal_applied(path.resolve()) as (readable, mode),
            closing(sqlite3.connect(f"file:{quote(str(readable))}?{mode}", uri=True)) as connection,
        ):
            connection.text_factory = _decoded
            return _Database(connection, display_name).content(kind)
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        # SQLite's message quotes a damaged schema, which may not be UTF-8.
        raise BrokenJson(f"cannot be read as a database: {error}") from None


class _Database:
    """An open database; tables and columns may be missing from it."""

    def __init__(self, connection: sqlite3.Connection, display_name: str) -> None:
        self._connection = connection
        self._display_name = display_name
        self._missing: list[Missing] = []
        self._unreadable = Unreadable(display_name)
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._tables = {str(name) for (name,) in rows}
        self._texts: dict[int, str] = {}
        self._counted_columns: set[tuple[str, str]] = set()

    def content(self, kind: str) -> FileContent:
        """The content of the database."""
        if "STRING_IDS" in self._tables:
            texts = self.table("STRING_IDS", {"id": pl.Int64, "value": pl.String})
            self._texts = dict(texts.drop_nulls().iter_rows())
        steps = self._or_missing(self._steps, "steps")
        ops = self._or_missing(lambda: self._ops(steps), "ops")
        step_times = self._or_missing(self._step_times, "step times")
        statistics = {
            "frequency": self._or_missing(self._clocks, "clocks"),
            **{
                name: self._or_missing(make, name)
                for name, make in displayed_tables(self.table, self._texts).items()
            },
        }
        chips = self.table("NPU_INFO", {"id": pl.Int64, "name": pl.String})["name"].drop_nulls()
        ranks = self.table("RANK_DEVICE_MAP", {"rankId": pl.Int64})["rankId"].drop_nulls()
        if step_times.height and steps.height:
            step_times = step_times.join(steps, on="step", how="left", maintain_order="left")
        return FileContent(
            file=self._display_name,
            kind=kind,
            producer="torch_npu" if "PYTORCH_API" in self._tables else "msprof",
            device="npu" if ops.height else None,
            ops=ops if ops.height else None,
            steps=step_times if step_times.height else (steps if steps.height else None),
            host=self._or_missing(self._host, "host calls"),
            collectives=self._or_missing(self._collectives, "collectives"),
            links=self._or_missing(self._links, "links"),
            statistics={name: table for name, table in statistics.items() if table.height},
            missing=(*self._missing, *self._unreadable.missing()),
            rank=int(ranks[0]) if len(ranks) == 1 and 0 <= ranks[0] < 1 << 20 else None,
            chip=str(chips[0])[:80] if len(chips) else "",
        )

    def table(self, name: str, columns: Columns) -> pl.DataFrame:
        """Columns of a table; those that this release lacks are null."""
        if name not in self._tables:
            return pl.DataFrame(schema=columns)
        table_info = self._connection.execute(f'PRAGMA table_info("{name}")')
        existing = {str(row[1]) for row in table_info}
        present = [column for column in columns if column in existing]
        selected = ", ".join(f'"{column}"' for column in present)
        frames: list[pl.DataFrame] = []
        if present:
            rows = self._connection.execute(f'SELECT {selected} FROM "{name}"')  # noqa: S608
            rows_before = 0
            while batch := rows.fetchmany(100_000):
                frames.append(
                    pl.DataFrame(
                        [
                            _typed_column(column, columns[column], values)
                            for column, values in zip(
                                present, zip(*batch, strict=True), strict=True
                            )
                        ]
                    )
                )
                self._count_unreadable(name, frames[-1], batch, rows_before)
                rows_before += len(batch)
            self._counted_columns.update((name, column) for column in present)
        frame = (
            pl.concat(frames)
            if frames
            else pl.DataFrame(schema={column: columns[column] for column in present})
        )
        return frame.select(
            pl.col(column) if column in present else pl.lit(None, kind).alias(column)
            for column, kind in columns.items()
        )

    def _count_unreadable(
        self,
        name: str,
        converted: pl.DataFrame,
        batch: Sequence[Sequence[object]],
        rows_before: int,
    ) -> None:
        """Count the values of a batch that could not be converted to their column's type."""
        for index, column in enumerate(converted.get_columns()):
            if (name, column.name) not in self._counted_columns:
                for row in column.is_null().arg_true():
                    text = batch[row][index]
                    if text is not None and str(text).strip() not in NO_VALUE:
                        where = f"table {name}, row {rows_before + row + 1}, column {column.name}"
                        self._unreadable.count_number(lambda where=where: where, text)

    def _or_missing(self, make: Callable[[], pl.DataFrame], what: str) -> pl.DataFrame:
        """Return the table from `make`; if it fails, note the reason and return an empty one."""
        try:
            return make()
        except (sqlite3.Error, pl.exceptions.PolarsError, OverflowError) as error:
            self._missing.append(Missing(file=self._display_name, what=f"{what}: {error}"[:200]))
            return pl.DataFrame()

    def _text_of(self, column: str) -> pl.Expr:
        return text_of(column, self._texts)

    def _steps(self) -> pl.DataFrame:
        steps = self.table("STEP_TIME", int_columns("id", "startNs", "endNs"))
        return steps.select(
            pl.col("id").alias("step"),
            pl.col("startNs").alias("start_ns"),
            pl.col("endNs").alias("end_ns"),
        ).drop_nulls()

    def _ops(self, steps: pl.DataFrame) -> pl.DataFrame:
        tasks = self.table("TASK", int_columns(*_TASK_COLUMNS))
        compute_tasks = self.table(
            "COMPUTE_TASK_INFO",
            int_columns("globalTaskId", "blockDim", *_TEXT_COLUMNS, *_PREFIXED_COLUMNS),
        )
        if not compute_tasks.height and "COMMUNICATION_OP" not in self._tables:
            return pl.DataFrame()
        ops = compute_tasks.join(tasks, on="globalTaskId", how="inner", maintain_order="left")
        computing = ops.select(
            pl.col("deviceId").alias("device"),
            pl.col("streamId").cast(pl.String).alias("stream"),
            pl.col("taskId").alias("task"),
            *(
                self._text_of(source).str.strip_chars('"').alias(target)
                for source, target in _TEXT_COLUMNS.items()
            ),
            *(
                self._text_of(source)
                .str.replace_all("DT_", "", literal=True)
                .str.replace_all("FORMAT_", "", literal=True)
                .alias(target)
                for source, target in _PREFIXED_COLUMNS.items()
            ),
            pl.col("startNs").alias("start_ns"),
            (pl.col("endNs") - pl.col("startNs")).alias("duration_ns"),
            pl.col("blockDim").alias("block_num"),
            pl.col("connectionId").alias("correlation"),
            "globalTaskId",
        )
        computing = computing.join(self._counters(), on="globalTaskId", how="left").drop(
            "globalTaskId"
        )
        all_ops = pl.concat([computing, self._communication_ops()], how="diagonal_relaxed")
        all_ops = all_ops.with_columns(
            pl.col(name).replace("N/A", None)
            for name, dtype in all_ops.schema.items()
            if dtype == pl.String
        )
        launches = layers_of(self.table, self._texts).with_modules(self._launches())
        all_ops = all_ops.join(launches, on="correlation", how="left", maintain_order="left")
        return with_waits(all_ops.with_columns(step_at(all_ops["start_ns"], steps).alias("step")))

    def _communication_ops(self) -> pl.DataFrame:
        ops = self.table(
            "COMMUNICATION_OP",
            int_columns("opName", "startNs", "endNs", "connectionId", "opType"),
        )
        return ops.select(
            self._text_of("opName").alias("name"),
            self._text_of("opType").alias("type"),
            pl.lit(COMMUNICATION).alias("core"),
            pl.lit(None, pl.Int64).alias("device"),
            pl.lit(None, pl.String).alias("stream"),
            pl.col("startNs").alias("start_ns"),
            (pl.col("endNs") - pl.col("startNs")).alias("duration_ns"),
            pl.col("connectionId").alias("correlation"),
        )

    def _counters(self) -> pl.DataFrame:
        rows = self.table(
            "TASK_PMU_INFO", {"globalTaskId": pl.Int64, "name": pl.Int64, "value": pl.Float64}
        )
        counters = rows.with_columns(self._text_of("name").alias("counter")).drop_nulls("counter")
        if not counters.height or counters["counter"].n_unique() > 200:
            return pl.DataFrame(schema={"globalTaskId": pl.Int64})
        return counters.pivot(
            "counter", index="globalTaskId", values="value", aggregate_function="first"
        )

    def _launches(self) -> pl.DataFrame:
        """The start of the call that launched each task: the PyTorch call, else the CANN call."""
        columns = int_columns("connectionId", "startNs", "globalTid")
        needed = ("connectionId", "startNs")
        calls = self.table("CANN_API", columns).drop_nulls(needed)
        torch_connections = self.table("CONNECTION_IDS", int_columns("id", "connectionId"))
        torch_calls = self.table("PYTORCH_API", columns).drop_nulls(needed)
        torch_launches = (
            torch_calls.rename({"connectionId": "id"})
            .join(torch_connections, on="id", how="inner")
            .sort("startNs", maintain_order=True)
            .unique("connectionId", keep="last", maintain_order=True)
            .select(calls.columns)
        )
        launches = pl.concat([torch_launches, calls]).unique(
            "connectionId", keep="first", maintain_order=True
        )
        return launches.rename(
            {"connectionId": "correlation", "startNs": "launch_ns", "globalTid": "thread"}
        )

    def _host(self) -> pl.DataFrame:
        columns = int_columns("startNs", "endNs", "globalTid", "connectionId", "name", "type")
        levels = self.table("ENUM_API_TYPE", {"id": pl.Int64, "name": pl.String})
        level_names = dict(levels.drop_nulls().iter_rows())
        layers = {
            **{"runtime": "runtime", "hccl": "runtime", "communication": "runtime", "op": "op"},
            **{"queue": "dequeue", "python_trace": "python", "trace": "python"},
        }
        frames: list[pl.DataFrame] = []
        for name, default_layer in (("PYTORCH_API", "op"), ("CANN_API", "cann")):
            rows = self.table(name, columns).with_columns(pl.lit(None, pl.Int64).alias("none"))
            level = pl.col("type").replace_strict(level_names, default=None, return_dtype=pl.String)
            frames.append(
                rows.select(
                    (pl.col("globalTid") % (1 << 32)).cast(pl.String).alias("thread"),
                    level.replace_strict(layers, default=default_layer).alias("layer"),
                    self._text_of("name"),
                    pl.col("startNs").alias("start_ns"),
                    (pl.col("endNs") - pl.col("startNs")).alias("duration_ns"),
                    # In PyTorch calls this column holds ids of lists of connections instead.
                    pl.col("connectionId" if name == "CANN_API" else "none").alias("correlation"),
                )
            )
        return pl.concat(frames)

    def _step_times(self) -> pl.DataFrame:
        names = (
            *("computing", "communication_not_overlapped", "overlapped", "communication"),
            *("free", "preparing"),
        )
        rows = self.table("StepTraceTime", {"step": pl.String, **_float_columns(*names)})
        return rows.select(
            pl.col("step").cast(pl.Int64, strict=False),
            *((pl.col(name) * 1000).round().cast(pl.Int64).alias(f"{name}_ns") for name in names),
        )

    def _collectives(self) -> pl.DataFrame:
        times = ("elapse_time", "transit_time", "wait_time", "synchronization_time", "idle_time")
        rows = self.table(
            "CommAnalyzerTime",
            {
                "hccl_op_name": pl.String,
                "group_name": pl.String,
                "step": pl.String,
                **_float_columns("start_timestamp", *times),
            },
        )
        return rows.select(
            pl.col("step").str.strip_prefix("step").cast(pl.Int64, strict=False),
            pl.col("hccl_op_name").alias("name"),
            pl.col("group_name").alias("group"),
            (pl.col("start_timestamp") * 1000).round().cast(pl.Int64).alias("start_ns"),
            *(
                (pl.col(name) * _NS_PER_MS)
                .round()
                .cast(pl.Int64)
                .alias(name.replace("_time", "_ns"))
                for name in times
            ),
        )

    def _links(self) -> pl.DataFrame:
        text_columns: dict[str, type[pl.DataType]] = {
            "hccl_op_name": pl.String,
            "src_rank": pl.String,
            "dst_rank": pl.String,
            "transport_type": pl.String,
            "step": pl.String,
        }
        number_columns = _float_columns("transit_size", "transit_time", "bandwidth")
        rows = self.table("CommAnalyzerMatrix", {**text_columns, **number_columns})
        return rows.select(
            pl.col("step").str.strip_prefix("step").cast(pl.Int64, strict=False),
            pl.col("hccl_op_name").alias("name"),
            pl.col("transport_type").alias("transport"),
            pl.col("src_rank").cast(pl.Int32, strict=False).alias("source"),
            pl.col("dst_rank").cast(pl.Int32, strict=False).alias("destination"),
            (pl.col("transit_size") * _NS_PER_MS).round().cast(pl.Int64).alias("size_bytes"),
            (pl.col("transit_time") * _NS_PER_MS).round().cast(pl.Int64).alias("transit_ns"),
            pl.col("bandwidth").alias("bandwidth_gb_s"),
        )

    def _clocks(self) -> pl.DataFrame:
        rows = self.table("AICORE_FREQ", {"timestampNs": pl.Int64, "freq": pl.Int64})
        clocks = rows.rename({"timestampNs": "time_ns", "freq": "mhz"})
        return clocks.sort("time_ns", maintain_order=True)


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _float_columns(*names: str) -> dict[str, type[pl.DataType]]:
    return dict.fromkeys(names, pl.Float64)


def _typed_column(name: str, kind: type[pl.DataType], values: tuple[object, ...]) -> pl.Series:
    """A column of one type; SQLite stores values of any type in any column."""
    if kind is pl.Int64:
        integers = [_integer(value) for value in values]
        return pl.Series(name, integers, dtype=pl.Int64)
    if kind is pl.Float64:
        floats = [float(value) if isinstance(value, (int, float)) else None for value in values]
        return pl.Series(name, floats, dtype=pl.Float64)
    texts = [None if value is None else str(value) for value in values]
    return pl.Series(name, texts, dtype=pl.String, strict=False)


def _integer(value: object) -> int | None:
    """The value as an integer; some releases store the times of PYTORCH_API as text."""
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return round(value) if abs(value) < 1 << 63 else None
    return whole_number(value.strip(), 19) if isinstance(value, str) else None
