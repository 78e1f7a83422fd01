"""MindSpore's costs of collectives, of 2020 to 2022."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from jumar.ground.json_text import parse_json
from jumar.profiling.profile import COLLECTIVES_SCHEMA, LINKS_SCHEMA
from jumar.profiling.reading.exact import nanoseconds_of
from jumar.profiling.reading.mindspore.tables import PRODUCER
from jumar.profiling.reading.part import Part
from jumar.profiling.reading.tables.csv_text import read_text


def read_hccl(path: Path, shown: str, kind: str) -> Part:
    """`hccl_raw_<device>.csv`: one row per step, with its collectives and links as JSON in a field.

    For each op it gives the milliseconds of sending and of waiting; it does not give
    the start. The row of averages, whose step is `-`, is left out.
    """
    times: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    text = read_text(path, shown)
    named = ("step_num", "communication_operator_cost")
    if set(named) <= set(text.names):
        steps = text.number("step_num", lambda column: column.cast(pl.Int64, strict=False))
        for row, (step, costs) in enumerate(zip(steps, text.frame[named[1]], strict=True)):
            if step is not None:
                _take_step(step, costs, times, links, partial(text.lost, row, named[1]))
    return Part(
        file=shown,
        kind=kind,
        producer=PRODUCER,
        collectives=pl.DataFrame(times, schema=dict(COLLECTIVES_SCHEMA), strict=False),
        links=pl.DataFrame(links, schema=dict(LINKS_SCHEMA), strict=False),
        missing=text.missing(),
    )


def _take_step(
    step: int,
    costs: Any,
    times: list[dict[str, Any]],
    links: list[dict[str, Any]],
    lost: Callable[[object], None],
) -> None:
    try:
        tree = parse_json(costs) if isinstance(costs, str) else {}
    except ValueError:
        lost(costs)
        return
    for name, values in (tree if isinstance(tree, dict) else {}).items():
        if not isinstance(values, list) or len(values) < 4:
            lost(values)
            continue
        transit, wait = nanoseconds_of(values[1], "ms"), nanoseconds_of(values[2], "ms")
        if transit is None or wait is None:
            lost(values)
            continue
        place = {"step": step, "name": name}
        spent = {"elapse_ns": transit + wait, "transit_ns": transit, "wait_ns": wait}
        times.append({**place, **spent})
        links += [{**place, **link} for link in _links(values[3])]


def _links(tree: Any) -> list[dict[str, Any]]:
    """`{"1-0": {"SDMA": [ms, KB, KB a second]}}` as rows."""
    rows: list[dict[str, Any]] = []
    for link, transports in (tree if isinstance(tree, dict) else {}).items():
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
