"""The timeline: ops as boxes on lanes, host calls, and memory, as data for the page."""

from typing import Any, Final

import polars as pl

from jumar.ground.text import Language
from jumar.profiling.columns import largest_first
from jumar.profiling.page.host_lanes import host_lanes
from jumar.profiling.page.levels import detail_level, zoom_levels
from jumar.profiling.page.memory_curve import memory_curves
from jumar.profiling.page.op_groups import OpGroups
from jumar.profiling.page.time_range import TimeRange
from jumar.profiling.profile import COMMUNICATION, Profile
from jumar.profiling.texts import texts_in, with_rank
from jumar.profiling.views.windows import steady, step_windows

MAX_BOXES: Final = 110_000
"""Maximum number of boxes on all levels together, except the level of the detailed step."""
MAX_IN_DETAIL: Final = 40_000
"""Maximum number of boxes of the detailed step; a longer step is cut."""
MAX_LANES: Final = 24


def timeline(
    ops: pl.DataFrame,
    op_groups: OpGroups,
    profile: Profile,
    time_range: TimeRange,
    language: Language,
) -> dict[str, Any]:
    """The lanes with their boxes, as data for the page.

    Args:
        ops: Ops with start and duration.
        op_groups: The groups of the ops.
        profile: The profile with steps, host calls and memory.
        time_range: The time range of the page.
        language: Language of the lane names.
    """
    lane_ops = ops.select(
        pl.col("rank").fill_null(0).alias("rank"),
        pl.when(pl.col("core").eq_missing(COMMUNICATION))
        .then(pl.lit("communication"))
        .otherwise(pl.lit(""))
        .alias("use"),
        pl.col("stream").fill_null("").alias("stream"),
        "start_ns",
        "duration_ns",
        (pl.col("start_ns") - pl.col("launch_ns")).alias("launch"),
    ).with_columns(op_groups.group_of_op.alias("label"))
    lane_count = lane_ops.select("rank", "use", "stream").n_unique()
    lanes = _lanes(lane_ops)
    names = [_lane_name(row, profile, language) for row in lanes.sort("lane").iter_rows(named=True)]
    lane_ops = lane_ops.join(
        lanes, on=["rank", "use", "stream"], how="inner", maintain_order="left"
    )
    lane_ops = lane_ops.sort("start_ns", maintain_order=True)
    boxes = lane_ops.select(
        pl.col("lane").cast(pl.Int32),
        (pl.col("start_ns") - time_range.origin).alias("start"),
        (pl.col("start_ns") - time_range.origin + pl.col("duration_ns")).alias("end"),
        pl.col("duration_ns").alias("busy"),
        "label",
        *(["launch"] if lane_ops["launch"].null_count() < lane_ops.height else []),
    )
    windows = step_windows(profile)
    detail = _detail_level(boxes, windows, time_range.origin, lanes)
    levels = zoom_levels(boxes, span=time_range.span, lanes=lanes.height, max_boxes=MAX_BOXES)
    in_detail = (int(detail[0]["from"]), int(detail[0]["to"])) if detail else None
    return {
        "span": time_range.span,
        "lanes": names,
        "ranks": lanes.sort("lane")["rank"].to_list(),
        "left_out": lane_count - lanes.height,
        "levels": levels + detail,
        "steps": [
            [int(row["rank"]), int(row["step"])]
            + [int(row[name]) - time_range.origin for name in ("begin_ns", "end_ns")]
            for row in windows.head(500).iter_rows(named=True)
        ],
        "host": host_lanes(profile, time_range, in_detail, language),
        "memory": memory_curves(profile, time_range, language),
    }


def _lanes(lane_ops: pl.DataFrame) -> pl.DataFrame:
    """The lanes with the longest total time, by rank."""
    return (
        lane_ops.group_by("rank", "use", "stream")
        .agg(pl.col("duration_ns").sum().alias("total"))
        .pipe(largest_first, "total", "rank", "use", "stream")
        .head(MAX_LANES)
        .sort("rank", "use", "stream")
        .drop("total")
        .with_row_index("lane")
    )


def _lane_name(row: dict[str, Any], profile: Profile, language: Language) -> str:
    texts = texts_in(language)
    stream = row["stream"]
    name = texts["thread" if profile.kind == "cpu" else "stream"].format(name=stream)
    if not stream:
        name = texts["only_ops"]
    if row["use"]:
        name = f"{texts[row['use']]} {stream}".rstrip()
    return with_rank(name, row["rank"], profile, language)


def _detail_level(
    boxes: pl.DataFrame, windows: pl.DataFrame, origin: int, lanes: pl.DataFrame
) -> list[dict[str, Any]]:
    """A level with every op of a steady step, unless the other levels have all ops."""
    steps = steady(windows)
    if boxes.height <= MAX_BOXES // 3 or steps.is_empty():
        return []
    durations = (steps["end_ns"] - steps["begin_ns"]).to_list()
    middle = sorted(range(len(durations)), key=durations.__getitem__)[len(durations) // 2]
    low = int(steps["begin_ns"][middle]) - origin
    high = int(steps["end_ns"][middle]) - origin
    return [detail_level(boxes, low, high, lanes=lanes.height, max_boxes=MAX_IN_DETAIL)]
