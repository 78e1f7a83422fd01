"""Layers from the torch.nn module calls and autograd sequence numbers in a database."""

from typing import Final

import polars as pl

from jumar.profiling.reading.databases.database_tables import ReadColumns, Texts, text_of
from jumar.profiling.reading.layers import (
    AUTOGRAD_NODE,
    MODULE_CALL,
    Backward,
    LayersOverTime,
    nodes_around,
)

_CALL_COLUMNS: Final = ("globalTid", "startNs", "endNs", "name", "sequenceNumber", "fwdThreadId")


def layers_of(read: ReadColumns, texts: Texts) -> LayersOverTime:
    """The layers of a database; threads are `globalTid`.

    Args:
        read: Reads columns of a table.
        texts: The strings by their ids (STRING_IDS).
    """
    calls = (
        read("PYTORCH_API", dict.fromkeys(_CALL_COLUMNS, pl.Int64))
        .drop_nulls(("globalTid", "startNs", "endNs"))
        .select(
            pl.col("globalTid").alias("thread"),
            pl.col("startNs").alias("start_ns"),
            (pl.col("endNs") - pl.col("startNs")).alias("duration_ns"),
            text_of("name", texts),
            pl.col("sequenceNumber").alias("sequence"),
            (pl.col("fwdThreadId") > 0).alias("is_backward"),
        )
    )
    modules = calls.filter(pl.col("name").str.contains(MODULE_CALL).fill_null(False))
    return LayersOverTime(modules, _backward(calls if modules.height else modules))


def _backward(calls: pl.DataFrame) -> Backward:
    """The autograd nodes, with the ops of the forward pass that have the same sequence number.

    Threads count independently, so numbers used in the forward pass of two threads are ignored.
    """
    numbered = calls.filter(pl.col("sequence") >= 0).sort("start_ns", maintain_order=True)
    forward = numbered.filter(~pl.col("is_backward"))
    forward = forward.filter(pl.col("thread").n_unique().over("sequence") == 1).unique(
        "sequence", keep="last", maintain_order=True
    )
    backward_ops = numbered.filter("is_backward").join(
        forward.select("sequence", "thread", "start_ns"),
        on="sequence",
        suffix="_forward",
        maintain_order="left",
    )
    nodes = calls.filter(pl.col("name").str.contains(AUTOGRAD_NODE).fill_null(False))
    node_rows = nodes_around(nodes, backward_ops)
    return Backward(
        nodes[node_rows.drop_nulls()],
        backward_ops.filter(node_rows.is_not_null()).select(
            pl.col("thread_forward").alias("thread"), pl.col("start_ns_forward").alias("start_ns")
        ),
    )
