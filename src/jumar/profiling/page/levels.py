"""Boxes on lanes of time in levels from coarse to fine, so that their number is bounded."""

from typing import Any, Final

import polars as pl

_COARSEST: Final = 1024
"""Moments that the coarsest level distinguishes, about as many as a screen has pixels."""
_FINER: Final = 6


def packed(level: pl.DataFrame, *, width: int, lanes: int) -> dict[str, Any]:
    """A level for the page.

    For each lane: steps from start to start, lengths, labels, counts, busy times, and how long
    before its start each box was launched. Counts and busy times are left out where each box is
    one op, launches where it is not or where none is known.
    """
    rows: list[list[list[int | None]]] = []
    single = bool((level["count"] == 1).all())
    launched = single and "launch" in level.columns
    parts = level.partition_by("lane", as_dict=True)
    for lane in range(lanes):
        own = parts.get((lane,))
        if own is None:
            rows.append([[], [], [], [], [], []])
            continue
        rows.append(
            [
                own["start"].diff().fill_null(own["start"][0]).to_list(),
                (own["end"] - own["start"]).to_list(),
                own["label"].to_list(),
                [] if single else own["count"].to_list(),
                [] if single else own["busy"].to_list(),
                own["launch"].to_list() if launched else [],
            ]
        )
    return {"width": width, "lanes": rows}


def _merged(boxes: pl.DataFrame, width: int) -> pl.DataFrame:
    """Boxes of at least a width; shorter ops are merged up to that width.

    A box of several ops has the label of the longest, their number and their total time.
    """
    launch = [pl.col("launch").first()] if "launch" in boxes.columns else []
    short = pl.col("busy") < width
    group = pl.when(short).then(pl.col("start") // width).otherwise(-1 - pl.col("row"))
    return (
        boxes.lazy()
        .with_row_index("row")
        .with_columns(pl.col("row").cast(pl.Int64))
        .with_columns(group.alias("group"))
        .group_by("lane", "group", maintain_order=True)
        .agg(
            pl.col("start").min(),
            pl.col("end").max(),
            pl.len().cast(pl.Int64).alias("count"),
            pl.col("label").get(pl.col("busy").arg_max()),
            pl.col("busy").sum(),
            *launch,
        )
        .sort("lane", "start", "end", maintain_order=True)
        .collect()
    )


def levels_of(boxes: pl.DataFrame, *, span: int, lanes: int, most: int) -> list[dict[str, Any]]:
    """Levels until one shows every box, or until there would be too many boxes.

    Args:
        boxes: `lane`, `start`, `end` and `busy` in nanoseconds, `label`, and optionally `launch`,
            how long before its start a box was launched (ns).
        span: Length of the timeline (ns).
        lanes: Number of lanes; those without boxes are in every level, empty.
        most: The most boxes on all levels together; the coarsest level is always there.
    """
    levels: list[dict[str, Any]] = []
    width, total = max(span // _COARSEST, 1), 0
    while True:
        level = _merged(boxes, width)
        total += level.height
        if levels and total > most:
            return levels
        exact = level.height == boxes.height
        levels.append(packed(level, width=0 if exact else width, lanes=lanes))
        if exact or width == 1:
            return levels
        width = max(width // _FINER, 1)
