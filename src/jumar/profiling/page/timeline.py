"""Ops as boxes on lanes of time, in levels from coarse to fine, so that their number is bounded."""

from typing import Any, Final

import polars as pl

from jumar.ground.text import Language
from jumar.profiling.page.clock import Clock
from jumar.profiling.page.host_lanes import host_lanes
from jumar.profiling.page.labels import Labels
from jumar.profiling.page.levels import levels_of, packed
from jumar.profiling.page.memory_curve import memory_curves
from jumar.profiling.profile import COMMUNICATION, Profile
from jumar.profiling.showing import shown
from jumar.profiling.views.windows import steady, step_windows
from jumar.profiling.words import words

MOST_BOXES: Final = 110_000
"""The most boxes on all levels together, not counting those of the step shown in detail."""
MOST_IN_DETAIL: Final = 40_000
"""Boxes of that step; of a step with more ops, its beginning is there."""
MOST_LANES: Final = 24


def timeline(
    ops: pl.DataFrame, groups: Labels, profile: Profile, clock: Clock, language: Language
) -> dict[str, Any]:
    """The lanes with their boxes, as data for the page.

    Args:
        ops: Ops with start and duration.
        groups: Their labels, row by row.
        profile: For its steps, calls of the host and memory.
        clock: The time that the page shows.
        language: Language of the lanes' names.
    """
    placed = ops.select(
        pl.col("rank").fill_null(0).alias("rank"),
        pl.when(pl.col("core").eq_missing(COMMUNICATION))
        .then(pl.lit("communication"))
        .otherwise(pl.lit(""))
        .alias("use"),
        pl.col("stream").fill_null("").alias("stream"),
        "start_ns",
        "duration_ns",
        (pl.col("start_ns") - pl.col("launch_ns")).alias("launch"),
    ).with_columns(groups.of_op.alias("label"))
    all_lanes = placed.select("rank", "use", "stream").n_unique()
    lanes = _lanes(placed)
    names = [_named(row, profile, language) for row in lanes.sort("lane").iter_rows(named=True)]
    placed = placed.join(lanes, on=["rank", "use", "stream"], how="inner", maintain_order="left")
    placed = placed.sort("start_ns", maintain_order=True)
    boxes = placed.select(
        pl.col("lane").cast(pl.Int32),
        (pl.col("start_ns") - clock.origin).alias("start"),
        (pl.col("start_ns") - clock.origin + pl.col("duration_ns")).alias("end"),
        pl.col("duration_ns").alias("busy"),
        "label",
        *(["launch"] if placed["launch"].null_count() < placed.height else []),
    )
    windows = step_windows(profile)
    detail = _detail(boxes, windows, clock.origin, lanes)
    levels = levels_of(boxes, span=clock.span, lanes=lanes.height, most=MOST_BOXES)
    in_detail = (int(detail[0]["from"]), int(detail[0]["to"])) if detail else None
    return {
        "span": clock.span,
        "lanes": names,
        "ranks": lanes.sort("lane")["rank"].to_list(),
        "left_out": all_lanes - lanes.height,
        "levels": levels + detail,
        "steps": [
            [int(row["rank"]), int(row["step"])]
            + [int(row[name]) - clock.origin for name in ("begin_ns", "end_ns")]
            for row in windows.head(500).iter_rows(named=True)
        ],
        "host": host_lanes(profile, clock, in_detail, language),
        "memory": memory_curves(profile, clock, language),
    }


def _lanes(placed: pl.DataFrame) -> pl.DataFrame:
    """The lanes with the most time, in order of ranks."""
    return (
        placed.group_by("rank", "use", "stream")
        .agg(pl.col("duration_ns").sum().alias("total"))
        .sort("total", "rank", "use", "stream", descending=[True, False, False, False])
        .head(MOST_LANES)
        .sort("rank", "use", "stream")
        .drop("total")
        .with_row_index("lane")
    )


def _named(row: dict[str, Any], profile: Profile, language: Language) -> str:
    say = words(language)
    stream = row["stream"]
    name = say["thread" if profile.kind == "cpu" else "stream"].format(name=stream)
    if not stream:
        name = say["only_ops"]
    if row["use"]:
        name = f"{say[row['use']]} {stream}".rstrip()
    several = len(profile.ranks) > 1
    return shown(say["of_rank"].format(rank=row["rank"], name=name) if several else name, 40)


def _detail(
    boxes: pl.DataFrame, windows: pl.DataFrame, origin: int, lanes: pl.DataFrame
) -> list[dict[str, Any]]:
    """Every op of one steady step, where the levels cannot hold all ops; `boxes` are by start."""
    steps = steady(windows)
    if boxes.height <= MOST_BOXES // 3 or steps.is_empty():
        return []
    lasted = (steps["end_ns"] - steps["begin_ns"]).to_list()
    middle = sorted(range(len(lasted)), key=lasted.__getitem__)[len(lasted) // 2]
    low = int(steps["begin_ns"][middle]) - origin
    high = int(steps["end_ns"][middle]) - origin
    inside = boxes.filter((pl.col("start") < high) & (pl.col("end") > low))
    if inside.height > MOST_IN_DETAIL:
        # Cut in time, not by lane: up to there, every lane is whole.
        high = int(inside["start"][MOST_IN_DETAIL])
        inside = inside.head(MOST_IN_DETAIL)
    level = inside.sort("lane", "start", maintain_order=True).with_columns(
        pl.lit(1, pl.Int64).alias("count")
    )
    return [packed(level, width=0, lanes=lanes.height) | {"from": low, "to": high}]
