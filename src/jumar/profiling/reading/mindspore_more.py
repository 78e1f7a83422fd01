"""MindSpore's timeline of ops and its costs of collectives, of 2020 to 2022."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl

from jumar.profiling.profile import COLLECTIVES_SCHEMA, LINKS_SCHEMA, Missing
from jumar.profiling.reading.csv_text import read_text
from jumar.profiling.reading.events import EventReader
from jumar.profiling.reading.exact import nanoseconds_of
from jumar.profiling.reading.mindspore import facts_of
from jumar.profiling.reading.opening import opened
from jumar.profiling.reading.part import Part
from jumar.profiling.reading.rows import Rows

_PRODUCER: Final = "mindspore"
_AI_CPU: Final = 9000
"""The process of ops of the AI CPU; those of the AI Core have the number of the device."""
_SIDES: Final = tuple(
    (f"{side}_{what}s", (side, key))
    for side in ("input", "output")
    for what, key in (("shape", "shape"), ("type", "data_type"), ("format", "format"))
)
_OPS: Final = {
    "device": False,
    "stream": True,
    "name": True,
    "type": True,
    "core": True,
    "start_ns": False,
    "duration_ns": False,
    **{name: True for name, _ in _SIDES},
}


def read_timeline(path: Path, shown: str, kind: str) -> Part:
    """`ascend_timeline_display_<device>.json`: each op with its start, shapes and types."""
    rows = Rows(_OPS)
    with opened(path) as file:
        reader = EventReader(file)
        for event in reader:
            row = _op(event)
            if row is not None:
                rows.add(row)
                if rows.full:
                    rows.pack()
        problem = reader.problem
    ops = rows.frame().with_columns(pl.col("device").cast(pl.Int32, strict=False))
    ops = ops.with_columns(
        pl.when(pl.col("core") == "AI_CORE").then(pl.col(name)).alias(name) for name, _ in _SIDES
    )
    return Part(
        file=shown,
        kind=kind,
        producer=_PRODUCER,
        device="npu" if ops.height else None,
        ops=ops if ops.height else None,
        missing=(Missing(file=shown, what=f"the end: {problem}"),) if problem else (),
    )


def _op(event: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """A row of the op table out of a slice of the AI Core or of the AI CPU."""
    start, duration = nanoseconds_of(event.get("ts")), nanoseconds_of(event.get("dur"))
    found = event.get("args")
    facts: Mapping[str, Any] = found if isinstance(found, dict) else {}
    of_cpu = event.get("pid") == _AI_CPU
    if event.get("ph") != "X" or start is None or duration is None or duration < 0:
        return None
    if not of_cpu and not isinstance(facts.get("fullname"), str):
        return None
    device = event.get("pid")
    kind = event.get("name") if of_cpu else facts.get("type")
    sides = facts_of(facts)
    return (
        device if not of_cpu and type(device) is int and 0 <= device < 1 << 20 else None,
        event.get("tid"),
        event.get("name") if of_cpu else facts["fullname"],
        kind,
        "AI_CPU" if of_cpu else "AI_CORE",
        start,
        duration,
        *(sides.get(key, "") for _, key in _SIDES),
    )


def since_start(ops: pl.DataFrame, parts: Sequence[Part]) -> pl.DataFrame:
    """The ops by the device's clock, where they are those of a timeline.

    A timeline counts from its first op of the AI CPU, whose time by that clock stands in the file
    of the AI CPU beside it; steps are told by that clock, too.
    """
    timeline = any(part.kind == "mindspore_timeline" and part.ops is ops for part in parts)
    clocks = [part.statistics["aicpu"] for part in parts if part.kind == "mindspore_aicpu"]
    first = ops.filter(pl.col("core") == "AI_CPU")["start_ns"].min() if timeline else None
    began = clocks[0]["timestamp_ns"].min() if clocks else None
    if not isinstance(first, int) or not isinstance(began, int):
        return ops
    return ops.with_columns(pl.col("start_ns") + (began - first))


def read_hccl(path: Path, shown: str, kind: str) -> Part:
    """`hccl_raw_<device>.csv`: a row a step, with its collectives and links as JSON in a field.

    Of each op it gives the milliseconds in which it sends and in which it waits; its start is not
    there. The row of averages, whose step is `-`, is left out.
    """
    times: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    text = read_text(path)
    named = ("step_num", "communication_operator_cost")
    if set(named) <= set(text.columns):
        for number, costs in text.select(named).iter_rows():
            step = str(number or "").strip()
            if step.isascii() and step.isdigit() and len(step) < 18:
                _take_step(int(step), costs, times, links)
    return Part(
        file=shown,
        kind=kind,
        producer=_PRODUCER,
        collectives=pl.DataFrame(times, schema=dict(COLLECTIVES_SCHEMA), strict=False),
        links=pl.DataFrame(links, schema=dict(LINKS_SCHEMA), strict=False),
    )


def _take_step(
    step: int, costs: Any, times: list[dict[str, Any]], links: list[dict[str, Any]]
) -> None:
    try:
        tree = json.loads(costs) if isinstance(costs, str) else {}
    except (ValueError, RecursionError):
        return
    for name, found in (tree if isinstance(tree, dict) else {}).items():
        if not isinstance(found, list) or len(found) < 4:
            continue
        transit, wait = nanoseconds_of(found[1], "ms"), nanoseconds_of(found[2], "ms")
        if transit is None or wait is None:
            continue
        place = {"step": step, "name": name}
        spent = {"elapse_ns": transit + wait, "transit_ns": transit, "wait_ns": wait}
        times.append({**place, **spent})
        links += [{**place, **link} for link in _links(found[3])]


def _links(found: Any) -> list[dict[str, Any]]:
    """`{"1-0": {"SDMA": [ms, KB, KB a second]}}` as rows."""
    rows: list[dict[str, Any]] = []
    for link, transports in (found if isinstance(found, dict) else {}).items():
        source, _, target = str(link).partition("-")
        if not isinstance(transports, dict) or not (_is_rank(source) and _is_rank(target)):
            continue
        for transport, numbers in transports.items():
            if not isinstance(numbers, list) or len(numbers) < 2:
                continue
            # A size is in thousands of bytes, as a microsecond is of nanoseconds.
            took, size = nanoseconds_of(numbers[0], "ms"), nanoseconds_of(numbers[1], "us")
            rows.append(
                {
                    "transport": str(transport),
                    "source": int(source),
                    "destination": int(target),
                    "size_bytes": size,
                    "transit_ns": took,
                    "bandwidth_gb_s": size / took if size and took else None,
                }
            )
    return rows


def _is_rank(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 7
