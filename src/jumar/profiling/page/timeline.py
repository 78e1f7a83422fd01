"""Ops as boxes on lanes of time, in levels from coarse to fine, so that their number is bounded."""

from typing import Any, Final

import polars as pl

from jumar.ground.text import Language
from jumar.profiling.page.labels import Labels
from jumar.profiling.profile import COMMUNICATION, Profile
from jumar.profiling.showing import shown
from jumar.profiling.views.windows import steady, step_windows
from jumar.profiling.words import words

MOST_BOXES: Final = 110_000
"""The most boxes on all levels together, not counting those of the step shown in detail."""
MOST_IN_DETAIL: Final = 40_000
"""Boxes of that step; of a step with more ops, its beginning is there."""
MOST_LANES: Final = 24
_COARSEST: Final = 1024
"""Moments that the coarsest level distinguishes, about as many as a screen has pixels."""
_FINER: Final = 6


def timeline(
    ops: pl.DataFrame, groups: Labels, profile: Profile, language: Language
) -> dict[str, Any]:
    """The lanes with their boxes, as data for the page.

    Args:
        ops: Ops with start and duration.
        groups: Their labels, row by row.
        profile: For its steps.
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
    ).with_columns(groups.of_op.alias("label"))
    all_lanes = placed.select("rank", "use", "stream").n_unique()
    lanes = _lanes(placed)
    names = [_named(row, profile, language) for row in lanes.sort("lane").iter_rows(named=True)]
    placed = placed.join(lanes, on=["rank", "use", "stream"], how="inner", maintain_order="left")
    placed = placed.sort("start_ns", maintain_order=True)
    origin = int(ops["start_ns"].min() or 0)  # pyright: ignore[reportArgumentType]
    boxes = placed.select(
        pl.col("lane").cast(pl.Int32),
        (pl.col("start_ns") - origin).alias("start"),
        (pl.col("start_ns") - origin + pl.col("duration_ns")).alias("end"),
        pl.col("duration_ns").alias("busy"),
        "label",
    )
    span = max(int(boxes["end"].max() or 1), 1)  # pyright: ignore[reportArgumentType]
    windows = step_windows(profile)
    return {
        "span": span,
        "lanes": names,
        "left_out": all_lanes - lanes.height,
        "levels": _levels(boxes, span, lanes.height) + _detail(boxes, windows, origin, lanes),
        "steps": [
            [int(row["rank"]), int(row["step"]), *(int(row[n]) - origin for n in ("begin", "end"))]
            for row in windows.rename({"begin_ns": "begin", "end_ns": "end"})
            .head(500)
            .iter_rows(named=True)
        ],
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


def _merged(boxes: pl.DataFrame, width: int) -> pl.DataFrame:
    """Boxes of at least a width; shorter ops are merged up to that width.

    A box of several ops has the label of the longest, their number and their total time.

    """
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
        )
        .sort("lane", "start", "end", maintain_order=True)
        .collect()
    )


def _levels(boxes: pl.DataFrame, span: int, lanes: int) -> list[dict[str, Any]]:
    """Levels until one shows every op, or until the page would be too large."""
    levels: list[dict[str, Any]] = []
    width, total = max(span // _COARSEST, 1), 0
    while True:
        level = _merged(boxes, width)
        total += level.height
        if levels and total > MOST_BOXES:
            return levels
        exact = level.height == boxes.height
        levels.append(_packed(level, 0 if exact else width, lanes))
        if exact or width == 1:
            return levels
        width = max(width // _FINER, 1)


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
    return [_packed(level, 0, lanes.height) | {"from": low, "to": high}]


def _packed(level: pl.DataFrame, width: int, lanes: int) -> dict[str, Any]:
    """For each lane: steps from start to start, lengths, labels, counts, and busy times.

    Counts and busy times are left out where each box is one op.
    """
    packed: list[list[list[int]]] = []
    single = bool((level["count"] == 1).all())
    parts = level.partition_by("lane", as_dict=True)
    for lane in range(lanes):
        own = parts.get((lane,))
        if own is None:
            packed.append([[], [], [], [], []])
            continue
        packed.append(
            [
                own["start"].diff().fill_null(own["start"][0]).to_list(),
                (own["end"] - own["start"]).to_list(),
                own["label"].to_list(),
                [] if single else own["count"].to_list(),
                [] if single else own["busy"].to_list(),
            ]
        )
    return {"width": width, "lanes": packed}
