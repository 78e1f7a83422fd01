"""Ops that were fused, and chains of vector ops that could be fused."""

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import TOTAL, column, largest_first, ms
from jumar.profiling.profile import END, Profile
from jumar.profiling.views.view import LEVEL_1, VIEWS, Impossible, Options, View, require
from jumar.profiling.views.windows import computing

_MAX_LENGTH = 5
_COLUMNS = (
    *("rank", "stream", "name", "type", "core", "start_ns", "duration_ns"),
    *("input_shapes", "output_shapes"),
)
_MAX_GAP_NS = 10_000
"""The longest gap that fusion removes; in longer gaps, the device waits for the host."""
_VECTOR = ("AI_VECTOR_CORE", "MIX_AIV", "CUDA", "CPU")
_NOT_FUSED = r"(?i)^(hcom|nccl|memcpy|memset|transdata|conv|matmul|batchmatmul|mm$|addmm|bmm)"


def fused(profile: Profile, _: Options) -> pl.DataFrame:
    """The fused ops of a graph, with the ops that they replace (graph mode only)."""
    table = profile.statistics.get("fusion_op")
    if table is None or not {"fusion_op", "original_ops"} <= set(table.columns):
        raise Impossible("the fusions of the graph (fusion_op.csv)", "only graph mode writes it")
    originals = pl.col("original_ops").str.split(";").list.eval(pl.element().str.strip_chars())
    memory = [name for name in table.columns if name.startswith("memory_total")]
    return (
        table.with_columns(originals.list.drop_nulls().list.len().alias("replaces"))
        .select(
            "fusion_op",
            "replaces",
            "original_ops",
            *((pl.col(name) / 1024).round(3).alias("memory_kib") for name in memory[:1]),
        )
        .sort("replaces", "fusion_op", descending=[True, False], maintain_order=True)
    )


def fusion_candidates(profile: Profile, _: Options) -> pl.DataFrame:
    """Recurring chains of vector ops: each takes the output of the previous one.

    `saved_ms` is an estimate: half the time of all ops but the longest, since intermediate results
    are neither written nor read, and the gaps between the ops.
    """
    ops = require(
        computing(profile.ops.select(_COLUMNS)),
        "shapes of ops",
        "input_shapes",
        "type",
        how=LEVEL_1,
    )
    ops = ops.filter(pl.col("start_ns").is_not_null()).sort(
        "rank", "stream", "start_ns", maintain_order=True
    )
    is_vector_op = pl.col("core").is_in(_VECTOR) & ~pl.col("type").str.contains(_NOT_FUSED)
    first_output = pl.coalesce("output_shapes", "input_shapes").str.split(";").list.first()
    stream = ["rank", "stream"]
    continues_chain = (
        is_vector_op
        & is_vector_op.shift(1).over(stream)
        & (pl.col("input_shapes").str.split(";").list.contains(first_output.shift(1).over(stream)))
        & (first_output.str.len_chars() > 0)
    ).fill_null(False)
    gap = (pl.col("start_ns") - END.shift(1).over(stream)).clip(0, _MAX_GAP_NS)
    chained = ops.select(
        *stream,
        "type",
        "duration_ns",
        continues_chain.alias("joined"),
        (~continues_chain).cum_sum().alias("chain"),
        pl.when(continues_chain).then(gap).otherwise(0).fill_null(0).alias("gap_ns"),
    )
    chains = (
        chained.with_columns(
            # Chains too long to be fused into one op count as several.
            (pl.int_range(pl.len()).over("chain") // _MAX_LENGTH).alias("part")
        )
        .group_by("chain", "part", maintain_order=True)
        .agg(
            pl.col("type").str.join(" > ").alias("sequence"),
            pl.len().alias("length"),
            pl.col("duration_ns").sum().alias("total_ns"),
            pl.col("duration_ns").max().alias("longest_ns"),
            pl.col("gap_ns").slice(1).sum().alias("gaps_ns"),
        )
        .filter(pl.col("length") > 1)
    )
    saved = (pl.col("total_ns") - pl.col("longest_ns")) // 2 + pl.col("gaps_ns")
    return (
        chains.group_by("sequence")
        .agg(
            pl.col("length").first(),
            pl.len().alias("times"),
            pl.col("total_ns").sum(),
            pl.col("gaps_ns").sum(),
            saved.sum().alias("saved_ns"),
        )
        .filter(pl.col("times") > 1)
        .pipe(largest_first, "saved_ns", "sequence")
    )


VIEWS.add(
    View(
        name="fused",
        title=Text(en="Fused ops and what they replace", zh="融合算子及其替换的算子"),
        question=Text(en="Which ops did the graph fuse?", zh="图编译融合了哪些算子？"),
        columns=(
            column("fusion_op", "融合算子"),
            column("replaces", "替换算子数"),
            column("original_ops", "原算子"),
            column("memory_kib", "内存", unit="KiB"),
        ),
        compute=fused,
        order=170,
    ),
    View(
        name="fusion",
        title=Text(
            en="Chains of vector ops that could be fused (estimate)",
            zh="可融合的向量算子链（估算）",
        ),
        question=Text(
            en="Which sequences of ops recur and would be faster fused?",
            zh="哪些反复出现的算子序列融合成一个会更快？",
        ),
        columns=(
            column("sequence", "算子序列"),
            column("length", "长度"),
            column("times", "出现次数"),
            TOTAL,
            ms("gaps", "间隙"),
            ms("saved", "可节省"),
        ),
        compute=fusion_candidates,
        slow=True,
        order=171,
    ),
)
