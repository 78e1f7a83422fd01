"""Column names of all releases, and the kinds of tables that they identify."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_UNIT = re.compile(r"^(.*?)\s*\(([^()]{1,12})\)$")
_TIME_UNITS = ("ns", "us", "ms", "s")


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column name in a header.

    Args:
        name: The name as in the file.
        base: The name in lower case, without the unit.
        unit: The unit in parentheses after it, in lower case; empty if there is none.
    """

    name: str
    base: str
    unit: str


def column(name: str) -> Column:
    """Split a column name: `Task Duration(us)` is `task duration` in `us`."""
    stripped = name.strip().strip("\ufeff\"' \t")
    match = _UNIT.match(stripped)
    if match and match.group(2).lower() in _UNITS:
        return Column(name=name, base=match.group(1).lower(), unit=match.group(2).lower())
    return Column(name=name, base=stripped.lower(), unit="")


_UNITS = {*_TIME_UNITS, "kb", "mb", "gb", "b", "bytes", "byte", "%", "gb/s", "mb/s", "mhz"}

OP_COLUMNS: Final[dict[str, str]] = {
    "rank": "rank",
    "rank id": "rank",
    "step id": "step",
    "infer id": "step",
    "iteration id": "step",
    "device_id": "device",
    "device id": "device",
    "stream id": "stream",
    "task id": "task",
    "op name": "name",
    "name": "name",
    "op type": "type",
    "type": "type",
    "task type": "core",
    "accelerator core": "core",
    "task start time": "start_ns",
    "start time": "start_ns",
    "task duration": "duration_ns",
    "duration": "duration_ns",
    "task wait time": "wait_ns",
    "wait time": "wait_ns",
    "block dim": "block_num",
    "block num": "block_num",
    "input shapes": "input_shapes",
    "input data types": "input_types",
    "input formats": "input_formats",
    "output shapes": "output_shapes",
    "output data types": "output_types",
    "output formats": "output_formats",
    "op state": "state",
    "module": "module",
    "flops": "flops",
    "size": "bytes",
    "kernel name": "kernel",
    "connection id": "correlation",
    "launch time": "launch_ns",
}
"""Columns of the op table, by their names in op_summary or kernel_details without the unit."""

IGNORED_COLUMNS: Final = {
    "model name",
    "model id",
    "context id",
    "hf32 eligible",
    "mix block dim",
    "mix block num",
    "op_state",
}

TABLE_KINDS: Final[tuple[tuple[str, frozenset[str]], ...]] = tuple(
    (kind, frozenset(names.split("|")))
    for kind, names in (
        ("op_summary", "op name|task duration"),
        ("op_summary", "op name|op type|task type|duration"),
        ("kernel_details", "name|duration|accelerator core"),
        ("op_statistic", "op type|core type|count|total time"),
        ("communication_statistic", "op type|count|total time|ratio"),
        ("aicpu", "node|compute_time"),
        ("task_time", "kernel_name|kernel_type|task_time"),
        ("task_time_2022", "time|count|waiting|running|pending|op name"),
        ("step_trace", "iteration id|fp start|bp end"),
        ("cluster_step_trace_time", "step|type|index|computing|free"),
        ("step_trace_time", "step|computing|communication|free"),
        ("api_statistic", "level|api name|count"),
        ("runtime_statistic", "name|type|time|count|avg"),
        ("fusion_op", "fusion op|original ops"),
        ("operator_details", "name|host self duration|device self duration"),
        ("operator_memory", "name|size|allocation time"),
        ("memory_record", "component|timestamp|total allocated"),
        ("npu_module_mem", "component|timestamp|total reserved|device"),
        ("l2_cache", "task id|hit rate|victim rate"),
        ("dp", "timestamp|action|source"),
        ("aicpu_mi", "node name|start|end|queue size"),
        ("mindspore_aicpu", "serial_number|kernel_type|total_time"),
        ("mindspore_op_type", "op_type|execution_time|execution_frequency"),
        ("mindspore_op_detail", "full_op_name|execution_time"),
        ("mindspore_framework", "task_id|stream_id|full_op_name|op_info"),
        ("mindspore_step_trace", "step_num|fp_point|bp_point"),
        ("mindspore_hccl", "step_num|communication_cost|wait_cost"),
    )
)
"""Kinds of tables by the columns that their header must have; the first match counts."""


def kind_of(names: Sequence[str]) -> str:
    """The kind of table with this header; empty if unknown."""
    bases = {column(name).base for name in names}
    return next((kind for kind, needed in TABLE_KINDS if needed <= bases), "")
