"""Findings about ops: AI CPU, format changes, casts, dtypes, clock, and headroom."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from jumar.ground.text import Text, counted
from jumar.profiling.advice.finding import FINDINGS, Case, Claim, Finding, carved, ms, types_by_time
from jumar.profiling.columns import largest_first
from jumar.profiling.profile import AI_CORES
from jumar.profiling.views.aicpu import ai_cpu
from jumar.profiling.views.casts import is_cast, is_format_change
from jumar.profiling.views.frequency import MIN_DROP, clocks
from jumar.profiling.views.intervals import spans
from jumar.profiling.views.op_costs import dtypes_of, family
from jumar.profiling.views.roofline import REACHABLE, limits, require_chip
from jumar.profiling.views.shapes import shapes_of
from jumar.profiling.views.view import Impossible

_MAX_SHOWN: Final = 3
_MAX_TYPES: Final = 5
_CORES_WITH_RATES: Final = (*AI_CORES, "CUDA")
"""Cores to which the chip table's rates apply; random number generators have others."""


def _share(case: Case, kinds: pl.DataFrame) -> str:
    """The percentage of compute time spent in some kinds of ops."""
    total = max(float(case.kinds["duration_ns"].sum()), 1.0)
    return f"{100 * float(kinds['duration_ns'].sum()) / total:.1f}"


def _largest(case: Case, kinds: pl.DataFrame, *columns: str) -> tuple[Text, ...]:
    """Lines on the largest groups of ops."""
    table = (
        kinds.group_by(*columns)
        .agg(pl.col("count").sum(), pl.col("duration_ns").sum())
        .pipe(largest_first, "duration_ns", *columns)
        .head(_MAX_SHOWN)
    )
    lines: list[Text] = []
    for row in table.iter_rows(named=True):
        group = " ".join(str(row[name] or "-") for name in columns)
        count, duration = f"{row['count'] / case.steps:g}", ms(row["duration_ns"] / case.steps)
        lines.append(
            Text(
                en=f"{count} x {group}: {duration} per step",
                zh=f"{count} x {group}：每迭代 {duration}",
            )
        )
    return tuple(lines)


def ai_cpu_ops(case: Case) -> Iterator[Claim]:
    """Claim ops on the AI CPU, which would take a fraction of the time on the AI Core."""
    kinds = case.kinds.filter(pl.col("core") == "AI_CPU")
    if kinds.is_empty():
        return
    try:
        table = ai_cpu(case.profile, case.options)
    except Impossible:
        return
    for op_type in types_by_time(kinds)[:_MAX_TYPES]:
        type_kinds = kinds.filter(pl.col("type").eq_missing(op_type))
        row = table.filter(pl.col("type").eq_missing(op_type)).row(0, named=True)
        instead = row["use_instead"]
        yield Claim(
            values={
                "type": op_type,
                "reason": row["reason"],
                "instead": instead[0].upper() + instead[1:],
            },
            spans=spans(case.ops_of(type_kinds)),
            evidence=_largest(case, type_kinds, "type", "input_types", "input_shapes"),
        )


def format_changes(case: Case) -> Iterator[Claim]:
    """Claim TransData, Transpose and similar ops."""
    kinds = case.kinds.filter(is_format_change(case.kinds))
    if kinds.is_empty():
        return
    types = kinds.group_by("type").agg(pl.col("duration_ns").sum()).sort("duration_ns", "type")
    yield Claim(
        values={
            "types": " + ".join(reversed([str(name) for name in types["type"].to_list()])),
            "take": "take" if types.height > 1 else "takes",
            "share": _share(case, kinds),
        },
        spans=spans(case.ops_of(kinds)),
        evidence=_largest(case, kinds, "type", "input_formats", "output_formats"),
    )


