"""Findings about collectives: waiting for ranks, and transfers that nothing covers."""

import polars as pl

from jumar.profiling.advice.finding import Case, Finding, carved, ms
from jumar.profiling.views.collectives import collective_rows, collectives
from jumar.profiling.views.intervals import intersection, length
from jumar.profiling.views.view import Impossible, Options

_SHOWN = 3


def waiting(case: Case) -> list[Finding]:
    """Collectives in which nothing is transferred while nothing computes."""
    try:
        rows = case.mine(collective_rows(case.profile, uncovered=False))
    except Impossible:
        return []
    still = pl.col("wait_ns").fill_null(0) + pl.col("idle_ns").fill_null(0)
    rows = rows.with_columns(still.alias("still_ns")).filter(pl.col("still_ns") > 0)
    if rows.is_empty() or case.uncovered.is_empty():
        return []
    share = pl.col("still_ns") / pl.col("elapse_ns")
    # Collectives on several streams may overlap; a segment takes the share of the latest begun.
    begun = rows.sort("start_ns").select(
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
        begun, left_on="start_ns", right_on="from_ns", by="rank", check_sortedness=False
    )
    longest = rows.sort("elapse_ns", descending=True)
    evidence = [_spent(row) for row in longest.head(_SHOWN).iter_rows(named=True)]
    evidence += _late(case)
    evidence += _meanwhile(case)
    first = longest.row(0, named=True)
    return [
        Finding(
            key="collective-wait",
            what=f"Collectives wait instead of transferring: {first['name']} lasts "
            f"{ms(first['elapse_ns'])}, of which {ms(first['still_ns'])} nothing is transferred",
            claims=carved(shared, pl.col("share").fill_null(0.0)),
            evidence=tuple(evidence),
            change="Find the rank that comes late (profile all ranks of the group) and give all "
            "ranks equal work: equal batches, loaders that keep up, no work of one rank alone "
            "(saving, logging) before a collective.",
            view="collectives",
        )
    ]


def _spent(row: dict[str, object]) -> str:
    told = [
        f"{ms(float(str(row[f'{name}_ns'])))} {said}"
        for name, said in (("transit", "transfer"), ("wait", "wait"), ("idle", "idle"))
        if row[f"{name}_ns"] is not None
    ]
    lasted = ms(float(str(row["elapse_ns"])))
    return f"rank {row['rank']}: {row['name']} {lasted}: {', '.join(told)}"


def _late(case: Case) -> list[str]:
    """Who came last to the longest collective, and which ranks the profile does not hold."""
    if len(case.profile.ranks) < 2:
        return []
    found: list[str] = []
    table = collectives(case.profile, Options())
    late = table.filter((pl.col("late_ms") > 0.05) & (pl.col("rank") == case.rank))
    for row in late.head(1).iter_rows(named=True):
        found.append(
            f"rank {row['late_rank']} came {row['late_ms']:.3f} ms after the first to "
            f"{row['name']}: {row['late_rank_did']}"
        )
    links = case.profile.links
    ends = pl.concat([links["source"], links["destination"]]).drop_nulls().unique()
    absent = sorted(set(ends.to_list()) - set(case.profile.ranks))
    if absent:
        named = ", ".join(map(str, absent))
        found.append(
            f"ranks {named} take part, too, but are not in this profile; where all ranks that are "
            "here idle at once, the late one is among them"
        )
    return found


def _meanwhile(case: Case) -> list[str]:
    """What the host did while communication was uncovered."""
    found: list[str] = []
    for cause in case.causes:
        both = length(intersection(cause.alone, case.uncovered))
        if cause.kind == "blocking" and both > 0.05 * length(case.uncovered):
            found.append(
                f"meanwhile the host stood {ms(both / case.steps)} a step in {cause.label}"
            )
    return found[:2]


def transfers(case: Case) -> list[Finding]:
    """Communication that no computing covers, whatever it is made of."""
    if case.uncovered.is_empty():
        return []
    total = length(intersection(case.uncovered, case.inside)) / case.steps
    return [
        Finding(
            key="uncovered-communication",
            what=f"Communication that nothing computes beside: {ms(total)} a step",
            claims=case.uncovered,
            evidence=(
                f"{ms(length(case.communicating) / case.steps)} of communication a step, of which "
                f"{ms(total)} uncovered (waiting is counted on its own)",
            ),
            change="Start collectives earlier and in larger buckets (bucket_cap_mb), or send "
            "gradients in half precision, so that backward covers them.",
            view="steps",
        )
    ]
