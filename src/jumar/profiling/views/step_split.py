"""Where the time of a step goes: computing, communication, both at once, neither."""

import polars as pl

from jumar.profiling.profile import Profile
from jumar.profiling.views.intervals import segments
from jumar.profiling.views.view import Options, milliseconds, require
from jumar.profiling.views.windows import (
    as_spans,
    communication_spans,
    computing_spans,
    in_steps,
    step_windows,
)

_PARTS = (
    "computing_ns",
    "communication_not_overlapped_ns",
    "overlapped_ns",
    "communication_ns",
    "free_ns",
)


def step_split(profile: Profile) -> pl.DataFrame:
    """A row a step in the form of `STEPS_SCHEMA`, computed from the ops by unions of intervals.

    `preparing_ns` is what lies between the last op of the step before and the first of this one,
    where it is known; the parts computing, communication (not overlapped) and free add up to
    `end_ns - start_ns`.
    """
    windows = step_windows(profile)
    cut = segments(
        {
            "compute": computing_spans(profile),
            "communication": communication_spans(profile),
            "window": as_spans(windows),
        }
    ).filter(pl.col("window") > 0)
    size = pl.col("end_ns") - pl.col("start_ns")
    works, talks = pl.col("compute") > 0, pl.col("communication") > 0
    parts = (
        in_steps(cut, windows)
        .group_by("rank", "step")
        .agg(
            size.filter(works).sum().alias("computing_ns"),
            size.filter(talks & ~works).sum().alias("communication_not_overlapped_ns"),
            size.filter(talks & works).sum().alias("overlapped_ns"),
            size.filter(talks).sum().alias("communication_ns"),
            size.filter(~talks & ~works).sum().alias("free_ns"),
        )
    )
    return (
        windows.join(parts, on=["rank", "step"], how="left")
        .with_columns(
            pl.when(pl.col("begin_ns") < pl.col("start_ns"))
            .then(pl.col("start_ns") - pl.col("begin_ns"))
            .alias("preparing_ns")
        )
        .drop("begin_ns")
        .with_columns(pl.col(name).fill_null(0) for name in _PARTS)
        .sort("rank", "start_ns")
    )


def split_view(profile: Profile, _: Options | None = None) -> pl.DataFrame:
    """The step split in milliseconds, with the producer's own numbers where it gives them."""
    if profile.ops.is_empty() and profile.steps["computing_ns"].null_count() < profile.steps.height:
        return _as_given(profile)
    require(profile.ops, "ops with start and duration", "start_ns", "duration_ns")
    ours = step_split(profile)
    theirs = profile.steps.select(
        pl.col("rank").fill_null(0),
        "step",
        pl.col("computing_ns").alias("file_computing"),
        pl.col("communication_not_overlapped_ns").alias("file_uncovered"),
        pl.col("free_ns").alias("file_free"),
        pl.col("preparing_ns").alias("file_preparing"),
    ).unique(["rank", "step"], keep="first")
    both = ours.join(theirs, on=["rank", "step"], how="left")
    return both.select(
        "rank",
        "step",
        milliseconds(pl.col("end_ns") - pl.col("start_ns")).alias("step_ms"),
        milliseconds("computing_ns").alias("computing_ms"),
        milliseconds("communication_not_overlapped_ns").alias("uncovered_ms"),
        milliseconds("overlapped_ns").alias("overlapped_ms"),
        milliseconds("free_ns").alias("free_ms"),
        milliseconds(pl.coalesce("file_preparing", "preparing_ns")).alias("preparing_ms"),
        milliseconds(pl.col("computing_ns") - pl.col("file_computing")).alias("computing-file"),
        milliseconds(pl.col("communication_not_overlapped_ns") - pl.col("file_uncovered")).alias(
            "uncovered-file"
        ),
        milliseconds(pl.col("free_ns") - pl.col("file_free")).alias("free-file"),
    )


def _as_given(profile: Profile) -> pl.DataFrame:
    """The producer's own numbers, where the profile holds no ops to compute them from."""
    parts = {
        "computing_ns": "computing_ms",
        "communication_not_overlapped_ns": "uncovered_ms",
        "overlapped_ns": "overlapped_ms",
        "free_ns": "free_ms",
        "preparing_ns": "preparing_ms",
    }
    return profile.steps.sort("rank", "step").select(
        "rank", "step", *(milliseconds(name).alias(shown) for name, shown in parts.items())
    )
