"""Calls of torch.nn modules in a database, and the sequence numbers that lead to their backward."""

from typing import Final

import polars as pl

from jumar.profiling.reading.databases.database_tables import Read, Texts
from jumar.profiling.reading.layers import MODULE, NODE, Backward, Layers, nodes_around

_NUMBERS: Final = ("globalTid", "startNs", "endNs", "name", "sequenceNumber", "fwdThreadId")


def layers_of(read: Read, texts: Texts) -> Layers:
    """The layers of a database by `globalTid` and time.

    Args:
        read: Columns of a table by name.
        texts: The texts behind the numbers.
    """
    name = pl.col("name").replace_strict(texts, default=None, return_dtype=pl.String)
    calls = (
        read("PYTORCH_API", dict.fromkeys(_NUMBERS, pl.Int64))
        .drop_nulls(("globalTid", "startNs", "endNs"))
        .select(
            pl.col("globalTid").alias("thread"),
            pl.col("startNs").alias("start_ns"),
            (pl.col("endNs") - pl.col("startNs")).alias("duration_ns"),
            name,
            pl.col("sequenceNumber").alias("sequence"),
            (pl.col("fwdThreadId") > 0).alias("is_backward"),
        )
    )
    modules = calls.filter(pl.col("name").str.contains(MODULE).fill_null(False))
    return Layers(modules, _backward(calls if modules.height else modules))


def _backward(calls: pl.DataFrame) -> Backward:
    """The nodes of autograd by the numbers that the ops in them share with ops forward.

    Each thread counts on its own, so a number that ops forward of two threads have is left out.
    """
    numbered = calls.filter(pl.col("sequence") >= 0).sort("start_ns", maintain_order=True)
    forward = numbered.filter(~pl.col("is_backward"))
    forward = forward.filter(pl.col("thread").n_unique().over("sequence") == 1).unique(
        "sequence", keep="last", maintain_order=True
    )
    both = numbered.filter("is_backward").join(
        forward.select("sequence", "thread", "start_ns"),
        on="sequence",
        suffix="_forward",
        maintain_order="left",
    )
    nodes = calls.filter(pl.col("name").str.contains(NODE).fill_null(False))
    place = nodes_around(nodes, both)
    return Backward(
        nodes[place.drop_nulls()],
        both.filter(place.is_not_null()).select(
            pl.col("thread_forward").alias("thread"), pl.col("start_ns_forward").alias("start_ns")
        ),
    )
