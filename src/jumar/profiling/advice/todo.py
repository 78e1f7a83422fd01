"""The ranked to-do list: every moment of a step is counted once, for the most specific finding."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from jumar.profiling.advice.finding import Case, Finding
from jumar.profiling.advice.from_communication import transfers, waiting
from jumar.profiling.advice.from_host import from_host
from jumar.profiling.advice.from_ops import (
    ai_cpu_ops,
    casts,
    format_changes,
    head_room,
    low_clock,
    wide_types,
)
from jumar.profiling.profile import Profile
from jumar.profiling.views.intervals import SPAN, count_of, swept
from jumar.profiling.views.view import Impossible, Options

_FINDERS: Sequence[Callable[[Case], list[Finding]]] = (
    waiting,
    from_host,
    ai_cpu_ops,
    format_changes,
    casts,
    low_clock,
    wide_types,
    head_room,
    transfers,
)
"""In this order findings take the time that they claim: the specific before the general."""

WORTH = 0.001
"""A win below this share of a step is not shown."""

_STANDS = 0.1
"""A call in which the host stands for this share of a step is shown whatever it wins."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One line of the to-do list.

    Args:
        finding: What was found.
        win_ns: What a step of the slowest rank would take less, in nanoseconds, at most.
        step_ns: How long that step takes.
    """

    finding: Finding
    win_ns: float
    step_ns: float


def todo(profile: Profile, options: Options | None = None) -> list[Advice]:
    """What to do, the largest win first; the wins of all lines add up to at most one step.

    The list is that of the slowest rank, since the others wait for it, and of its steady steps.
    """
    if profile.ops["start_ns"].null_count() == profile.ops.height:
        raise Impossible("ops with start times")
    case = Case(profile, options or Options())
    found = [finding for finder in _FINDERS for finding in finder(case)]
    won = _once(case, found)
    rows = [
        Advice(finding=finding, win_ns=win / case.steps, step_ns=case.step_ns)
        for finding, win in zip(found, won, strict=True)
        if win / case.steps >= WORTH * case.step_ns
        or finding.host_ns / case.steps >= _STANDS * case.step_ns
    ]
    return sorted(rows, key=lambda row: -row.win_ns)


def _once(case: Case, found: Sequence[Finding]) -> list[int]:
    """The length that each finding claims and none before it does, in nanoseconds of all steps."""
    won = [0] * len(found)
    if not found:
        return won
    mine = pl.col("rank") == case.rank
    claims = [finding.claims.filter(mine).select(list(SPAN)) for finding in found]
    edges = swept([case.inside, case.together, *claims])
    state = edges.select(
        (pl.col("end_ns") - pl.col("start_ns")).alias("size"),
        (count_of(0) > 0).alias("inside"),
        (count_of(1) <= 0).alias("one"),
        pl.lit(None, dtype=pl.Int16).alias("owner"),
    )
    # One finding after the other: the counts of twenty at once would take more than the profile.
    for index, finding in enumerate(found):
        held = edges.select((count_of(index + 2) > 0).alias("held"))["held"]
        free = state["owner"].is_null() & held & (state["one"] if finding.alone else True)
        state = state.with_columns(
            pl.when(free).then(pl.lit(index, dtype=pl.Int16)).otherwise("owner").alias("owner")
        )
    owned = state.filter(pl.col("inside") & pl.col("owner").is_not_null() & (pl.col("size") > 0))
    for index, length in owned.group_by("owner").agg(pl.col("size").sum()).iter_rows():
        won[int(index)] = int(length)
    return won


def pace(profile: Profile, options: Options | None = None) -> str:
    """Whose step the to-do list is about, in one line."""
    case = Case(profile, options or Options())
    steps = "1 step" if case.steps == 1 else f"average of {case.steps} steady steps"
    rank = f"rank {case.rank}, the slowest: " if len(profile.ranks) > 1 else ""
    return (
        f"{rank}{case.step_ns / 1e6:.3f} ms a step ({steps}); wins are at most, "
        "and each moment counts once"
    )


TODO = {
    "win_ms": pl.Float64(),
    "share_%": pl.Float64(),
    "what": pl.String(),
    "evidence": pl.List(pl.String()),
    "change": pl.String(),
    "setting": pl.String(),
    "view": pl.String(),
    "key": pl.String(),
    "estimate": pl.Boolean(),
}
"""The columns of the to-do list as a table."""


def todo_table(profile: Profile, options: Options | None = None) -> pl.DataFrame:
    """The to-do list as a table (`TODO`), the largest win first."""
    rows = todo(profile, options)
    return pl.DataFrame(
        [
            {
                "win_ms": round(row.win_ns / 1e6, 3),
                "share_%": round(100 * row.win_ns / max(row.step_ns, 1), 2),
                "what": row.finding.what,
                "evidence": list(row.finding.evidence),
                "change": row.finding.change,
                "setting": row.finding.setting,
                "view": row.finding.view,
                "key": row.finding.key,
                "estimate": not row.finding.certain,
            }
            for row in rows
        ],
        schema=TODO,
    )
