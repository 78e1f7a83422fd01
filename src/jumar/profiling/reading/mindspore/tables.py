"""Files of MindSpore's profiler of 2020 to 2022: one folder, times in ms, steps in ticks."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from jumar.ground.json_text import parse_json
from jumar.profiling.profile import Missing
from jumar.profiling.reading.exact import clean, nanoseconds
from jumar.profiling.reading.part import Part
from jumar.profiling.reading.tables.csv_tables import table
from jumar.profiling.reading.tables.csv_text import TextTable, read_text

TICK_NS: Final = 10
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
    """`aicpu_intermediate_<device>.csv`: in milliseconds, with starts in microseconds."""
    text = read_text(path, shown)
    rows = text.frame.select(
        _times(text, "run_start", "us").alias("timestamp_ns"),
        _column(text, "kernel_type").alias("node"),
        _times(text, "execution_time", "ms").alias("compute_time_ns"),
        _times(text, "dispatch_time", "ms").alias("dispatch_time_ns"),
        _times(text, "total_time", "ms").alias("total_time_ns"),
    )
    return _part(text, shown, kind, statistics={"aicpu": rows})


def read_op_types(path: Path, shown: str, kind: str) -> Part:
    """`aicore_intermediate_<device>_type.csv`: the total of a step, in milliseconds."""
    text = read_text(path, shown)
    count = _whole(text, "execution_frequency")
    total = _times(text, "execution_time", "ms")
    rows = text.frame.select(
        _column(text, "op_type").alias("op_type"),
        pl.lit("AI_CORE").alias("core_type"),
        count.alias("count"),
        total.alias("total_time_ns"),
        (total // count).alias("avg_time_ns"),
        text.number("percent", lambda c: c.cast(pl.Float64, strict=False)).alias("ratio_percent"),
    )
    return _part(text, shown, kind, statistics={"op_statistic": rows})


def read_op_details(path: Path, shown: str, kind: str) -> Part:
    """`aicore_intermediate_<device>_detail.csv`: the time of each op, without a start."""
    text = read_text(path, shown)
    name = _column(text, "full_op_name")
    ops = text.frame.select(
        name.alias("name"),
        name.str.extract(r"([A-Za-z0-9_]+?)(?:-op\d+)?$").alias("type"),
        pl.lit("AI_CORE").alias("core"),
        _times(text, "execution_time", "ms").alias("duration_ns"),
    ).drop_nulls(["name", "duration_ns"])
    gap = Missing(file=shown, what="start times", needed_for=("step split", "timeline"))
    part = _part(text, shown, kind, statistics={})
    return replace(part, device="npu", ops=ops, missing=(gap, *part.missing))


def read_framework(path: Path, shown: str, kind: str) -> Part:
    """`framework_raw_<device>.csv`: stream, task, shapes and types of each op."""
    text = read_text(path, shown)
    facts = [_facts(value) for value in text.frame["op_info"].to_list()]
    rows = text.frame.select(
        _column(text, "full_op_name").alias("name"),
        _column(text, "stream_id").alias("stream"),
        _whole(text, "task_id").alias("task"),
        _whole(text, "block_dim").alias("block_num"),
    ).with_columns(
        pl.Series(f"{side}_{what}s", [fact.get((side, key), "") for fact in facts], pl.String)
        for side in ("input", "output")
        for what, key in (("shape", "shape"), ("type", "data_type"), ("format", "format"))
    )
    return _part(text, shown, kind, statistics={"framework": rows})


def read_steps(path: Path, shown: str, kind: str) -> Part:
    """`step_trace_raw_<device>_detail_time.csv`: in ticks; a row of averages ends it."""
    text = read_text(path, shown)
    ticks = {
        name: _whole(text, name)
        for name in ("step_num", "start_point", "end_point", "iteration_interval")
    }
    steps = text.frame.select(
        ticks["step_num"].alias("step"),
        (ticks["start_point"] * TICK_NS).alias("start_ns"),
        (ticks["end_point"] * TICK_NS).alias("end_ns"),
        (ticks["iteration_interval"] * TICK_NS).alias("data_ns"),
    ).filter(pl.col("step") > 0)
    part = _part(text, shown, kind, statistics={"step_trace": table(text, kind)})
    return replace(part, steps=steps, collectives=_collectives(text, ticks["step_num"]))


_BEGINS, _ENDS = "_start_point", "_end_point"


def _collectives(text: TextTable, step: pl.Series) -> pl.DataFrame | None:
    """The collectives of each step, whose columns are named by stream and op, or None.

    `stream_36_0_AllReduce-op4542_start_point`, in earlier releases without the op's name.
    """
    names = [name.removesuffix(_BEGINS) for name in text.names if name.endswith(_BEGINS)]
    frames = [
        pl.DataFrame(
            {
                "step": step,
                "name": pl.repeat(name, len(step), eager=True),
                "start_ns": (start := _whole(text, f"{name}{_BEGINS}")) * TICK_NS,
                "elapse_ns": (_whole(text, f"{name}{_ENDS}") - start) * TICK_NS,
            }
        ).filter((pl.col("step") > 0) & (pl.col("start_ns") > 0) & (pl.col("elapse_ns") > 0))
        for name in names
        if name.startswith("stream_") and f"{name}{_ENDS}" in text.names
    ]
    return pl.concat(frames) if frames else None


def _part(text: TextTable, shown: str, kind: str, statistics: dict[str, pl.DataFrame]) -> Part:
    """The tables of a file whose columns have all been converted, with its gaps."""
    return Part(
        file=shown, kind=kind, producer=PRODUCER, statistics=statistics, missing=text.missing()
    )


def _column(text: TextTable, name: str) -> pl.Expr:
    """A column that may be missing."""
    return clean(pl.col(name)) if name in text.names else pl.lit(None, pl.String)


def _times(text: TextTable, name: str, unit: str) -> pl.Series:
    return text.number(name, lambda column: nanoseconds(column, unit))


def _whole(text: TextTable, name: str) -> pl.Series:
    return text.number(name, lambda column: column.cast(pl.Int64, strict=False))


def _facts(info: Any) -> dict[tuple[str, str], str]:
    """Shapes, types and formats from `{"input_0": {"format": ..., "data_type": ...}}`."""
    try:
        tree = parse_json(info) if isinstance(info, str) else {}
    except ValueError:
        tree = {}
    return facts_of(tree if isinstance(tree, dict) else {})  # pyright: ignore[reportUnknownArgumentType]


def facts_of(tree: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Shapes, types and formats of an op's inputs and outputs, by side and by MindSpore's name."""
    facts: dict[tuple[str, str], list[str]] = {}
    for name, tensor in tree.items():
        side = str(name).partition("_")[0]
        for key in ("shape", "data_type", "format"):
            value = tensor.get(key) if isinstance(tensor, dict) else None
            word = str(value if value is not None else "").removeprefix("NUMBER_TYPE_")
            facts.setdefault((side, key), []).append(_WORDS.get(word, word))
    return {key: ";".join(values) for key, values in facts.items()}
