"""Detects op tables of one capture that cannot belong to one device."""

from collections.abc import Sequence
from typing import Final

import polars as pl

from jumar.profiling.profile import END, Missing
from jumar.profiling.reading.file_content import FileContent

SAME_OP: Final = ("device", "stream", "task", "name", "start_ns", "duration_ns")
"""Rows that are equal in these columns are the same op."""

_OP_TABLES: Final = ("kernel_details", "op_summary")
_CONCURRENT_SHARE: Final = 0.05
"""If at least this share of a table's ops start while an op of another table runs, they belong to
different devices: tables of one device cover consecutive time slices."""
_MAX_COMPARED: Final = 20
"""Maximum number of tables to compare; a capture of many iterations has hundreds."""


def notes_on_overlap(contents: Sequence[FileContent]) -> list[Missing]:
    """Notes on op tables of a capture that overlap, so that they cannot belong to one device."""
    tables = [
        (content.file, content.ops)
        for content in contents
        if content.kind in _OP_TABLES
        and content.ops is not None
        and "rank" not in content.ops.columns
        and content.ops.height
    ][:_MAX_COMPARED]
    notes: list[Missing] = []
    for index, (file, ops) in enumerate(tables):
        other_file = next(
            (name for name, other in tables[:index] if _run_concurrently(other, ops)), None
        )
        if other_file is not None:
            what = (
                f"its rank: its ops overlap those of {other_file}, so they ran on another device; "
                "put each rank's files into a separate folder"
            )
            notes.append(Missing(file=file, what=what, needed_for=("ranks", "gate")))
    return notes


def _run_concurrently(table: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether many ops of `other` start while an op of `table` runs."""
    shared_columns = [name for name in SAME_OP if name in table.columns and name in other.columns]
    if not {"start_ns", "duration_ns"} <= set(shared_columns):
        return False
    other_only = other.join(table, on=shared_columns, how="anti", nulls_equal=True)
    if "device" in shared_columns:
        other_only = other_only.join(
            table.select("device").unique(), on="device", how="semi", nulls_equal=True
        )
    intervals = [
        table.select("start_ns", end_ns=END).drop_nulls().sort("start_ns")
        for table in (table, other_only)
    ]
    running = intervals[0].with_columns(pl.col("end_ns").cum_max().alias("until_ns"))
    started = intervals[1].join_asof(running, on="start_ns", strategy="backward")
    concurrent = int((started["until_ns"] > started["start_ns"]).sum())
    return concurrent > 1 and concurrent >= _CONCURRENT_SHARE * other.height
