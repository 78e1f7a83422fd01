"""Where the time of a step goes: computing, communication, both at once, neither."""

import polars as pl

from jumar.profiling.profile import Profile
from jumar.profiling.views.view import Options, milliseconds, require
from jumar.profiling.views.windows import (
    busy_union,
    communication_spans,
    computing_union,
    step_windows,
    within,
)


def step_split(profile: Profile) -> pl.DataFrame:
    """A row a step in the form of `STEPS_SCHEMA`, computed from the ops by unions of intervals.

    `preparing_ns` is what lies between the last op of the step before and the first of this one,
    where it is known; the parts computing, communication (not overlapped) and free add up to
    `end_ns - start_ns`.
    """
    windows = step_windows(profile)
    works, talks = computing_union(profile), communication_spans(profile)
    computing, communication = within(windows, works), within(windows, talks)
    either = within(windows, busy_union(profile))
    size = windows["end_ns"] - windows["start_ns"]
    return (
        windows.with_columns(
            computing.alias("computing_ns"),
            (either - computing).alias("communication_not_overlapped_ns"),
            (computing + communication - either).alias("overlapped_ns"),
            communication.alias("communication_ns"),
            (size - either).alias("free_ns"),
            pl.when(pl.col("begin_ns") < pl.col("start_ns"))
            .then(pl.col("start_ns") - pl.col("begin_ns"))
            .alias("preparing_ns"),
        )
        .drop("begin_ns")
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