def casts(case: Case) -> Iterator[Claim]:
    """Claim ops that only change the dtype."""
    kinds = case.kinds.filter(is_cast(case.kinds))
    if kinds.is_empty():
        return
    count = int(kinds["count"].sum()) / case.steps
    yield Claim(
        values={
            "casts": Text(en=counted(count, "cast"), zh=f"{count:g} 次类型转换"),
            "share": _share(case, kinds),
        },
        spans=spans(case.ops_of(kinds)),
        evidence=_largest(case, kinds, "input_types", "output_types", "input_shapes"),
    )


def wide_types(case: Case) -> Iterator[Claim]:
    """Claim half the time of 32-bit matrix products and convolutions, except on CPUs."""
    if case.profile.kind == "cpu":
        return
    heavy = [kind for kind in case.kinds["type"].drop_nulls().unique() if family(str(kind))]
    types = [str(text) for text in case.kinds["input_types"].drop_nulls().unique()]
    single_types = [text for text in types if _is_single(text.split(";"))]
    kinds = case.kinds.filter(
        pl.col("type").is_in(heavy)
        & pl.col("input_types").is_in(single_types)
        & pl.col("core").ne_missing("AI_CPU")
    )
    if kinds.height:
        yield Claim(
            values={"share": _share(case, kinds)},
            spans=carved(spans(case.ops_of(kinds)), 0.5),
            evidence=_largest(case, kinds, "type", "input_types", "input_shapes"),
        )


def _is_single(types: list[str]) -> bool:
    return "FLOAT" in types and not {"FLOAT16", "BF16"} & set(types)


def low_clock(case: Case) -> Iterator[Claim]:
    """Claim the time lost by ops that ran at a low clock."""
    try:
        readings = clocks(case.profile).filter(pl.col("rank") == case.rank)
    except Impossible:
        return
    full = readings["mhz"].quantile(0.95)
    if full is None or case.ops.is_empty():
        return
    # A reading is valid until the next one; before the first, the clock counts as full.
    ops = (
        spans(case.ops)
        .sort("start_ns")
        .join_asof(
            readings.select(pl.col("time_ns"), "mhz").sort("time_ns"),
            left_on="start_ns",
            right_on="time_ns",
        )
        .with_columns(pl.col("mhz").fill_null(full))
        .filter(pl.col("mhz") < full * (1 - MIN_DROP))
    )
    if ops.is_empty():
        return
    count = ops.height / case.steps
    yield Claim(
        values={"full": f"{full:.0f}", "lowest": f"{float(str(ops['mhz'].min())):.0f}"},
        spans=carved(ops, 1 - pl.col("mhz") / full),
        evidence=(
            Text(
                en=f"{counted(count, 'op')} per step ran below {1 - MIN_DROP:.0%} of it",
                zh=f"每迭代有 {count:g} 个算子在低于满频 {1 - MIN_DROP:.0%} 的频率下执行",
            ),
        ),
    )


def head_room(case: Case) -> Iterator[Claim]:
    """Claim the time of ops beyond what a good kernel needs."""
    try:
        chip = require_chip(case.profile, case.options)
        limit = limits(case.profile, chip)
    except Impossible:
        return
    shortest_ns = (pl.col("least_ns") / REACHABLE).round().cast(pl.Int64)
    limit = limit.select("same", "bound", shortest_ns.alias("least_ns")).drop_nulls("least_ns")
    kinds = case.kinds.join(limit, on="same")
    changes = is_cast(kinds) | is_format_change(kinds)
    kinds = kinds.filter(~changes & pl.col("core").is_in(_CORES_WITH_RATES))
    room = pl.col("duration_ns") - pl.col("least_ns")
    ops = (
        case.ops.join(kinds.select("kind", "least_ns"), on="kind")
        .filter(room > 0)
        .select("rank", "start_ns", "kind", "duration_ns", room.alias("room_ns"))
    )
    sums = ops.group_by("kind").agg(
        pl.len().alias("count"), pl.col("duration_ns").sum(), pl.col("room_ns").sum()
    )
    kinds = kinds.drop("count", "duration_ns").join(sums, on="kind")
    by_type = kinds.group_by("type").agg(pl.col("room_ns").sum(), pl.col("duration_ns").sum())
    largest = largest_first(by_type, "room_ns", "type").head(_MAX_TYPES)
    for kind, room_ns, total_ns in largest.iter_rows():
        type_kinds = kinds.filter(pl.col("type") == kind)
        bounds = (
            type_kinds.group_by("bound")
            .agg(pl.col("room_ns").sum())
            .sort("room_ns", "bound")["bound"]
        )
        yield Claim(
            values={
                "type": kind,
                "lasts": ms(total_ns / case.steps),
                "times": f"{total_ns / max(total_ns - room_ns, 1):.1f}",
                "change": _change(type_kinds, str(bounds[-1])),
            },
            spans=spans(
                ops.join(type_kinds.select("kind"), on="kind", how="semi"), duration="room_ns"
            ),
            evidence=(
                *_largest(case, type_kinds, "input_shapes", "input_types", "bound"),
                Text(en=f"peak rates: {chip.label}", zh=f"峰值性能：{chip.label}"),
                *([_UNMASKED] if family(str(kind)) == "attention" else []),
            ),
        )


