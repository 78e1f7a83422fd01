"""Findings about ops: AI CPU, format changes, casts, dtypes, clock, and head-room."""

import polars as pl

from jumar.ground.text import counted
from jumar.profiling.advice.finding import Case, Finding, carved, ms
from jumar.profiling.views.aicpu import ai_cpu
from jumar.profiling.views.casts import is_cast, is_format_change
from jumar.profiling.views.frequency import DROP, clocks
from jumar.profiling.views.intervals import spans
from jumar.profiling.views.op_costs import family
from jumar.profiling.views.roofline import limits, the_chip
from jumar.profiling.views.view import Impossible

_SHOWN = 3
_REACHABLE = 0.7
"""Share of the chip's limit that a good kernel reaches; above it there is nothing to win."""

_TYPES = 5
_WITH_LIMITS = ("AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV", "CUDA")
"""Cores to which the chip table's rates apply; a generator of random bits has others."""


def _share(case: Case, kinds: pl.DataFrame) -> float:
    total = max(float(case.kinds["duration_ns"].sum()), 1.0)
    return 100 * float(kinds["duration_ns"].sum()) / total


def _largest(case: Case, kinds: pl.DataFrame, *columns: str) -> list[str]:
    """The largest groups of ops as text."""
    table = (
        kinds.group_by(*columns)
        .agg(pl.col("count").sum(), pl.col("duration_ns").sum())
        .sort("duration_ns", *columns, descending=[True] + [False] * len(columns))
        .head(_SHOWN)
    )
    return [
        f"{row['count'] / case.steps:g} x {' '.join(str(row[name] or '-') for name in columns)}: "
        f"{ms(row['duration_ns'] / case.steps)} a step"
        for row in table.iter_rows(named=True)
    ]


def ai_cpu_ops(case: Case) -> list[Finding]:
    """Ops on the AI CPU, which the AI Core would do in a small part of the time."""
    kinds = case.kinds.filter(pl.col("core") == "AI_CPU")
    if kinds.is_empty():
        return []
    try:
        told = ai_cpu(case.profile, case.options)
    except Impossible:
        return []
    found: list[Finding] = []
    by_type = kinds.group_by("type").agg(pl.col("duration_ns").sum())
    types = by_type.sort("duration_ns", "type", descending=[True, False])["type"].to_list()
    for one in types[:_TYPES]:
        own = kinds.filter(pl.col("type").eq_missing(one))
        why = told.filter(pl.col("type").eq_missing(one)).row(0, named=True)
        found.append(
            Finding(
                key="ai-cpu",
                what=f"{one} runs on the AI CPU ({why['reason']})",
                claims=spans(case.of(own)),
                alone=True,
                evidence=tuple(_largest(case, own, "type", "input_types", "input_shapes")),
                change=f"{why['use_instead'][0].upper()}{why['use_instead'][1:]}.",
                view="aicpu",
            )
        )
    return found


def format_changes(case: Case) -> list[Finding]:
    """TransData, Transpose and their like."""
    kinds = case.kinds.filter(is_format_change(case.kinds))
    if kinds.is_empty():
        return []
    types = kinds.group_by("type").agg(pl.col("duration_ns").sum()).sort("duration_ns", "type")
    names = " + ".join(reversed([str(one) for one in types["type"].to_list()]))
    return [
        Finding(
            key="format-changes",
            what=f"{names} {'take' if types.height > 1 else 'takes'} "
            f"{_share(case, kinds):.1f} % of compute",
            claims=spans(case.of(kinds)),
            alone=True,
            evidence=tuple(_largest(case, kinds, "type", "input_formats", "output_formats")),
            change="Keep one layout through the network: channels_last on GPUs; on Ascend "
            "torch.npu.config.allow_internal_format=False, or npu_format_cast of the weights once "
            "before training.",
            setting="training.channels_last",
            view="casts",
        )
    ]


def casts(case: Case) -> list[Finding]:
    """Ops that only change the dtype."""
    kinds = case.kinds.filter(is_cast(case.kinds))
    if kinds.is_empty():
        return []
    count = int(kinds["count"].sum())
    return [
        Finding(
            key="casts",
            what=f"{counted(count / case.steps, 'cast')} a step take {_share(case, kinds):.1f} % "
            "of compute",
            claims=spans(case.of(kinds)),
            alone=True,
            evidence=tuple(_largest(case, kinds, "input_types", "output_types", "input_shapes")),
            change="Let neighbours compute in one dtype: put the ops between two casts on the same "
            "list of modify_mixlist (`jumar profile compare` proposes the edits), and make inputs "
            "in the dtype that the network computes in.",
            setting="precision.modify_mixlist",
            view="casts",
        )
    ]


