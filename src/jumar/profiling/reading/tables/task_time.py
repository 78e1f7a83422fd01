"""Reads msprof's `task_time`: tasks on the device; used only if there is no op_summary."""

from pathlib import Path
from typing import Final

import polars as pl

from jumar.profiling.profile import ACCELERATOR_CORES, COMMUNICATION, TYPE_IN_NAME
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.tables.csv_tables import integers_of, normalized
from jumar.profiling.reading.tables.csv_text import read_text

_CORES: Final = {
    "AICPU": "AI_CPU",
    "KERNEL_AICORE": "AI_CORE",
    "KERNEL_AIVEC": "AI_VECTOR_CORE",
    "KERNEL_AICPU": "AI_CPU",
    "KERNEL_MIX_AIC": "MIX_AIC",
    "KERNEL_MIX_AIV": "MIX_AIV",
    "HCCL": COMMUNICATION,
}


def read_task_time(path: Path, display_name: str, kind: str) -> FileContent:
    """Read one row per task; tasks of the queue itself, such as `EVENT_RECORD`, are not ops."""
    text = read_text(path, display_name)
    rows = normalized(text, kind)
    core = pl.col("kernel_type").str.to_uppercase().replace(_CORES)
    ops = rows.select(
        pl.col("^device_id$").cast(pl.Int32, strict=False).alias("device"),
        integers_of(rows, "stream_id").cast(pl.String).alias("stream"),
        integers_of(rows, "task_id").alias("task"),
        pl.col("kernel_name").alias("name"),
        pl.col("kernel_name").str.extract(TYPE_IN_NAME).alias("type"),
        core.alias("core"),
        integers_of(rows, "task_start_ns").alias("start_ns"),
        pl.col("task_time_ns").alias("duration_ns"),
    ).filter(
        pl.col("core").is_in([*ACCELERATOR_CORES, COMMUNICATION])
        & pl.col("name").is_not_null()
        & pl.col("duration_ns").is_not_null()
    )
    return FileContent(
        file=display_name,
        kind="task_time",
        producer="msprof",
        device="npu" if ops.height else None,
        ops=ops if ops.height else None,
        statistics={"task_time": rows},
        missing=text.missing(),
    )