_UNMASKED: Final = Text(
    en="counted without a mask, except for Ascend's compressed causal one: with half of the scores "
    "masked, it needs half the time",
    zh="未计掩码（昇腾压缩因果掩码除外）：若一半被掩盖，所需时间减半",
)


def _change(kinds: pl.DataFrame, bound: str) -> Text:
    """Advice for the kinds of a type, based on the bottleneck of the slowest one."""
    row = kinds.sort("duration_ns", "kind").row(-1, named=True)
    if family(str(row["type"])) == "attention":
        return _FOR_ATTENTION
    if bound == "memory" and not _WIDE.isdisjoint(dtypes_of(row["input_types"])):
        return _NARROWER
    shapes = [shape for shape in shapes_of(row["input_shapes"]) if len(shape) > 1][:2]
    if bound == "cube" and any(size % _BLOCK_SIZE for shape in shapes for size in shape[-2:]):
        return _FILLING
    return _BY_BOUND[bound]


_BLOCK_SIZE: Final = 16
"""Size of the blocks that matrix units multiply."""


_WIDE: Final = frozenset({"FLOAT", "FLOAT32", "DOUBLE"})

_FOR_ATTENTION: Final = Text(
    en="Check layout, head size and mask: pass a causal mask as a flag instead of a tensor, avoid "
    "dropout in attention, and use head sizes of 64 or 128 and the vendor's newest kernels.",
    zh="检查其布局、head 大小和掩码：用标志表示因果掩码而不是传入掩码张量，其中不做 dropout，"
    "head 大小取 64 或 128，并使用厂商最新的 kernel。",
)
_NARROWER: Final = Text(
    en="Fuse it with neighbouring ops to read and write less, or use 16-bit dtypes; check for rows "
    "that are not contiguous.",
    zh="与相邻算子融合以减少读写，或使用 16 位数据类型；检查是否有非连续的行。",
)
_FILLING: Final = Text(
    en="Use sizes that fill the matrix unit: channels and inner axes that are multiples of 16, and "
    "a larger batch.",
    zh="使用能填满矩阵计算单元的尺寸：通道数和内轴取 16 的倍数，并加大 batch。",
)
_BY_BOUND: Final = {
    "cube": Text(
        en="Give the matrix unit more work at once: use a larger batch, or merge several products.",
        zh="让矩阵计算单元一次处理更多工作：加大 batch，或把多个矩阵乘合并为一个。",
    ),
    "vector": Text(
        en="Use a fused form of the op, or fewer ops.",
        zh="使用该算子的融合形式，或减少其数量。",
    ),
    "memory": Text(
        en="Fuse it with neighbouring ops to read and write less; check for rows that are not "
        "contiguous.",
        zh="与相邻算子融合以减少读写；检查是否有非连续的行。",
    ),
    "launch": Text(
        en="The op is too small for its launch overhead: combine several (foreach or fused "
        "optimizers, a larger batch).",
        zh="算子过小，启动开销不划算：把多个合并执行（foreach 或融合优化器、更大的 batch）。",
    ),
}

