"""What the host does while the device is idle: blocking calls, data loading, launching."""

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.profile import Profile
from jumar.profiling.views.intervals import SPAN, difference, spans, union
from jumar.profiling.views.windows import communication_spans, computing_spans, step_windows

BLOCKING = (
    ("aten::item", r"^aten::(item|_local_scalar_dense)$"),
    ("aten::is_nonzero", r"^aten::is_nonzero$"),
    ("aten::nonzero", r"^aten::(nonzero|nonzero_numpy|argwhere)$"),
    ("aten::masked_select", r"^aten::masked_select$"),
    ("aten::unique", r"^aten::_?unique\w*$"),
    ("aten::equal", r"^aten::equal$"),
)
"""Ops whose result the host waits for, and the names that mean them."""

SYNCHRONISATION = (
    r"(?i)aclrtSynchronize|(cuda|cu)(Stream|Device|Event)Synchronize|^cudaMemcpy$|"
    r"^aclrtMemcpy$|aten::(cpu|numpy)$"
)
"""Calls that wait for a stream or the device, or copy from it at once (`.cpu()`)."""

LOADING = r"(?i)dataloader|__next__|get_?next|^data[ _.:-]?(load|wait|next|batch)|^data$"
"""Calls that fetch the next batch."""

_COLLECTING = r"(?i)^gc$|garbage"
_CALLS = ("op", "cann", "runtime", "dequeue")


class Cause(NamedTuple):
    """One reason for a device without work: its intervals are disjoint from those before it."""

    label: Text
    kind: str
    calls: Mapping[int, int]
    longest_ns: Mapping[int, int]
    host: pl.DataFrame
    alone: pl.DataFrame


def causes(profile: Profile) -> list[Cause]:
    """What the host spent time in, the most specific first; `alone` leaves out what came before."""
    host = profile.host.filter(pl.col("duration_ns") > 0)
    known = host.filter(pl.col("layer").is_in(["op", "cann", "runtime", "mark"]))
    asked = [("data", LOADING, Text(en="waiting for data", zh="等待数据"))]
    asked += [("blocking", pattern, Text(en=name, zh=name)) for name, pattern in BLOCKING]
    asked += [
        ("blocking", SYNCHRONISATION, Text(en="stream synchronisation", zh="流同步")),
        ("collector", _COLLECTING, Text(en="garbage collection", zh="垃圾回收")),
    ]
    result: list[Cause] = []
    before = pl.DataFrame(schema=SPAN)
    for kind, pattern, label in asked:
        rows = known.filter(pl.col("name").str.contains(pattern))
        if rows.is_empty():
            continue
        own = union(spans(rows))
        result.append(Cause(label, kind, *_counted(rows), own, difference(own, before)))
        before = union(pl.concat([before, own]))
    # A call that lasts for half a step is not a launch: it runs a whole graph, or the training.
    lasted = step_windows(profile).select(pl.col("end_ns") - pl.col("begin_ns")).to_series()
    long = float(str(lasted.median() or 0)) / 2
    short = (pl.col("duration_ns") < long) | pl.lit(long == 0)
    rest = host.filter(pl.col("layer").is_in(_CALLS) & short)
    if rest.height:
        own = union(spans(rest))
        label = Text(en="launching ops", zh="下发算子")
        result.append(Cause(label, "launching", *_counted(rest), own, difference(own, before)))
    return result


def _counted(rows: pl.DataFrame) -> tuple[dict[int, int], dict[int, int]]:
    """How many calls each rank made, and its longest."""
    table = rows.group_by(pl.col("rank").fill_null(0)).agg(pl.len(), pl.col("duration_ns").max())
    counts = {int(rank): int(count) for rank, count, _ in table.iter_rows()}
    return counts, {int(rank): int(longest) for rank, _, longest in table.iter_rows()}


def free_time(profile: Profile, windows: pl.DataFrame) -> pl.DataFrame:
    """When the device neither computes nor communicates, within the given intervals."""
    busy = pl.concat([union(computing_spans(profile)), communication_spans(profile)])
    return difference(windows, busy)
