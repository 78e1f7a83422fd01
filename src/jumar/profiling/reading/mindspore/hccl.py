"""Collectives in the files of MindSpore from 2020 to 2022."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from jumar.ground.json_text import parse_json
from jumar.profiling.profile import COLLECTIVES_SCHEMA, LINKS_SCHEMA
from jumar.profiling.reading.exact import nanoseconds_of, whole_number
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.mindspore.tables import PRODUCER
from jumar.profiling.reading.tables.csv_text import read_text


def read_hccl(path: Path, display_name: str, kind: str) -> FileContent:
    """`hccl_raw_<device>.csv`: one row per step, with its collectives and links as JSON in a field.

    It has the transfer and wait time of each op in milliseconds, but not its start. The row of
    averages, whose step is `-`, is skipped.
    """
    times: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    text = read_text(path, display_name)
    needed = ("step_num", "communication_operator_cost")
    if set(needed) <= set(text.names):
        steps = text.number("step_num", lambda column: column.cast(pl.Int64, strict=False))
        for row, (step, costs) in enumerate(zip(steps, text.frame[needed[1]], strict=True)):
            if step is not None:
                _add_step(step, costs, times, links, partial(text.count_lost, row, needed[1]))
    return FileContent(
        file=display_name,
        kind=kind,
        producer=PRODUCER,
        collectives=pl.DataFrame(times, schema=dict(COLLECTIVES_SCHEMA), strict=False),
        links=pl.DataFrame(links, schema=dict(LINKS_SCHEMA), strict=False),
        missing=text.missing(),
    )


def _add_step(
    step: int,
    costs: Any,
    times: list[dict[str, Any]],
    links: list[dict[str, Any]],
    count_lost: Callable[[object], None],
) -> None:
    try:
        tree = parse_json(costs) if isinstance(costs, str) else {}
    except ValueError:
        count_lost(costs)
        return
    for name, values in (tree if isinstance(tree, dict) else {}).items():
        if not isinstance(values, list) or len(values) < 4:
            count_lost(values)
            continue
        transit, wait = nanoseconds_of(values[1], "ms"), nanoseconds_of(values[2], "ms")
        if transit is None or wait is None:
            count_lost(values)
            continue
        identity = {"step": step, "name": name}
        spent = {"elapse_ns": transit + wait, "transit_ns": transit, "wait_ns": wait}
        times.append({**identity, **spent})
        links += [{**identity, **link} for link in _links(values[3])]


def _links(tree: Any) -> list[dict[str, Any]]:
    """`{"1-0": {"SDMA": [ms, KB, KB/s]}}` as rows."""
    rows: list[dict[str, Any]] = []
    for link, transports in (tree if isinstance(tree, dict) else {}).items():
        source, target = (whole_number(rank, 6) for rank in str(link).partition("-")[::2])
        if not isinstance(transports, dict) or source is None or target is None:
            continue
        for transport, values in transports.items():
            if not isinstance(values, list) or len(values) < 2:
                continue
            # Sizes are in units of 1000 bytes, so they convert like microseconds.
            duration, size = nanoseconds_of(values[0], "ms"), nanoseconds_of(values[1], "us")
            rows.append(
                {
                    "transport": str(transport),
                    "source": source,
                    "destination": target,
                    "size_bytes": size,
                    "transit_ns": duration,
                    "bandwidth_gb_s": size / duration if size and duration else None,
                }
            )
    return rows
