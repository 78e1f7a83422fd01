"""Findings about collectives: waiting, and uncovered communication."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.advice.finding import FINDINGS, Case, Claim, Finding, carved, ms
from jumar.profiling.views.collectives import collective_rows, collectives
from jumar.profiling.views.intervals import intersection, length
from jumar.profiling.views.view import Impossible

_MAX_LINES: Final = 3
_MIN_DELAY_NS: Final = 50_000


def waiting(case: Case) -> Iterator[Claim]:
    """Claim the uncovered time in which collectives transfer nothing."""
    try:
        rows = case.in_scope(collective_rows(case.profile, uncovered=False))
    except Impossible:
        return
    untransferred = pl.col("wait_ns").fill_null(0) + pl.col("idle_ns").fill_null(0)
    rows = rows.with_columns(untransferred.alias("still_ns")).filter(pl.col("still_ns") > 0)
    if rows.is_empty() or case.uncovered.is_empty():
        return
    share = pl.col("still_ns") / pl.col("elapse_ns")
    # Collectives on several streams may overlap; the share of the last one started counts.
    starts = rows.sort("start_ns", maintain_order=True).select(
        pl.col("rank").cast(pl.Int32), pl.col("start_ns").alias("from_ns"), share.alias("share")
    )
    parts = intersection(
        case.uncovered,
        rows.select(
            pl.col("rank").cast(pl.Int32),
            "start_ns",
            (pl.col("start_ns") + pl.col("elapse_ns")).alias("end_ns"),
        ),
    ).sort("start_ns")
    shared = parts.join_asof(
        starts, left_on="start_ns", right_on="from_ns", by="rank", check_sortedness=False
    )
    longest = rows.sort("elapse_ns", descending=True, maintain_order=True)
    first = longest.row(0, named=True)
    yield Claim(
        values={
            "name": first["name"],
            "lasts": ms(first["elapse_ns"]),
            "still": ms(first["still_ns"]),
        },
        spans=carved(shared, pl.col("share").fill_null(0.0)),
        evidence=(
            *(_time_split(row) for row in longest.head(_MAX_LINES).iter_rows(named=True)),
            *_late_rank_lines(case),
            *_host_lines(case),
        ),
    )


_PARTS: Final = {
    "transit": Text(en="transfer", zh="传输"),
    "wait": Text(en="wait", zh="等待"),
    "idle": Text(en="idle", zh="空闲"),
}


def _time_split(row: dict[str, object]) -> Text:
    times = {
        part: ms(float(str(row[f"{name}_ns"])))
        for name, part in _PARTS.items()
        if row[f"{name}_ns"] is not None
    }
    elapsed = ms(float(str(row["elapse_ns"])))
    en = ", ".join(f"{time} {part.en}" for part, time in times.items())
    zh = "，".join(f"{part.zh} {time}" for part, time in times.items())
    return Text(
        en=f"rank {row['rank']}: {row['name']} {elapsed}: {en}",
        zh=f"卡 {row['rank']}：{row['name']} {elapsed}：{zh}",
    )


def _late_rank_lines(case: Case) -> Iterator[Text]:
    """Lines on the late rank of the longest collective, and on ranks missing from the profile."""
    if len(case.profile.ranks) < 2:
        return
    table = collectives(case.profile, case.options)
    late = table.filter((pl.col("late_ns") > _MIN_DELAY_NS) & (pl.col("rank") == case.rank))
    for row in late.head(1).iter_rows(named=True):
        rank, name, activity = row["late_rank"], row["name"], row["late_rank_did"]
        delay = ms(row["late_ns"])
        yield Text(
            en=f"rank {rank} entered {name} {delay} after the first rank: {activity}",
            zh=f"卡 {rank} 比最早的卡晚 {delay} 进入 {name}：{activity}",
        )
    links = case.profile.links
    ends = pl.concat([links["source"], links["destination"]]).drop_nulls().unique()
    absent = sorted(set(ends.to_list()) - set(case.profile.ranks))
    if absent:
        ranks = ", ".join(map(str, absent))
        yield Text(
            en=f"ranks {ranks} also take part but are not in this profile; while all profiled "
            "ranks are idle, the late rank is one of the missing ones",
            zh=f"卡 {ranks} 也参与通信，但不在此性能数据中；若这里的所有卡同时空闲，"
            "迟到的卡就在其中",
        )


def _host_lines(case: Case) -> list[Text]:
    """Lines on what the host did during uncovered communication."""
    lines: list[Text] = []
    for cause in case.causes:
        overlap_ns = length(intersection(cause.alone, case.uncovered))
        if cause.kind in ("blocking", "copy") and overlap_ns > 0.05 * length(case.uncovered):
            blocked = ms(overlap_ns / case.steps)
            lines.append(
                Text(
                    en=f"meanwhile the host spent {blocked} per step in {cause.label.en}",
                    zh=f"其间 host 每迭代在 {cause.label.zh} 中阻塞 {blocked}",
                )
            )
    return lines[:2]


def transfers(case: Case) -> Iterator[Claim]:
    """Claim all uncovered communication."""
    if case.uncovered.is_empty():
        return
    uncovered = ms(length(intersection(case.uncovered, case.step_spans)) / case.steps)
    total = ms(length(intersection(case.communicating, case.step_spans)) / case.steps)
    yield Claim(
        values={"bare": uncovered},
        spans=case.uncovered,
        evidence=(
            Text(
                en=f"{total} of communication per step, of which {uncovered} uncovered (waiting is "
                "counted separately)",
                zh=f"每迭代通信 {total}，其中未掩盖 {uncovered}（等待另行统计）",
            ),
        ),
    )


FINDINGS.add(
    Finding(
        name="collective-wait",
        what=Text(
            en="Collectives wait instead of transferring: {name} takes {lasts}, {still} of it "
            "without transfers",
            zh="集合通信在等待而非传输：{name} 持续 {lasts}，其中 {still} 没有传输数据",
        ),
        change=Text(
            en="Find the straggler (profile all ranks of the group) and give all ranks equal work: "
            "equal batches, data loading that keeps up, and no work on a single rank (saving, "
            "logging) before a collective.",
            zh="找出迟到的卡（采集通信域内所有卡），使各卡负载均衡：batch 大小一致，数据加载"
            "跟得上，集合通信之前不要让某一张卡单独做事（保存、写日志）。",
        ),
        search=waiting,
        order=10,
        view="collectives",
    ),
    Finding(
        name="uncovered-communication",
        what=Text(
            en="Uncovered communication: {bare} per step",
            zh="未被计算掩盖的通信：每迭代 {bare}",
        ),
        change=Text(
            en="Start collectives earlier and in larger buckets (bucket_cap_mb), or send gradients "
            "in half precision, so that the backward pass covers them.",
            zh="让集合通信更早开始、使用更大的桶（bucket_cap_mb），或以半精度传输梯度，使反向计算能"
            "将其掩盖。",
        ),
        search=transfers,
        order=90,
        view="steps",
    ),
)
