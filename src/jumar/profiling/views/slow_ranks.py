"""Stragglers among ranks, and slow links and transfers."""

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import (
    NAME,
    RANK,
    SIZE,
    TRANSIT,
    TRANSPORT,
    VERDICT,
    column,
    ms,
    percent,
)
from jumar.profiling.profile import Profile
from jumar.profiling.views.step_split import step_split
from jumar.profiling.views.view import VIEWS, Impossible, Options, View

SLOW_SHARE = 0.05
"""Ranks and links count as slow if they differ from the median by more than this share."""

_HOW = "record with profiler_level=Level1 on several devices"
_ALIGNED = ("SDMA", "HCCS")
_TRANSFERS = column("transfers", "传输次数")
_SMALL_PACKET = 0.5
"""Below this share of large packets, a transfer is dominated by start-up costs."""


def rank_times(profile: Profile) -> pl.DataFrame:
    """One row per rank: average times, and how much longer it computes than the median rank."""
    if len(profile.ranks) < 2:
        raise Impossible("at least two ranks", "pass the folders of all ranks")
    recorded = profile.steps.filter(pl.col("computing_ns").is_not_null())
    split = recorded if profile.ops.is_empty() else step_split(profile)
    parts = ("computing_ns", "communication_not_overlapped_ns", "free_ns")
    table = (
        split.with_columns(pl.col("rank").fill_null(0))
        .group_by("rank")
        .agg(pl.len().alias("steps"), *(pl.col(name).mean() for name in parts))
        .sort("rank")
    )
    if table.is_empty():
        raise Impossible("ops with start times and durations, or the computing time of each step")
    median = float(table["computing_ns"].sort()[(table.height - 1) // 2])
    excess = (pl.col("computing_ns") / max(median, 1.0) - 1) * 100
    return table.with_columns(
        excess.round(2).alias("computes_longer_%"),
        _verdict(excess > SLOW_SHARE * 100, "slow"),
    )


def _verdict(applies: pl.Expr, text: str) -> pl.Expr:
    """The column `verdict`: a text where it applies, else empty."""
    return pl.when(applies).then(pl.lit(text)).otherwise(pl.lit("")).alias("verdict")


def slow_links(profile: Profile, _: Options) -> pl.DataFrame:
    """Links by bandwidth, slowest first, compared with the median of their transport."""
    links = profile.links.filter(
        (pl.col("transit_ns") > 0) & (pl.col("size_bytes") > 0) & pl.col("source").is_not_null()
    )
    links = links.filter(pl.col("source") != pl.col("destination"))
    if links.is_empty():
        raise Impossible(
            "transfers by link (communication_matrix.json)",
            _HOW,
        )
    table = links.group_by("transport", "source", "destination").agg(
        pl.len().alias("transfers"), pl.col("size_bytes").sum(), pl.col("transit_ns").sum()
    )
    # Bytes per nanosecond are gigabytes per second.
    table = table.with_columns((pl.col("size_bytes") / pl.col("transit_ns")).alias("gb_s"))
    median = pl.col("gb_s").median().over("transport")
    deficit = (1 - pl.col("gb_s") / median) * 100
    return table.sort("gb_s", "source", "destination", "transport").with_columns(
        (pl.col("size_bytes") / 1e6).round(3).alias("size_mb"),
        pl.col("gb_s").round(3),
        deficit.round(1).alias("below_median_%"),
        _verdict(deficit > SLOW_SHARE * 100, "slow"),
    )


def packets(profile: Profile, _: Options) -> pl.DataFrame:
    """Transfers by collective and transport: size, bandwidth, and whether packets are small."""
    links = profile.links.filter((pl.col("size_bytes") > 0) & pl.col("transport").is_not_null())
    links = links.filter(pl.col("source").is_null())
    if links.is_empty():
        raise Impossible(
            "transfers by transport (communication.json)",
            _HOW,
        )
    # HCCS needs packets of 32 MB for full speed; the producer classifies them as large or not.
    has_small_packets = (pl.col("large_packet_ratio") < _SMALL_PACKET) & (
        pl.col("transport") != "SDMA"
    )
    return links.sort("size_bytes", descending=True, maintain_order=True).with_columns(
        (pl.col("size_bytes") / 1e6).round(3).alias("size_mb"),
        pl.col("bandwidth_gb_s").round(3),
        pl.col("large_packet_ratio").round(3),
        _verdict(has_small_packets, "small packets"),
    )


def alignment(profile: Profile, _: Options) -> pl.DataFrame:
    """Transfers by whether their size is a multiple of 512 bytes, which SDMA needs for full speed.

    Files have only the total of a link's packets: if that is not a multiple, some packet is not; if
    it is, all packets may be.
    """
    links = profile.links.filter((pl.col("size_bytes") > 0) & pl.col("transport").is_in(_ALIGNED))
    if links["source"].null_count() < links.height:
        # Rows without a link repeat the same bytes, summed over links.
        links = links.filter(pl.col("source").is_not_null())
    if links.is_empty():
        raise Impossible(
            "SDMA or HCCS transfers (communication.json)",
            _HOW,
        )
    is_multiple = (pl.col("size_bytes") % 512) == 0
    return (
        links.group_by("transport", is_multiple.alias("multiple_of_512"))
        .agg(
            pl.len().alias("transfers"),
            (pl.col("size_bytes").sum() / 1e6).round(3).alias("size_mb"),
            pl.col("transit_ns").sum(),
            pl.col("name").drop_nulls().first().alias("for_example"),
        )
        .sort("transport", "multiple_of_512")
    )


VIEWS.add(
    View(
        name="ranks",
        title=Text(en="Ranks by computing time", zh="各卡计算耗时"),
        question=Text(
            en="Does one rank compute longer than the others?",
            zh="是否有某张卡的计算明显慢于其他卡？",
        ),
        columns=(
            RANK,
            column("steps", "迭代数"),
            ms("computing", "计算"),
            ms("communication_not_overlapped", "未掩盖通信", "uncovered communication"),
            ms("free", "空闲", "idle"),
            percent("computes_longer", "比中位卡多计算", "above the median rank"),
            VERDICT,
        ),
        compute=lambda profile, _: rank_times(profile),
        order=100,
        ranking=False,
    ),
    View(
        name="links",
        title=Text(en="Links by bandwidth", zh="各链路带宽"),
        question=Text(
            en="Is any link slower than others of the same transport?",
            zh="是否有链路慢于同类链路？",
        ),
        columns=(
            TRANSPORT,
            column("source", "源卡"),
            column("destination", "目的卡"),
            _TRANSFERS,
            SIZE,
            TRANSIT,
            column("gb_s", "带宽", "bandwidth", unit="GB/s"),
            percent("below_median", "低于中位数"),
            VERDICT,
        ),
        compute=slow_links,
        order=101,
    ),
    View(
        name="packets",
        title=Text(en="Transfers by size and packets", zh="按大小和通信包统计传输"),
        question=Text(
            en="Do collectives send packets too small to use the bandwidth?",
            zh="集合通信的包是否过小而无法用满带宽？",
        ),
        columns=(
            RANK,
            NAME,
            TRANSPORT,
            SIZE,
            TRANSIT,
            column("bandwidth_gb_s", "带宽", "bandwidth", unit="GB/s"),
            column("large_packet_ratio", "大包占比"),
            VERDICT,
        ),
        compute=packets,
        order=102,
    ),
    View(
        name="alignment",
        title=Text(en="Transfers by multiples of 512 bytes", zh="按是否为 512 字节整数倍统计传输"),
        question=Text(
            en="Are transfers aligned to 512 bytes, as SDMA needs for full speed?",
            zh="传输大小是否按 SDMA 全速所需的 512 字节对齐？",
        ),
        columns=(
            TRANSPORT,
            column("multiple_of_512", "512 字节整数倍"),
            _TRANSFERS,
            SIZE,
            TRANSIT,
            column("for_example", "示例"),
        ),
        compute=alignment,
        order=103,
        ranking=False,
    ),
)
