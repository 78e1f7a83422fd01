"""Tables of memory over time and of allocations, from a profiler's allocator events."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from jumar.profiling.reading.exact import nanoseconds_of
from jumar.training.profiling.layers import MODULE, Event, Spans, start_of

EVENT: Final = "[memory]"
COMPONENT: Final = "PyTorch"
_DEVICES: Final = {0: "CPU", 1: "CUDA"}
_ALLOCATE_ONLY: Final = (
    "aten::empty",
    "aten::empty_like",
    "aten::empty_strided",
    "aten::new_empty",
    "aten::new_empty_strided",
    "aten::resize_",
)
"""Ops that only allocate memory for the op around them."""

_RECORD_SCHEMA: Final = {
    "component": pl.String,
    "timestamp_ns": pl.Int64,
    "total_allocated_bytes": pl.Int64,
    "total_reserved_bytes": pl.Int64,
    "total_active_bytes": pl.Int64,
    "device_type": pl.String,
}
_ALLOCATION_SCHEMA: Final = {
    "name": pl.String,
    "size_bytes": pl.Int64,
    "allocation_time_ns": pl.Int64,
    "release_time_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "allocation_total_allocated_bytes": pl.Int64,
    "allocation_total_reserved_bytes": pl.Int64,
    "release_total_allocated_bytes": pl.Int64,
    "release_total_reserved_bytes": pl.Int64,
    "device_type": pl.String,
    "module": pl.String,
}


def memory_tables(events: Sequence[Event], base_ns: int) -> dict[str, pl.DataFrame]:
    """The tables `memory_record` and `operator_memory`, in the form of those from torch_npu.

    Args:
        events: The events of a torch.profiler trace, recorded with or without memory.
        base_ns: The origin of the trace's clock.

    Returns:
        The tables by name; empty if no memory was recorded.
    """
    memory_events = sorted(
        (event for event in events if event.get("name") == EVENT and event.get("args")),
        key=start_of,
    )
    if not memory_events:
        return {}
    return {
        "memory_record": _over_time(memory_events, base_ns),
        "operator_memory": _allocations(memory_events, events, base_ns),
    }


def _over_time(memory_events: Sequence[Event], base_ns: int) -> pl.DataFrame:
    rows = [
        (
            COMPONENT,
            start_of(event) + base_ns,
            event["args"].get("Total Allocated"),
            _reserved(event["args"]),
            None,
            _device(event["args"]),
        )
        for event in memory_events
    ]
    return pl.DataFrame(rows, schema=_RECORD_SCHEMA, orient="row", strict=False)


def _allocations(
    memory_events: Sequence[Event], events: Sequence[Event], base_ns: int
) -> pl.DataFrame:
    """One row per allocation, with its release; allocations before the recording are missing."""
    ops = [event for event in events if event.get("cat") == "cpu_op"]
    computing_ops = Spans([(op, op) for op in ops if op.get("name") not in _ALLOCATE_ONLY], {})
    all_ops = Spans([(op, op) for op in ops], {})
    live: dict[tuple[str, object], dict[str, Any]] = {}
    rows: list[dict[str, Any]] = []
    for event in memory_events:
        arguments = event["args"]
        size, device = arguments.get("Bytes"), _device(arguments)
        address = device, arguments.get("Addr")
        if not isinstance(size, int):
            continue
        moment = start_of(event) + base_ns
        if size < 0:
            row = live.pop(address, None)
            if row is not None:
                row["release_time_ns"] = moment
                row["duration_ns"] = moment - row["allocation_time_ns"]
                row["release_total_allocated_bytes"] = arguments.get("Total Allocated")
                row["release_total_reserved_bytes"] = _reserved(arguments)
            continue
        op = computing_ops.at(event) or all_ops.at(event)
        live[address] = {
            **dict.fromkeys(_ALLOCATION_SCHEMA),
            "name": str(op.get("name", "")),
            "size_bytes": size,
            "allocation_time_ns": moment,
            "allocation_total_allocated_bytes": arguments.get("Total Allocated"),
            "allocation_total_reserved_bytes": _reserved(arguments),
            "device_type": device,
            "module": op.get("args", {}).get(MODULE),
        }
        rows.append(live[address])
    return pl.DataFrame(rows, schema=_ALLOCATION_SCHEMA, orient="row", strict=False)


def _reserved(arguments: Mapping[str, Any]) -> object:
    """The reserved bytes; None on a CPU, which reserves nothing but reports 0."""
    return arguments.get("Total Reserved") if arguments.get("Device Type") != 0 else None


def _device(arguments: Mapping[str, Any]) -> str:
    kind = _DEVICES.get(arguments.get("Device Type", -1), "other")
    number = arguments.get("Device Id")
    return f"{kind}:{number}" if isinstance(number, int) and number >= 0 else kind


def base_of(trace: Mapping[str, Any]) -> int:
    """The origin of a trace's clock."""
    return nanoseconds_of(trace.get("baseTimeNanoseconds"), "ns") or 0
