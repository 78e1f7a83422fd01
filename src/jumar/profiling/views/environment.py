"""Environment variables recorded with a capture, with remarks on costly ones."""

from typing import Final, NamedTuple

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import RANK, column
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import VIEWS, Impossible, Options, View


class Costly(NamedTuple):
    """The values of a variable that slow down steps, and why."""

    values: tuple[str, ...]
    why: Text


COSTLY: Final = {
    "ASCEND_LAUNCH_BLOCKING": Costly(
        ("1",),
        Text(
            en="the host waits for each op before launching the next; for debugging only",
            zh="每个算子执行完才下发下一个，仅用于调试",
        ),
    ),
    "CUDA_LAUNCH_BLOCKING": Costly(
        ("1",),
        Text(
            en="the host waits for each kernel before launching the next; for debugging only",
            zh="每个 kernel 执行完才下发下一个，仅用于调试",
        ),
    ),
    "ASCEND_GLOBAL_LOG_LEVEL": Costly(
        ("0", "1"),
        Text(
            en="CANN logs at debug or info level, which slows down the host; 3 logs only errors",
            zh="CANN 输出 debug 或 info 级日志，拖慢 host；3 表示只输出错误",
        ),
    ),
    "TASK_QUEUE_ENABLE": Costly(
        ("0",),
        Text(
            en="ops are launched by the Python thread; with 1 or 2 by a second thread",
            zh="由 Python 线程直接下发算子；设为 1 或 2 时由第二个线程下发",
        ),
    ),
}
"""Costly values by variable, according to the documentation of torch_npu and CANN."""


def recorded(profile: Profile) -> pl.DataFrame:
    """Return `rank`, `variable` and `value` as recorded; raise `Impossible` if there are none."""
    table = profile.statistics.get("environment")
    if table is None or table.is_empty():
        raise Impossible(
            "environment variables (profiler_metadata.json, META_DATA)",
            "torch_npu's profiler records them since CANN 8",
        )
    return table.select(pl.col("rank").fill_null(0), "variable", "value").unique(
        maintain_order=True
    )


def environment(profile: Profile, options: Options) -> pl.DataFrame:
    """One row per variable, costly ones first; an empty value means unset."""
    rows = recorded(profile)
    remarks = [
        COSTLY[name].why.in_language(options.language)
        if name in COSTLY and value in COSTLY[name].values
        else None
        for name, value in rows.select("variable", "value").iter_rows()
    ]
    table = rows.with_columns(pl.Series("remark", remarks, pl.String))
    has_no_remark = pl.col("remark").is_null()
    return table.sort(has_no_remark, pl.col("value") == "", "variable", "rank")


VIEWS.add(
    View(
        name="environment",
        title=Text(en="Environment variables of the capture", zh="采集时的环境变量"),
        question=Text(
            en="Which variables were set, and do any of them slow down steps?",
            zh="设置了哪些环境变量，其中有拖慢迭代的吗？",
        ),
        columns=(
            RANK,
            column("variable", "变量"),
            column("value", "值"),
            column("remark", "说明"),
        ),
        compute=environment,
        order=210,
        ranking=False,
    )
)
