"""What allocated memory, and when, from a profiler's allocator events."""

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
"""Ops that only allocate; the op around them is the one that needed the memory."""

_RECORD: Final = {
    "component": pl.String,
    "timestamp_ns": pl.Int64,
    "total_allocated_bytes": pl.Int64,
    "total_reserved_bytes": pl.Int64,
    "total_active_bytes": pl.Int64,
    "device_type": pl.String,
}
_OPERATOR: Final = {
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
    """`memory_record` and `operator_memory`, in the form in which the reader returns torch_npu's.

    Args:
        events: The events of a torch.profiler trace, recorded with or without memory.
        base_ns: The origin of the trace's clock.

    Returns:
        The tables; empty if no memory was recorded.
    """
    moments = sorted(
        (event for event in events if event.get("name") == EVENT and event.get("args")),
        key=start_of,
    )
    if not moments:
        return {}
    return {
        "memory_record": _over_time(moments, base_ns),
        "operator_memory": _allocations(moments, events, base_ns),
    }


def _over_time(moments: Sequence[Event], base_ns: int) -> pl.DataFrame:
    rows = [
        (
            COMPONENT,
            start_of(event) + base_ns,
            event["args"].get("Total Allocated"),
            _reserved(event["args"]),
            None,
            _device(event["args"]),
        )
        for event in moments
    ]
    return pl.DataFrame(rows, schema=_RECORD, orient="row", strict=False)


def _allocations(moments: Sequence[Event], events: Sequence[Event], base_ns: int) -> pl.DataFrame:
    """One row per allocation with its release; earlier allocations are not known."""
    ops = [event for event in events if event.get("cat") == "cpu_op"]
    computing_ops = Spans([(op, op) for op in ops if op.get("name") not in _ALLOCATE_ONLY], {})
    all_ops = Spans([(op, op) for op in ops], {})
    open_: dict[tuple[str, object], dict[str, Any]] = {}
    rows: list[dict[str, Any]] = []
    for event in moments:
        facts = event["args"]
        size, device = facts.get("Bytes"), _device(facts)
        address = device, facts.get("Addr")
        if not isinstance(size, int):
            continue
        moment = start_of(event) + base_ns
        if size < 0:
            row = open_.pop(address, None)
            if row is not None:
                row["release_time_ns"] = moment
                row["duration_ns"] = moment - row["allocation_time_ns"]
                row["release_total_allocated_bytes"] = facts.get("Total Allocated")
                row["release_total_reserved_bytes"] = _reserved(facts)
            continue
        op = computing_ops.at(event) or all_ops.at(event)
        open_[address] = {
            **dict.fromkeys(_OPERATOR),
            "name": str(op.get("name", "")),
            "size_bytes": size,
            "allocation_time_ns": moment,
            "allocation_total_allocated_bytes": facts.get("Total Allocated"),
            "allocation_total_reserved_bytes": _reserved(facts),
            "device_type": device,
            "module": op.get("args", {}).get(MODULE),
        }
        rows.append(open_[address])
    return pl.DataFrame(rows, schema=_OPERATOR, orient="row", strict=False)


def _reserved(facts: Mapping[str, Any]) -> object:
    """None on a CPU, which reserves nothing: 0 would mean less is reserved than allocated."""
    return facts.get("Total Reserved") if facts.get("Device Type") != 0 else None


def _device(facts: Mapping[str, Any]) -> str:
    kind = _DEVICES.get(facts.get("Device Type", -1), "other")
    number = facts.get("Device Id")
    return f"{kind}:{number}" if isinstance(number, int) and number >= 0 else kind


def base_of(around: Mapping[str, Any]) -> int:
    """The origin of a trace's clock."""
    return nanoseconds_of(around.get("baseTimeNanoseconds"), "ns") or 0
