"""Memory over time below the timeline, thinned so that no peak is lost."""

from typing import Any, Final

import polars as pl

from jumar.ground.text import Language
from jumar.profiling.page.clock import Clock
from jumar.profiling.profile import Profile
from jumar.profiling.showing import shown
from jumar.profiling.words import words

_MOST_POINTS: Final = 2000
_MOST_CURVES: Final = 8


def memory_curves(profile: Profile, clock: Clock, language: Language) -> dict[str, Any]:
    """`curves`, one for each rank, component and device, and how many are `left_out`.

    Of each moment: when, bytes allocated, bytes reserved.

    Args:
        profile: For its `memory_record`.
        clock: The time that the page shows.
        language: Language of the curves' names.
    """
    record = profile.statistics.get("memory_record")
    needed = {"timestamp_ns", "total_allocated_bytes"}
    if record is None or not needed <= set(record.columns):
        return {"curves": [], "left_out": 0}
    by = [name for name in ("rank", "component", "device_type") if name in record.columns]
    has_reserved = "total_reserved_bytes" in record.columns
    reserved = pl.col("total_reserved_bytes") if has_reserved else pl.lit(None, pl.Int64)
    rows = record.select(
        *by,
        (pl.col("timestamp_ns") - clock.origin).alias("at"),
        pl.col("total_allocated_bytes").alias("allocated"),
        reserved.fill_null(0).alias("reserved"),
    ).filter(pl.col("at").is_between(0, clock.span) & pl.col("allocated").is_not_null())
    parts = rows.partition_by(by, as_dict=True, maintain_order=True) if by else {(): rows}
    curves = [
        {
            "name": _name(dict(zip(by, key, strict=True)), profile, language),
            **_thinned(part.sort("at", maintain_order=True), clock.span),
        }
        for key, part in sorted(parts.items(), key=lambda pair: -pair[1].height)
        if part.height > 1
    ]
    return {"curves": curves[:_MOST_CURVES], "left_out": max(len(curves) - _MOST_CURVES, 0)}


def _name(key: dict[str, Any], profile: Profile, language: Language) -> str:
    rank = key.pop("rank", None)
    name = " ".join(str(value) for value in key.values() if value is not None)
    if rank is not None and len(profile.ranks) > 1:
        name = words(language)["of_rank"].format(rank=rank, name=name)
    return shown(name, 40)


def _thinned(rows: pl.DataFrame, span: int) -> dict[str, list[int]]:
    """Of each stretch of time its last point, and the one with the most allocated."""
    width = max(2 * span // _MOST_POINTS, 1)
    marked = rows.with_row_index("row").with_columns((pl.col("at") // width).alias("stretch"))
    kept = pl.concat(
        [
            marked.group_by("stretch").agg(pl.col("row").last()),
            marked.group_by("stretch").agg(pl.col("row").get(pl.col("allocated").arg_max())),
        ]
    )["row"].unique()
    thin = marked.filter(pl.col("row").is_in(kept.implode())).sort("row")
    at = thin["at"].diff().fill_null(thin["at"][0])
    return {
        "at": at.to_list(),
        "allocated": thin["allocated"].cast(pl.Int64).to_list(),
        "reserved": thin["reserved"].cast(pl.Int64).to_list(),
    }
