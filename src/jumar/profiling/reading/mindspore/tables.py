"""CSV files of MindSpore's profiler from 2020 to 2022, with times in ms and steps in ticks."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from jumar.ground.json_text import parse_json
from jumar.profiling.profile import Missing
from jumar.profiling.reading.exact import clean, nanoseconds
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.tables.csv_tables import normalized
from jumar.profiling.reading.tables.csv_text import TextTable, read_text

TICK_NS: Final = 10
"""Length of a tick of the step clock, which runs at 100 MHz."""

PRODUCER: Final = "mindspore"
_MSPROF_NAMES: Final = {
    # Type numbers unknown to MindSpore's writer, or that mark the end of the enumeration.
    "UNKNOWN": "",
    "END": "",
    "FLOAT32": "FLOAT",
    "FLOAT64": "DOUBLE",
    "BFLOAT16": "BF16",
    "DefaultFormat": "ND",
    "FracZ": "FRACTAL_Z",
    "FracNZ": "FRACTAL_NZ",
}
"""msprof's names for MindSpore's types and formats."""


TENSOR_COLUMNS: Final = tuple(
    (f"{side}_{what}s", (side, key))
    for side in ("input", "output")
    for what, key in (("shape", "shape"), ("type", "data_type"), ("format", "format"))
)
"""Columns of the op table with the keys of `tensor_details`."""


def read_aicpu(path: Path, display_name: str, kind: str) -> FileContent:
    """`aicpu_intermediate_<device>.csv`: AI CPU ops; durations in ms, start times in us."""
    text = read_text(path, display_name)
    rows = text.frame.select(
        _times(text, "run_start", "us").alias("timestamp_ns"),
        _column(text, "kernel_type").alias("node"),
        _times(text, "execution_time", "ms").alias("compute_time_ns"),
        _times(text, "dispatch_time", "ms").alias("dispatch_time_ns"),
        _times(text, "total_time", "ms").alias("total_time_ns"),
    )
    return _file_content(text, display_name, kind, statistics={"aicpu": rows})


def read_op_types(path: Path, display_name: str, kind: str) -> FileContent:
    """`aicore_intermediate_<device>_type.csv`: the total time of each op type in a step, in ms."""
    text = read_text(path, display_name)
    count = _integers(text, "execution_frequency")
    total = _times(text, "execution_time", "ms")
    rows = text.frame.select(
        _column(text, "op_type").alias("op_type"),
        pl.lit("AI_CORE").alias("core_type"),
        count.alias("count"),
        total.alias("total_time_ns"),
        (total // count).alias("avg_time_ns"),
        text.number("percent", lambda column: column.cast(pl.Float64, strict=False)).alias(
            "ratio_percent"
        ),
    )
    return _file_content(text, display_name, kind, statistics={"op_statistic": rows})


def read_op_details(path: Path, display_name: str, kind: str) -> FileContent:
    """`aicore_intermediate_<device>_detail.csv`: the duration of each op, without start times."""
    text = read_text(path, display_name)
    name = _column(text, "full_op_name")
    ops = text.frame.select(
        name.alias("name"),
        name.str.extract(r"([A-Za-z0-9_]+?)(?:-op\d+)?$").alias("type"),
        pl.lit("AI_CORE").alias("core"),
        _times(text, "execution_time", "ms").alias("duration_ns"),
    ).drop_nulls(["name", "duration_ns"])
    gap = Missing(file=display_name, what="start times", needed_for=("step split", "timeline"))
    content = _file_content(text, display_name, kind, statistics={})
    return replace(content, device="npu", ops=ops, missing=(gap, *content.missing))


def read_framework(path: Path, display_name: str, kind: str) -> FileContent:
    """`framework_raw_<device>.csv`: stream, task, shapes and dtypes of each op."""
    text = read_text(path, display_name)
    details = [_tensor_details_in(value) for value in text.frame["op_info"].to_list()]
    rows = text.frame.select(
        _column(text, "full_op_name").alias("name"),
        _column(text, "stream_id").alias("stream"),
        _integers(text, "task_id").alias("task"),
        _integers(text, "block_dim").alias("block_num"),
    ).with_columns(
        pl.Series(name, [op_details.get(key, "") for op_details in details], pl.String)
        for name, key in TENSOR_COLUMNS
    )
    return _file_content(text, display_name, kind, statistics={"framework": rows})


def read_steps(path: Path, display_name: str, kind: str) -> FileContent:
    """`step_trace_raw_<device>_detail_time.csv`: steps in ticks, followed by a row of averages."""
    text = read_text(path, display_name)
    ticks = {
        name: _integers(text, name)
        for name in ("step_num", "start_point", "end_point", "iteration_interval")
    }
    steps = text.frame.select(
        ticks["step_num"].alias("step"),
        (ticks["start_point"] * TICK_NS).alias("start_ns"),
        (ticks["end_point"] * TICK_NS).alias("end_ns"),
        (ticks["iteration_interval"] * TICK_NS).alias("data_ns"),
    ).filter(pl.col("step") > 0)
    content = _file_content(
        text, display_name, kind, statistics={"step_trace": normalized(text, kind)}
    )
    return replace(content, steps=steps, collectives=_collectives(text, ticks["step_num"]))


_START_SUFFIX, _END_SUFFIX = "_start_point", "_end_point"


def _collectives(text: TextTable, step: pl.Series) -> pl.DataFrame | None:
    """The collectives of each step, from their columns; None if there are none.

    Their columns are named `stream_36_0_AllReduce-op4542_start_point`; earlier releases omit the
    op.
    """
    names = [
        name.removesuffix(_START_SUFFIX) for name in text.names if name.endswith(_START_SUFFIX)
    ]
    frames = [
        pl.DataFrame(
            {
                "step": step,
                "name": pl.repeat(name, len(step), eager=True),
                "start_ns": (start := _integers(text, f"{name}{_START_SUFFIX}")) * TICK_NS,
                "elapse_ns": (_integers(text, f"{name}{_END_SUFFIX}") - start) * TICK_NS,
            }
        ).filter((pl.col("step") > 0) & (pl.col("start_ns") > 0) & (pl.col("elapse_ns") > 0))
        for name in names
        if name.startswith("stream_") and f"{name}{_END_SUFFIX}" in text.names
    ]
    return pl.concat(frames) if frames else None


def _file_content(
    text: TextTable, display_name: str, kind: str, statistics: dict[str, pl.DataFrame]
) -> FileContent:
    """The content of a file; call it after converting all columns, to include what is missing."""
    return FileContent(
        file=display_name,
        kind=kind,
        producer=PRODUCER,
        statistics=statistics,
        missing=text.missing(),
    )


def _column(text: TextTable, name: str) -> pl.Expr:
    """A text column; null if the file lacks it."""
    return clean(pl.col(name)) if name in text.names else pl.lit(None, pl.String)


def _times(text: TextTable, name: str, unit: str) -> pl.Series:
    return text.number(name, lambda column: nanoseconds(column, unit))


def _integers(text: TextTable, name: str) -> pl.Series:
    return text.number(name, lambda column: column.cast(pl.Int64, strict=False))


def _tensor_details_in(text: Any) -> dict[tuple[str, str], str]:
    """`tensor_details` of JSON text: `{"input_0": {"format": ..., "data_type": ...}}`."""
    try:
        tree = parse_json(text) if isinstance(text, str) else {}
    except ValueError:
        tree = {}
    return tensor_details(tree if isinstance(tree, dict) else {})  # pyright: ignore[reportUnknownArgumentType]


def tensor_details(tree: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Shapes, dtypes and formats of an op, by `input` or `output` and MindSpore's key."""
    details: dict[tuple[str, str], list[str]] = {}
    for name, tensor in tree.items():
        side = str(name).partition("_")[0]
        for key in ("shape", "data_type", "format"):
            value = tensor.get(key) if isinstance(tensor, dict) else None
            name = str(value if value is not None else "").removeprefix("NUMBER_TYPE_")
            details.setdefault((side, key), []).append(_MSPROF_NAMES.get(name, name))
    return {key: ";".join(values) for key, values in details.items()}
