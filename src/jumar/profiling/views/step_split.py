"""Step time breakdown: computing, communication, memory copies, idle."""

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import RANK, STEP, column, milliseconds, ms
from jumar.profiling.profile import Profile, once
from jumar.profiling.views.intervals import difference, length
from jumar.profiling.views.view import VIEWS, Options, View, require
from jumar.profiling.views.windows import (
    busy_union,
    communication_spans,
    computing_union,
    copying_union,
    step_windows,
    within,
)


def step_split(profile: Profile) -> pl.DataFrame:
    """One row per step with the columns of `STEPS_SCHEMA`, computed from the ops.

    `preparing_ns` is the time from the last op of the previous step to the first one of this step,
    if known. Computing, communication (not overlapped), free and, if memory copies are recorded,
    `copying_ns` (copies that overlap nothing else) add up to `end_ns - start_ns`.
    """
    windows = step_windows(profile)
    computing = within(windows, computing_union(profile))
    communication = within(windows, communication_spans(profile))
    busy = within(windows, busy_union(profile))
    size = windows["end_ns"] - windows["start_ns"]
    copies, copying = copying_union(profile), pl.lit(None, pl.Int64)
    if copies.height:
        copying = within(windows, difference(copies, busy_union(profile)))
    return (
        windows.with_columns(
            computing.alias("computing_ns"),
            (busy - computing).alias("communication_not_overlapped_ns"),
            (computing + communication - busy).alias("overlapped_ns"),
            communication.alias("communication_ns"),
            (size - busy - (copying if copies.height else 0)).alias("free_ns"),
            copying.alias("copying_ns"),
            pl.when(pl.col("begin_ns") < pl.col("start_ns"))
            .then(pl.col("start_ns") - pl.col("begin_ns"))
            .alias("preparing_ns"),
        )
        .drop("begin_ns")
        .sort("rank", "start_ns")
    )


_TOLERANCE = 0.1
"""Share of the step time by which computed and recorded figures may differ."""

_MIN_INSIDE = 0.001
"""The steps must contain at least this share of the ops' time; else their clocks differ."""

_COMPARED = (
    ("computing", Text(en="computing", zh="计算")),
    ("uncovered", Text(en="uncovered communication", zh="未掩盖通信")),
    ("free", Text(en="idle time", zh="空闲")),
)


@once
def contradictions(profile: Profile) -> list[Text]:
    """Contradictions: steps without ops, and computed figures that differ from recorded ones."""
    ops = profile.ops
    if any(ops[name].null_count() == ops.height for name in ("start_ns", "duration_ns")):
        return []
    return [*_steps_without_ops(profile), *_differences_from_recorded(profile)]


def _steps_without_ops(profile: Profile) -> list[Text]:
    """A contradiction if the steps contain almost none of the device's work."""
    busy = busy_union(profile)
    inside_ns, total_ns = int(within(step_windows(profile), busy).sum()), length(busy)
    if inside_ns >= _MIN_INSIDE * total_ns:
        return []
    times = (f"{inside_ns / 1e6:.3f} ms", f"{total_ns / 1e6:.3f} ms")
    return [
        Text(
            en=f"the steps contain {times[0]} of the {times[1]} in which ops run; their marks are "
            "on another clock or from another time",
            zh=f"算子共执行 {times[1]}，其中只有 {times[0]} 落在迭代内；"
            "迭代标记属于其他时钟或其他时段",
        )
    ]


def _differences_from_recorded(profile: Profile) -> list[Text]:
    """Contradictions between the breakdown computed from the ops and the recorded one."""
    if profile.steps["computing_ns"].null_count() == profile.steps.height:
        return []
    table = split_view(profile, Options())
    lines: list[Text] = []
    for name, what in _COMPARED:
        compared = table.drop_nulls(f"{name}-file")
        step_time = max(float(compared["step_ns"].sum()) / 1e6, 1e-6)
        difference = float(compared[f"{name}-file"].sum())
        if abs(difference) <= _TOLERANCE * step_time:
            continue
        computed_ms = float(compared[f"{name}_ns"].sum()) / 1e6
        figures = (f"{computed_ms:.3f} ms", f"{computed_ms - difference:.3f} ms")
        lines.append(
            Text(
                en=f"{what.en} is {figures[0]} according to the ops, but {figures[1]} in the "
                "capture's own step_trace_time; ops are missing or on another clock",
                zh=f"{what.zh}按算子为 {figures[0]}，按采集自带的 step_trace_time 为 {figures[1]}；"
                "算子有缺失或时钟不同",
            )
        )
    return lines


def split_view(profile: Profile, _: Options) -> pl.DataFrame:
    """The step time breakdown, with differences from the producer's own figures, if any."""
    if profile.ops.is_empty() and profile.steps["computing_ns"].null_count() < profile.steps.height:
        recorded_steps = profile.steps.rename({"communication_not_overlapped_ns": "uncovered_ns"})
        return recorded_steps.sort("rank", "step")
    require(profile.ops, "ops with start times and durations", "start_ns", "duration_ns")
    computed = step_split(profile)
    recorded = profile.steps.select(
        pl.col("rank").fill_null(0),
        "step",
        pl.col("computing_ns").alias("file_computing"),
        pl.col("communication_not_overlapped_ns").alias("file_uncovered"),
        pl.col("free_ns").alias("file_free"),
        pl.col("preparing_ns").alias("file_preparing"),
    ).unique(["rank", "step"], keep="first")
    joined = computed.join(recorded, on=["rank", "step"], how="left")
    return joined.rename({"communication_not_overlapped_ns": "uncovered_ns"}).with_columns(
        (pl.col("end_ns") - pl.col("start_ns")).alias("step_ns"),
        pl.coalesce("file_preparing", "preparing_ns").alias("preparing_ns"),
        *(
            milliseconds(pl.col(f"{name}_ns") - pl.col(f"file_{name}")).alias(f"{name}-file")
            for name, _ in _COMPARED
        ),
    )


VIEWS.add(
    View(
        name="steps",
        title=Text(en="Where each step's time goes (ms)", zh="每个迭代的时间去向（ms）"),
        question=Text(
            en="How long is each step computing, in uncovered communication and copies, and idle?",
            zh="每个迭代中，计算、未被掩盖的通信和内存拷贝以及空闲各占多长时间？",
        ),
        columns=(
            RANK,
            STEP,
            ms("step", "迭代耗时"),
            ms("computing", "计算"),
            ms("uncovered", "未掩盖通信", "uncovered communication"),
            ms("overlapped", "被掩盖通信", "overlapped communication"),
            ms("copying", "未掩盖内存拷贝", "uncovered memory copies"),
            ms("free", "空闲", "idle"),
            ms("preparing", "首算子前准备", "before the first op"),
            column("computing-file", "计算与文件之差", "computing minus the file's", unit="ms"),
            column(
                "uncovered-file", "未掩盖通信与文件之差", "uncovered minus the file's", unit="ms"
            ),
            column("free-file", "空闲与文件之差", "idle minus the file's", unit="ms"),
        ),
        compute=split_view,
        order=10,
        usual=True,
        ranking=False,
    )
)
