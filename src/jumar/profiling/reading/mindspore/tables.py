"""Files of MindSpore's profiler of 2020 to 2022: one folder, times in ms, steps in ticks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

from jumar.profiling.profile import Missing
from jumar.profiling.reading.exact import clean, nanoseconds
from jumar.profiling.reading.part import Part
from jumar.profiling.reading.tables.csv_tables import table
from jumar.profiling.reading.tables.csv_text import read_text

_TICK_NS: Final = 10
"""A tick of its clock of steps, which counts 100 MHz."""

PRODUCER: Final = "mindspore"
_WORDS: Final = {
    # Numbers of types that its writer did not know, or took for the end of their list.
    "UNKNOWN": "",
    "END": "",
    "FLOAT32": "FLOAT",
    "FLOAT64": "DOUBLE",
    "BFLOAT16": "BF16",
    "DefaultFormat": "ND",
    "FracZ": "FRACTAL_Z",
    "FracNZ": "FRACTAL_NZ",
}
"""Its words for types and formats, in those of msprof."""


def read_aicpu(path: Path, shown: str, kind: str) -> Part:
    """`aicpu_intermediate_<device>.csv`: in milliseconds, with its beginning in microseconds."""
    text = read_text(path)
    rows = text.select(
        nanoseconds(_column(text, "run_start"), "us").alias("timestamp_ns"),
        _column(text, "kernel_type").alias("node"),
        nanoseconds(_column(text, "execution_time"), "ms").alias("compute_time_ns"),
        nanoseconds(_column(text, "dispatch_time"), "ms").alias("dispatch_time_ns"),
        nanoseconds(_column(text, "total_time"), "ms").alias("total_time_ns"),
    )
    return Part(file=shown, kind=kind, producer=PRODUCER, statistics={"aicpu": rows})


def read_op_types(path: Path, shown: str, kind: str) -> Part:
    """`aicore_intermediate_<device>_type.csv`: the total of a step, in milliseconds."""
    text = read_text(path)
    count = _column(text, "execution_frequency").cast(pl.Int64, strict=False)
    total = nanoseconds(_column(text, "execution_time"), "ms")
    rows = text.select(
        _column(text, "op_type").alias("op_type"),
        pl.lit("AI_CORE").alias("core_type"),
        count.alias("count"),
        total.alias("total_time_ns"),
        (total // count).alias("avg_time_ns"),
        _column(text, "percent").cast(pl.Float64, strict=False).alias("ratio_percent"),
    )
    return Part(file=shown, kind=kind, producer=PRODUCER, statistics={"op_statistic": rows})


def read_op_details(path: Path, shown: str, kind: str) -> Part:
    """`aicore_intermediate_<device>_detail.csv`: the time of each op, without a start."""
    text = read_text(path)
    name = _column(text, "full_op_name")
    ops = text.select(
        name.alias("name"),
        name.str.extract(r"([A-Za-z0-9_]+?)(?:-op\d+)?$").alias("type"),
        pl.lit("AI_CORE").alias("core"),
        nanoseconds(_column(text, "execution_time"), "ms").alias("duration_ns"),
    ).drop_nulls(["name", "duration_ns"])
    gap = Missing(file=shown, what="start times", needed_for=("step split", "timeline"))
    return Part(file=shown, kind=kind, producer=PRODUCER, device="npu", ops=ops, missing=(gap,))


def read_framework(path: Path, shown: str, kind: str) -> Part:
    """`framework_raw_<device>.csv`: stream, task, shapes and types of each op."""
    text = read_text(path)
    facts = [_facts(value) for value in text["op_info"].to_list()]
    rows = text.select(
        _column(text, "full_op_name").alias("name"),
        _column(text, "stream_id").alias("stream"),
        _column(text, "task_id").cast(pl.Int64, strict=False).alias("task"),
        _column(text, "block_dim").cast(pl.Int64, strict=False).alias("block_num"),
    ).with_columns(
        pl.Series(f"{side}_{what}s", [fact.get((side, key), "") for fact in facts], pl.String)
        for side in ("input", "output")
        for what, key in (("shape", "shape"), ("type", "data_type"), ("format", "format"))
    )
    return Part(file=shown, kind=kind, producer=PRODUCER, statistics={"framework": rows})


def read_steps(path: Path, shown: str, kind: str) -> Part:
    """`step_trace_raw_<device>_detail_time.csv`: in ticks; a row of averages ends it."""
    text = read_text(path)
    ticks = {
        name: _column(text, name).cast(pl.Int64, strict=False)
        for name in ("step_num", "start_point", "end_point", "iteration_interval")
    }
    steps = text.select(
        ticks["step_num"].alias("step"),
        (ticks["start_point"] * _TICK_NS).alias("start_ns"),
        (ticks["end_point"] * _TICK_NS).alias("end_ns"),
        (ticks["iteration_interval"] * _TICK_NS).alias("data_ns"),
    ).filter(pl.col("step") > 0)
    return Part(
        file=shown,
        kind=kind,
        producer=PRODUCER,
        steps=steps,
        statistics={"step_trace": table(text, kind)},
    )


def _column(text: pl.DataFrame, name: str) -> pl.Expr:
    """A column that may be missing."""
    return clean(pl.col(name)) if name in text.columns else pl.lit(None, pl.String)


def _facts(info: Any) -> dict[tuple[str, str], str]:
    """Shapes, types and formats out of `{"input_0": {"format": ..., "data_type": ...}}`."""
    try:
        tree = json.loads(info) if isinstance(info, str) else {}
    except (ValueError, RecursionError):
        tree = {}
    return facts_of(tree if isinstance(tree, dict) else {})  # pyright: ignore[reportUnknownArgumentType]


def facts_of(tree: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Shapes, types and formats of an op's inputs and outputs, by side and by MindSpore's name."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, tensor in tree.items():
        side = str(name).partition("_")[0]
        for key in ("shape", "data_type", "format"):
            value = tensor.get(key) if isinstance(tensor, dict) else None
            word = str(value if value is not None else "").removeprefix("NUMBER_TYPE_")
            found.setdefault((side, key), []).append(_WORDS.get(word, word))
    return {key: ";".join(values) for key, values in found.items()}
