"""Calls of torch.nn modules in a trace, and what autograd's arrows say about backward."""

import polars as pl

from jumar.profiling.reading.layers import MODULE, NODE, Backward, Layers, nodes_around
from jumar.profiling.reading.traces.trace import Trace

_SPAN = ("thread", "start_ns", "duration_ns")


def layers_of(trace: Trace) -> Layers:
    """The layers of a trace by thread and time, both as in its tables."""
    texts = trace.texts
    wanted = texts.matching(MODULE)
    calls = trace.python.joined(
        rows.filter(pl.col("name").is_in(wanted))
        for rows in (trace.python.frames(*_SPAN, "name") if wanted else ())
    ).select(*_SPAN, "name")
    modules = calls.with_columns(texts.of(calls["name"]))
    return Layers(modules, _backward(trace) if modules.height else _none(calls))


def _backward(trace: Trace) -> Backward:
    """The nodes of autograd that arrows lead to, with where the arrows start."""
    forward = trace.forward.joined(trace.forward.frames()).drop_nulls("arrow")
    ends = trace.backward.joined(trace.backward.frames()).drop_nulls("arrow")
    arrows = ends.unique("arrow", keep="first", maintain_order=True).join(
        forward.unique("arrow", keep="first", maintain_order=True),
        on="arrow",
        suffix="_forward",
        maintain_order="left",
    )
    nodes = trace.called(NODE).select(_SPAN)
    place = nodes_around(nodes, arrows)
    arrows = arrows.filter(place.is_not_null())
    return Backward(
        nodes[place.drop_nulls()],
        arrows.select(
            pl.col("thread_forward").alias("thread"), pl.col("start_ns_forward").alias("start_ns")
        ),
    )


def _none(calls: pl.DataFrame) -> Backward:
    nodes = calls.select(_SPAN).clear()
    return Backward(nodes, nodes.select("thread", "start_ns"))