def wide_types(case: Case) -> list[Finding]:
    """Matrix ops and convolutions in 32 bits, on a chip whose matrix unit is made for 16."""
    if case.profile.kind == "cpu":
        return []
    heavy = [kind for kind in case.kinds["type"].drop_nulls().unique() if family(str(kind))]
    types = [str(text) for text in case.kinds["input_types"].drop_nulls().unique()]
    single = [text for text in types if _is_single(text.split(";"))]
    kinds = case.kinds.filter(
        pl.col("type").is_in(heavy)
        & pl.col("input_types").is_in(single)
        & pl.col("core").ne_missing("AI_CPU")
    )
    if kinds.is_empty():
        return []
    return [
        Finding(
            key="wide-types",
            what=f"Matrix products and convolutions compute in FLOAT: {_share(case, kinds):.1f} % "
            "of compute",
            claims=carved(spans(case.of(kinds)), 0.5),
            alone=True,
            evidence=tuple(_largest(case, kinds, "type", "input_types", "input_shapes")),
            change="Train in allow_mix_precision with a loss scale, which halves bytes and at "
            "least halves the work of the matrix unit; estimated at half of their time, without "
            "the casts that it adds.",
            setting="precision.mode",
            view="by-dtype",
        )
    ]


def _is_single(types: list[str]) -> bool:
    return "FLOAT" in types and not {"FLOAT16", "BF16"} & set(types)


def low_clock(case: Case) -> list[Finding]:
    """Ops that ran while the cores' clock was low."""
    try:
        told = clocks(case.profile).filter(pl.col("rank") == case.rank)
    except Impossible:
        return []
    full = told["mhz"].quantile(0.95)
    if full is None or case.ops.is_empty():
        return []
    # A clock counts from the moment it was read; before the first reading it counts as full.
    ops = (
        spans(case.ops)
        .sort("start_ns")
        .join_asof(
            told.select(pl.col("time_ns"), "mhz").sort("time_ns"),
            left_on="start_ns",
            right_on="time_ns",
        )
        .with_columns(pl.col("mhz").fill_null(full))
        .filter(pl.col("mhz") < full * (1 - DROP))
    )
    if ops.is_empty():
        return []
    lowest = float(str(ops["mhz"].min()))
    return [
        Finding(
            key="low-clock",
            what=f"The cores' clock drops from {full:.0f} to {lowest:.0f} MHz",
            claims=carved(ops, 1 - pl.col("mhz") / full),
            alone=True,
            evidence=(
                f"{counted(ops.height / case.steps, 'op')} a step ran below {1 - DROP:.0%} of it",
            ),
            change="Look at temperature and power (npu-smi info -t temp, -t power; nvidia-smi -q "
            "-d PERFORMANCE) and at the limits that are set.",
            view="frequency",
        )
    ]


def head_room(case: Case) -> list[Finding]:
    """Types of ops that are far from what the chip could do."""
    try:
        chip = the_chip(case.profile, case.options)
        told = limits(case.profile, chip)
    except Impossible:
        return []
    least = (pl.col("least_ns") / _REACHABLE).round().cast(pl.Int64)
    told = told.select("same", "bound", least.alias("least_ns")).drop_nulls("least_ns")
    changes = is_cast(case.kinds) | is_format_change(case.kinds)
    kinds = case.kinds.filter(~changes & pl.col("core").is_in(_WITH_LIMITS)).join(told, on="same")
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
    found: list[Finding] = []
    by_type = kinds.group_by("type").agg(pl.col("room_ns").sum(), pl.col("duration_ns").sum())
    for row in by_type.sort("room_ns", "type", descending=[True, False]).head(_TYPES).rows():
        own = kinds.filter(pl.col("type") == row[0])
        bounds = own.group_by("bound").agg(pl.col("room_ns").sum()).sort("room_ns")["bound"]
        mine = ops.join(own.select("kind"), on="kind", how="semi")
        claims = spans(mine, duration="room_ns")
        found.append(
            Finding(
                key="head-room",
                what=f"{row[0]} takes {ms(row[2] / case.steps)} a step, "
                f"{row[2] / max(row[2] - row[1], 1):.1f} times what 70 % of the chip's limit gives",
                claims=claims,
                alone=True,
                evidence=(
                    *_largest(case, own, "input_shapes", "input_types", "bound"),
                    f"peak rates: {chip.label}",
                ),
                change=_BY_BOUND[str(bounds[-1])],
                view="roofline",
            )
        )
    return found


_BY_BOUND = {
    "cube": "Give the matrix unit sizes that fill it: channels and inner axes as multiples of 16, "
    "and a larger batch.",
    "vector": "Use the fused form of the op, or fewer of it.",
    "memory": "Fuse it with its neighbours so that it reads and writes less, or use 16-bit types; "
    "look for rows that are not contiguous.",
    "launch": "It is too small to be worth starting: put several of it together (foreach or fused "
    "optimizers, a larger batch).",
}
