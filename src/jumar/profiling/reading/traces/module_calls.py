"""Layers from the torch.nn module calls and autograd arrows of a trace."""

import polars as pl

from jumar.profiling.reading.layers import (
    AUTOGRAD_NODE,
    MODULE_CALL,
    Backward,
    LayersOverTime,
    nodes_around,
)
from jumar.profiling.reading.traces.trace import Trace

_SPAN = ("thread", "start_ns", "duration_ns")


def layers_of(trace: Trace) -> LayersOverTime:
    """The layers of a trace; threads and times are as in its tables."""
    texts = trace.texts
    names = texts.matching(MODULE_CALL)
    calls = trace.python.joined(
        rows.filter(pl.col("name").is_in(names))
        for rows in (trace.python.frames(*_SPAN, "name") if names else ())
    ).select(*_SPAN, "name")
    modules = calls.with_columns(texts.texts_of(calls["name"]))
    return LayersOverTime(modules, _backward(trace) if modules.height else _no_backward(calls))


def _backward(trace: Trace) -> Backward:
    """The autograd nodes at which arrows end, with the ops at which those arrows start."""
    forward = trace.forward.joined(trace.forward.frames()).drop_nulls("arrow")
    arrow_ends = trace.backward.joined(trace.backward.frames()).drop_nulls("arrow")
    arrows = arrow_ends.unique("arrow", keep="first", maintain_order=True).join(
        forward.unique("arrow", keep="first", maintain_order=True),
        on="arrow",
        suffix="_forward",
        maintain_order="left",
    )
    nodes = trace.calls_named(AUTOGRAD_NODE).select(_SPAN)
    node_rows = nodes_around(nodes, arrows)
    arrows = arrows.filter(node_rows.is_not_null())
    return Backward(
        nodes[node_rows.drop_nulls()],
        arrows.select(
            pl.col("thread_forward").alias("thread"), pl.col("start_ns_forward").alias("start_ns")
        ),
    )


def _no_backward(calls: pl.DataFrame) -> Backward:
    nodes = calls.select(_SPAN).clear()
    return Backward(nodes, nodes.select("thread", "start_ns"))
