"""The memory curves below the timeline, thinned out without losing peaks."""

from typing import Any, Final

import polars as pl

from jumar.ground.text import Language
from jumar.profiling.page.time_range import TimeRange
from jumar.profiling.profile import Profile
from jumar.profiling.showing import shown
from jumar.profiling.texts import with_rank

_MAX_POINTS: Final = 2000
_MAX_CURVES: Final = 8


def memory_curves(profile: Profile, time_range: TimeRange, language: Language) -> dict[str, Any]:
    """`curves`, one for each rank, component and device, and the number `left_out`.

    Each curve has lists of times, of bytes allocated and of bytes reserved.

    Args:
        profile: The profile with the `memory_record`.
        time_range: The time range of the page.
        language: Language of the curve names.
    """
    record = profile.statistics.get("memory_record")
    needed = {"timestamp_ns", "total_allocated_bytes"}
    if record is None or not needed <= set(record.columns):
        return {"curves": [], "left_out": 0}
    key_columns = [name for name in ("rank", "component", "device_type") if name in record.columns]
    has_reserved = "total_reserved_bytes" in record.columns
    reserved = pl.col("total_reserved_bytes") if has_reserved else pl.lit(None, pl.Int64)
    rows = record.select(
        *key_columns,
        (pl.col("timestamp_ns") - time_range.origin).alias("at"),
        pl.col("total_allocated_bytes").alias("allocated"),
        reserved.fill_null(0).alias("reserved"),
    ).filter(pl.col("at").is_between(0, time_range.span) & pl.col("allocated").is_not_null())
    rows_by_key = (
        rows.partition_by(key_columns, as_dict=True, maintain_order=True)
        if key_columns
        else {(): rows}
    )
    curves = [
        {
            "name": _curve_name(dict(zip(key_columns, key, strict=True)), profile, language),
            **_thin_out(curve_rows.sort("at", maintain_order=True), time_range.span),
        }
        for key, curve_rows in sorted(rows_by_key.items(), key=lambda pair: -pair[1].height)
        if curve_rows.height > 1
    ]
    return {"curves": curves[:_MAX_CURVES], "left_out": max(len(curves) - _MAX_CURVES, 0)}


def _curve_name(key: dict[str, Any], profile: Profile, language: Language) -> str:
    rank = key.pop("rank", None)
    name = " ".join(str(value) for value in key.values() if value is not None)
    return shown(name, 40) if rank is None else with_rank(name, rank, profile, language)


def _thin_out(rows: pl.DataFrame, span: int) -> dict[str, list[int]]:
    """The last point of each interval, and the point with the most allocated memory."""
    interval = max(2 * span // _MAX_POINTS, 1)
    numbered = rows.with_row_index("row").with_columns((pl.col("at") // interval).alias("interval"))
    kept_rows = pl.concat(
        [
            numbered.group_by("interval").agg(pl.col("row").last()),
            numbered.group_by("interval").agg(pl.col("row").get(pl.col("allocated").arg_max())),
        ]
    )["row"].unique()
    kept = numbered.filter(pl.col("row").is_in(kept_rows.implode())).sort("row")
    steps = kept["at"].diff().fill_null(kept["at"][0])
    return {
        "at": steps.to_list(),
        "allocated": kept["allocated"].cast(pl.Int64).to_list(),
        "reserved": kept["reserved"].cast(pl.Int64).to_list(),
    }
