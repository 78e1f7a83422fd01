"""Databases of torch_npu and msprof, whose times are whole nanoseconds already."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

import polars as pl

from jumar.profiling.profile import COMMUNICATION, Missing
from jumar.profiling.reading.databases.database_tables import Columns, shown_tables
from jumar.profiling.reading.databases.journals import settled
from jumar.profiling.reading.databases.module_calls import layers_of
from jumar.profiling.reading.events import BrokenJson
from jumar.profiling.reading.exact import NO_VALUE
from jumar.profiling.reading.part import Part
from jumar.profiling.reading.traces.nesting import step_at, with_waits
from jumar.profiling.reading.unreadable import Unreadable

_MILLION: Final = 1_000_000
_TASK: Final = (
    "startNs",
    "endNs",
    "deviceId",
    "connectionId",
    "globalTaskId",
    "streamId",
    "taskId",
)
_TASK_FACTS: Final = (
    "globalTaskId",
    "name",
    "blockDim",
    "taskType",
    "opType",
    "inputFormats",
    "inputDataTypes",
    "inputShapes",
    "outputFormats",
    "outputDataTypes",
    "outputShapes",
)


def read_database(path: Path, shown: str, kind: str) -> Part:
    """The tables of `ascend_pytorch_profiler_*.db`, `msprof_*.db` or `analysis.db`."""
    try:
        with (
            settled(path.resolve()) as (whole, mode),
            closing(sqlite3.connect(f"file:{quote(str(whole))}?{mode}", uri=True)) as connection,
        ):
            connection.text_factory = _text
            return _Database(connection, shown).part(kind)
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        # SQLite quotes a damaged schema in its message, which need not be UTF-8.
        raise BrokenJson(f"the database cannot be read: {error}") from None


class _Database:
    """One open database, whose tables and columns may be missing."""

    def __init__(self, connection: sqlite3.Connection, shown: str) -> None:
        self._connection = connection
        self._shown = shown
        self._missing: list[Missing] = []
        self._unreadable = Unreadable(shown)
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._tables = {str(name) for (name,) in rows}
        self._texts: dict[int, str] = {}
        self._counted: set[tuple[str, str]] = set()

    def part(self, kind: str) -> Part:
        """All its tables."""
        if "STRING_IDS" in self._tables:
            texts = self.table("STRING_IDS", {"id": pl.Int64, "value": pl.String})
            self._texts = dict(texts.drop_nulls().iter_rows())
        steps = self._guarded(self._steps, "steps")
        ops = self._guarded(lambda: self._ops(steps), "ops")
        statistics = {
            "step_trace_time": self._guarded(self._step_times, "step times"),
            "frequency": self._guarded(self._clocks, "clocks"),
            **{
                name: self._guarded(make, name)
                for name, make in shown_tables(self.table, self._texts).items()
            },
        }
        chip = self.table("NPU_INFO", {"id": pl.Int64, "name": pl.String})["name"].drop_nulls()
        ranks = self.table("RANK_DEVICE_MAP", {"rankId": pl.Int64})["rankId"].drop_nulls()
        times = statistics.pop("step_trace_time")
        if times.height and steps.height:
            times = times.join(steps, on="step", how="left", maintain_order="left")
        return Part(
            file=self._shown,
            kind=kind,
            producer="torch_npu" if "PYTORCH_API" in self._tables else "msprof",
            device="npu" if ops.height else None,
            ops=ops if ops.height else None,
            steps=times if times.height else (steps if steps.height else None),
            host=self._guarded(self._host, "host calls"),
            collectives=self._guarded(self._collectives, "collectives"),
            links=self._guarded(self._links, "links"),
            statistics={name: table for name, table in statistics.items() if table.height},
            missing=(*self._missing, *self._unreadable.missing()),
            rank=int(ranks[0]) if len(ranks) == 1 and 0 <= ranks[0] < 1 << 20 else None,
            chip=str(chip[0])[:80] if len(chip) else "",
        )

    def table(self, name: str, columns: Columns) -> pl.DataFrame:
        """Columns of a table; those missing from the release are null."""
        if name not in self._tables:
            return pl.DataFrame(schema=columns)
        listed = self._connection.execute(f'PRAGMA table_info("{name}")')
        existing = {str(row[1]) for row in listed}
        wanted = [column for column in columns if column in existing]
        selected = ", ".join(f'"{column}"' for column in wanted)
        frames: list[pl.DataFrame] = []
        if wanted:
            rows = self._connection.execute(f'SELECT {selected} FROM "{name}"')  # noqa: S608
            before = 0
            while batch := rows.fetchmany(100_000):
                frames.append(
                    pl.DataFrame(
                        [
                            _column(column, columns[column], values)
                            for column, values in zip(wanted, zip(*batch, strict=True), strict=True)
                        ]
                    )
                )
                self._count(name, frames[-1], batch, before)
                before += len(batch)
            self._counted.update((name, column) for column in wanted)
        frame = (
            pl.concat(frames) if frames else pl.DataFrame(schema={c: columns[c] for c in wanted})
        )
        return frame.select(
            pl.col(column) if column in wanted else pl.lit(None, kind).alias(column)
            for column, kind in columns.items()
        )

    def _count(
        self, name: str, converted: pl.DataFrame, batch: Sequence[Sequence[object]], before: int
    ) -> None:
        """Count the values in a batch whose type differs from their column's."""
        for place, column in enumerate(converted.get_columns()):
            if (name, column.name) not in self._counted:
                for row in column.is_null().arg_true():
                    text = batch[row][place]
                    if text is not None and str(text).strip() not in NO_VALUE:
                        where = f"table {name}, row {before + row + 1}, column {column.name}"
                        self._unreadable.number(lambda where=where: where, text)

    def _guarded(self, make: Callable[[], pl.DataFrame], what: str) -> pl.DataFrame:
        """A table, or an empty one with the reason recorded as missing."""
        try:
            return make()
        except (sqlite3.Error, pl.exceptions.PolarsError, OverflowError) as error:
            self._missing.append(Missing(file=self._shown, what=f"{what}: {error}"[:200]))
            return pl.DataFrame()

    def _named(self, *columns: str) -> list[pl.Expr]:
        return [
            pl.col(column).replace_strict(self._texts, default=None, return_dtype=pl.String)
            for column in columns
        ]

    def _steps(self) -> pl.DataFrame:
        steps = self.table("STEP_TIME", _numbers("id", "startNs", "endNs"))
        return steps.select(
            pl.col("id").alias("step"),
            pl.col("startNs").alias("start_ns"),
            pl.col("endNs").alias("end_ns"),
        ).drop_nulls()

    def _ops(self, steps: pl.DataFrame) -> pl.DataFrame:
        tasks = self.table(
            "TASK",
            _numbers(*_TASK),
        )
        facts = self.table(
            "COMPUTE_TASK_INFO",
            _numbers(*_TASK_FACTS),
        )
        if not facts.height and "COMMUNICATION_OP" not in self._tables:
            return pl.DataFrame()
        ops = facts.join(tasks, on="globalTaskId", how="inner", maintain_order="left")
        computing = ops.select(
            pl.col("deviceId").alias("device"),
            pl.col("streamId").cast(pl.String).alias("stream"),
            pl.col("taskId").alias("task"),
            *(
                value.str.strip_chars('"').alias(target)
                for value, target in zip(
                    self._named("name", "opType", "taskType", "inputShapes", "outputShapes"),
                    ("name", "type", "core", "input_shapes", "output_shapes"),
                    strict=True,
                )
            ),
            *(
                value.str.replace_all("DT_", "", literal=True)
                .str.replace_all("FORMAT_", "", literal=True)
                .alias(target)
                for value, target in zip(
                    self._named(
                        "inputDataTypes", "outputDataTypes", "inputFormats", "outputFormats"
                    ),
                    ("input_types", "output_types", "input_formats", "output_formats"),
                    strict=True,
                )
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
        both = pl.concat([computing, self._communication_ops()], how="diagonal_relaxed")
        both = both.with_columns(
            pl.col(name).replace("N/A", None)
            for name, dtype in both.schema.items()
            if dtype == pl.String
        )
        launches = layers_of(self.table, self._texts).of_launches(self._launches())
        both = both.join(launches, on="correlation", how="left", maintain_order="left")
        return with_waits(both.with_columns(step_at(both["start_ns"], steps).alias("step")))

    def _communication_ops(self) -> pl.DataFrame:
        ops = self.table(
            "COMMUNICATION_OP",
            _numbers("opName", "startNs", "endNs", "connectionId", "opType"),
        )
        name, kind = self._named("opName", "opType")
        return ops.select(
            name.alias("name"),
            kind.alias("type"),
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
        named = rows.with_columns(self._named("name")[0].alias("counter")).drop_nulls("counter")
        if not named.height or named["counter"].n_unique() > 200:
            return pl.DataFrame(schema={"globalTaskId": pl.Int64})
        return named.pivot(
            "counter", index="globalTaskId", values="value", aggregate_function="first"
        )

    def _launches(self) -> pl.DataFrame:
        """When the PyTorch call, else the CANN call, that launched a task started."""
        columns = _numbers("connectionId", "startNs", "globalTid")
        known = ("connectionId", "startNs")
        calls = self.table("CANN_API", columns).drop_nulls(known)
        lists = self.table("CONNECTION_IDS", _numbers("id", "connectionId"))
        torch = self.table("PYTORCH_API", columns).drop_nulls(known)
        by_torch = (
            torch.rename({"connectionId": "id"})
            .join(lists, on="id", how="inner")
            .sort("startNs", maintain_order=True)
            .unique("connectionId", keep="last", maintain_order=True)
            .select(calls.columns)
        )
        both = pl.concat([by_torch, calls]).unique(
            "connectionId", keep="first", maintain_order=True
        )
        return both.rename(
            {"connectionId": "correlation", "startNs": "launch_ns", "globalTid": "thread"}
        )

    def _host(self) -> pl.DataFrame:
        columns = _numbers("startNs", "endNs", "globalTid", "connectionId", "name", "type")
        kinds = dict(
            self.table("ENUM_API_TYPE", {"id": pl.Int64, "name": pl.String})
            .drop_nulls()
            .iter_rows()
        )
        layers = {"runtime": "runtime", "hccl": "runtime", "communication": "runtime", "op": "op"}
        layers.update({"queue": "dequeue", "python_trace": "python", "trace": "python"})
        frames: list[pl.DataFrame] = []
        for name, usual in (("PYTORCH_API", "op"), ("CANN_API", "cann")):
            rows = self.table(name, columns).with_columns(pl.lit(None, pl.Int64).alias("none"))
            level = pl.col("type").replace_strict(kinds, default=None, return_dtype=pl.String)
            frames.append(
                rows.select(
                    (pl.col("globalTid") % (1 << 32)).cast(pl.String).alias("thread"),
                    level.replace_strict(layers, default=usual).alias("layer"),
                    self._named("name")[0].alias("name"),
                    pl.col("startNs").alias("start_ns"),
                    (pl.col("endNs") - pl.col("startNs")).alias("duration_ns"),
                    # A PyTorch call has its own ids here, from a list of connections.
                    pl.col("connectionId" if name == "CANN_API" else "none").alias("correlation"),
                )
            )
        return pl.concat(frames)

    def _step_times(self) -> pl.DataFrame:
        names = ("computing", "communication_not_overlapped", "overlapped", "communication")
        names += ("free", "preparing")
        rows = self.table("StepTraceTime", {"step": pl.String, **_reals(*names)})
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
                **_reals("start_timestamp", *times),
            },
        )
        return rows.select(
            pl.col("step").str.strip_prefix("step").cast(pl.Int64, strict=False),
            pl.col("hccl_op_name").alias("name"),
            pl.col("group_name").alias("group"),
            (pl.col("start_timestamp") * 1000).round().cast(pl.Int64).alias("start_ns"),
            *(
                (pl.col(name) * _MILLION).round().cast(pl.Int64).alias(name.replace("_time", "_ns"))
                for name in times
            ),
        )

    def _links(self) -> pl.DataFrame:
        texts: dict[str, type[pl.DataType]] = {
            "hccl_op_name": pl.String,
            "src_rank": pl.String,
            "dst_rank": pl.String,
            "transport_type": pl.String,
            "step": pl.String,
        }
        numbers = _reals("transit_size", "transit_time", "bandwidth")
        rows = self.table("CommAnalyzerMatrix", {**texts, **numbers})
        return rows.select(
            pl.col("step").str.strip_prefix("step").cast(pl.Int64, strict=False),
            pl.col("hccl_op_name").alias("name"),
            pl.col("transport_type").alias("transport"),
            pl.col("src_rank").cast(pl.Int32, strict=False).alias("source"),
            pl.col("dst_rank").cast(pl.Int32, strict=False).alias("destination"),
            (pl.col("transit_size") * _MILLION).round().cast(pl.Int64).alias("size_bytes"),
            (pl.col("transit_time") * _MILLION).round().cast(pl.Int64).alias("transit_ns"),
            pl.col("bandwidth").alias("bandwidth_gb_s"),
        )

    def _clocks(self) -> pl.DataFrame:
        rows = self.table("AICORE_FREQ", {"timestampNs": pl.Int64, "freq": pl.Int64})
        named = rows.rename({"timestampNs": "time_ns", "freq": "mhz"})
        return named.sort("time_ns", maintain_order=True)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _numbers(*names: str) -> dict[str, type[pl.DataType]]:
    return dict.fromkeys(names, pl.Int64)


def _reals(*names: str) -> dict[str, type[pl.DataType]]:
    return dict.fromkeys(names, pl.Float64)


def _column(name: str, kind: type[pl.DataType], values: tuple[object, ...]) -> pl.Series:
    """A column of one type, whatever SQLite stored: any column accepts any value."""
    if kind is pl.Int64:
        whole = [_whole(value) for value in values]
        return pl.Series(name, whole, dtype=pl.Int64)
    if kind is pl.Float64:
        real = [float(v) if isinstance(v, (int, float)) else None for v in values]
        return pl.Series(name, real, dtype=pl.Float64)
    return pl.Series(
        name, [None if v is None else str(v) for v in values], dtype=pl.String, strict=False
    )


def _whole(value: object) -> int | None:
    """Times of PYTORCH_API are text in some releases."""
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return round(value) if abs(value) < 1 << 63 else None
    text = str(value).strip() if isinstance(value, str) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None