FINDINGS.add(
    Finding(
        name="ai-cpu",
        what=Text(
            en="{type} runs on the AI CPU ({reason})", zh="{type} 在 AI CPU 上执行（{reason}）"
        ),
        change=Text(en="{instead}.", zh="{instead}。"),
        search=ai_cpu_ops,
        order=30,
        view="aicpu",
        of_ops=True,
    ),
    Finding(
        name="format-changes",
        what=Text(
            en="{types} {take} {share} % of compute time", zh="{types} 占计算时间的 {share} %"
        ),
        change=Text(
            en="Use one layout throughout the network: channels_last on GPUs; on Ascend "
            "torch.npu.config.allow_internal_format=False, or npu_format_cast of the weights once "
            "before training.",
            zh="全网络保持同一种格式：GPU 上使用 channels_last；昇腾上设置 "
            "torch.npu.config.allow_internal_format=False，或在训练前用 npu_format_cast "
            "将权重转换一次。",
        ),
        search=format_changes,
        order=40,
        setting="training.channels_last",
        view="casts",
        of_ops=True,
    ),
    Finding(
        name="casts",
        what=Text(
            en="{casts} per step take {share} % of compute time",
            zh="每迭代 {casts}，占计算时间的 {share} %",
        ),
        change=Text(
            en="Let neighbouring ops compute in one dtype: put the ops between two casts on the "
            "same list of modify_mixlist (`jumar profile compare` proposes edits), and create "
            "inputs in the dtype in which the network computes.",
            zh="让相邻算子使用同一数据类型：把两次转换之间的算子放入 modify_mixlist 的同一名单"
            "（`jumar profile compare` 会给出修改建议），并直接按网络的计算类型准备输入。",
        ),
        search=casts,
        order=50,
        setting="precision.modify_mixlist",
        view="casts",
        of_ops=True,
    ),
    Finding(
        name="low-clock",
        what=Text(
            en="The cores' clock drops from {full} to {lowest} MHz",
            zh="计算核频率从 {full} MHz 降到 {lowest} MHz",
        ),
        change=Text(
            en="Check temperature and power (npu-smi info -t temp, -t power; nvidia-smi -q -d "
            "PERFORMANCE) and the configured limits.",
            zh="检查温度和功耗（npu-smi info -t temp、-t power；nvidia-smi -q -d PERFORMANCE）"
            "以及所设的限制。",
        ),
        search=low_clock,
        order=60,
        view="frequency",
        of_ops=True,
    ),
    Finding(
        name="wide-types",
        what=Text(
            en="Matrix products and convolutions in FLOAT: {share} % of compute time",
            zh="矩阵乘和卷积以 FLOAT 计算：占计算时间的 {share} %",
        ),
        change=Text(
            en="Train in allow_mix_precision with a loss scale, which halves the bytes and at "
            "least halves the work of the matrix unit; estimated at half their time, without "
            "additional casts.",
            zh="使用 allow_mix_precision 并配合 loss scale 训练，数据量减半，矩阵计算单元的工作量"
            "至少减半；按其耗时的一半估算，未计新增的类型转换。",
        ),
        search=wide_types,
        order=70,
        setting="precision.mode",
        view="by-dtype",
        of_ops=True,
    ),
    Finding(
        name="head-room",
        what=Text(
            en="{type} takes {lasts} per step, {times} times as long as at 70 % of the chip's peak",
            zh="{type} 每迭代耗时 {lasts}，是达到芯片极限 70 % 时的 {times} 倍",
        ),
        change=Text(en="{change}", zh="{change}"),
        search=head_room,
        order=80,
        view="roofline",
        of_ops=True,
    ),
)
