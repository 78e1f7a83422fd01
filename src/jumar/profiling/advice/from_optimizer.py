"""A finding about optimizers that update parameters one by one."""

from collections.abc import Iterator

import polars as pl

from jumar.ground.text import Text, counted
from jumar.profiling.advice.finding import FINDINGS, Case, Claim, Finding, carved, ms
from jumar.profiling.columns import largest_first
from jumar.profiling.comparison.op_kinds import type_or_name
from jumar.profiling.profile import END
from jumar.profiling.showing import shown
from jumar.profiling.views.intervals import intersection, length, spans, union
from jumar.profiling.views.windows import computes

_MARK = r"^Optimizer\.step#"
"""Names of the host ranges in which torch's optimizers update parameters."""
_FUSED = r"(?i)foreach|multi_?tensor|fused|^apply"
"""Ops that update many parameters at once, or a parameter in a single pass."""
_MIN_OPS = 20
"""With fewer ops per update, a fused optimizer would make no visible difference."""
_MIN_REPEATS = 4
"""The most frequent op must occur at least this often per step, as it does once per parameter."""
_SAVED_SHARE = 0.5
"""Share of the ops' time that a single pass over the parameters saves. An unfused Adam update reads
and writes about 24 tensors per parameter, a fused one 7; one half allows for slower kernels."""


_COLUMNS = ("rank", "name", "type", "core", "start_ns", "duration_ns", "launch_ns")
"""The columns in use; filtering all fifty, for a million ops, would take a third of a gigabyte."""


def unfused_updates(case: Case) -> Iterator[Claim]:
    """Claim updates that launch several ops per parameter."""
    marks = case.in_scope(case.profile.host.filter(pl.col("name").str.contains(_MARK)))
    if marks.is_empty():
        return
    ops = case.in_scope(case.profile.ops.select(_COLUMNS).filter(computes(case.profile.ops)))
    ops = ops.filter(pl.col("launch_ns").is_not_null()).sort("launch_ns")
    if ops.is_empty():
        return
    updates = marks.select(
        pl.col("start_ns").alias("mark_ns"), END.alias("mark_end_ns"), pl.col("name").alias("mark")
    )
    update_ops = ops.join_asof(
        updates.sort("mark_ns"), left_on="launch_ns", right_on="mark_ns", check_sortedness=False
    ).filter(pl.col("launch_ns") < pl.col("mark_end_ns"))
    kind = pl.struct("type", "name").map_elements(
        lambda row: type_or_name(row["type"], row["name"]), return_dtype=pl.String
    )
    update_ops = update_ops.with_columns(kind.alias("kind"))
    is_fused = pl.col("kind").str.contains(_FUSED) | pl.col("name").str.contains(_FUSED)
    single_ops = update_ops.filter(~is_fused.fill_null(False))
    counts = largest_first(single_ops.group_by("kind").len(), "len", "kind")
    count = single_ops.height / case.steps
    if count < _MIN_OPS or counts["len"][0] < _MIN_REPEATS * case.steps:
        return
    update = (
        single_ops.group_by("rank", "mark_ns")
        .agg(
            pl.col("start_ns").min(),
            END.max().alias("end_ns"),
        )
        .select("rank", "start_ns", "end_ns")
    )
    idle = intersection(case.free, union(update))
    busy = union(spans(single_ops))
    op_list = ", ".join(
        f"{shown(name, 40)} x {size / case.steps:g}" for name, size in counts.rows()[:6]
    )
    yield Claim(
        values={
            "count": f"{count:g}",
            "call": shown(str(single_ops["mark"][0]).partition("#")[2], 60),
        },
        spans=union(pl.concat([idle, carved(busy, _SAVED_SHARE)])),
        evidence=(
            Text(
                en=f"{counted(count, 'op')} per step, {ms(length(busy) / case.steps)} of ops and "
                f"{ms(length(idle) / case.steps)} in which the device waits for the next one",
                zh=f"每迭代 {count:g} 个算子：执行 {ms(length(busy) / case.steps)}，"
                f"设备等待下一个算子 {ms(length(idle) / case.steps)}",
            ),
            Text(en=op_list, zh=op_list),
        ),
    )


FINDINGS.add(
    Finding(
        name="unfused-optimizer",
        what=Text(
            en="{call} updates parameters one by one, with {count} ops per step",
            zh="{call} 逐个参数更新，每迭代 {count} 个算子",
        ),
        change=Text(
            en="Update all parameters in one op: fused=True or foreach=True of torch.optim on CUDA "
            "and CPU; torch_npu.optim.NpuFusedAdamW, NpuFusedSGD and similar on Ascend.",
            zh="用一个算子更新全部参数：CUDA 和 CPU 上为 torch.optim 设置 fused=True 或 "
            "foreach=True，昇腾上使用 torch_npu.optim.NpuFusedAdamW、NpuFusedSGD 等融合优化器。",
        ),
        search=unfused_updates,
        order=15,
        setting="optimizer.fused",
        view="launches",
        of_ops=True,
    )
)
