"""Boxes on timeline lanes at zoom levels from coarse to fine, with a bounded total number."""

from typing import Any, Final

import polars as pl

_COARSEST_BOXES: Final = 1024
"""Time resolution of the coarsest level, about the width of a screen in pixels."""
_REFINEMENT: Final = 6


def pack_level(level: pl.DataFrame, *, width: int, lanes: int) -> dict[str, Any]:
    """A level as data for the page.

    Each lane has six lists: differences between starts, lengths, labels, counts, busy times, and
    how long before its start each box was launched. Counts and busy times are empty if each box is
    a single op; launches are empty otherwise, or if none is known.
    """
    lane_data: list[list[list[int | None]]] = []
    is_exact = bool((level["count"] == 1).all())
    has_launches = is_exact and "launch" in level.columns
    boxes_by_lane = level.partition_by("lane", as_dict=True)
    for lane in range(lanes):
        boxes = boxes_by_lane.get((lane,))
        if boxes is None:
            lane_data.append([[], [], [], [], [], []])
            continue
        lane_data.append(
            [
                boxes["start"].diff().fill_null(boxes["start"][0]).to_list(),
                (boxes["end"] - boxes["start"]).to_list(),
                boxes["label"].to_list(),
                [] if is_exact else boxes["count"].to_list(),
                [] if is_exact else boxes["busy"].to_list(),
                boxes["launch"].to_list() if has_launches else [],
            ]
        )
    return {"width": width, "lanes": lane_data}


def detail_level(
    boxes: pl.DataFrame, low: int, high: int, *, lanes: int, max_boxes: int
) -> dict[str, Any]:
    """A level with every box of a time range; beyond `max_boxes`, the range ends earlier."""
    inside = boxes.filter((pl.col("start") < high) & (pl.col("end") > low))
    inside = inside.sort("start", maintain_order=True)
    if inside.height > max_boxes:
        high = int(inside["start"][max_boxes])
    level = inside.head(max_boxes).sort("lane", "start", maintain_order=True)
    level = level.with_columns(pl.lit(1, pl.Int64).alias("count"))
    packed = pack_level(level, width=0, lanes=lanes)
    return packed | {"from": low, "to": high}


def _merged(boxes: pl.DataFrame, width: int) -> pl.DataFrame:
    """The boxes of a level, with those shorter than `width` merged.

    A merged box has the label of its longest op, and the number and total time of its ops.
    """
    launch = [pl.col("launch").first()] if "launch" in boxes.columns else []
    is_short = pl.col("busy") < width
    group = pl.when(is_short).then(pl.col("start") // width).otherwise(-1 - pl.col("row"))
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


def zoom_levels(
    boxes: pl.DataFrame, *, span: int, lanes: int, max_boxes: int
) -> list[dict[str, Any]]:
    """Increasingly fine levels, until one has every box or there would be too many boxes.

    Args:
        boxes: `lane`, `label`, `start`, `end` and `busy` (ns); optionally `launch`, how long
            before its start each box was launched (ns).
        span: Length of the timeline (ns).
        lanes: Number of lanes, including empty ones.
        max_boxes: Maximum number of boxes on all levels; the coarsest level is always included.
    """
    levels: list[dict[str, Any]] = []
    width, total = max(span // _COARSEST_BOXES, 1), 0
    while True:
        level = _merged(boxes, width)
        total += level.height
        if levels and total > max_boxes:
            return levels
        is_exact = level.height == boxes.height
        levels.append(pack_level(level, width=0 if is_exact else width, lanes=lanes))
        if is_exact or width == 1:
            return levels
        width = max(width // _REFINEMENT, 1)
