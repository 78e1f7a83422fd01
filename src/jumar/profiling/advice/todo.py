"""The ranked to-do list; each moment of a step counts once, for the most specific finding."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.advice.finding import FINDINGS, Case, Claim, Finding
from jumar.profiling.columns import SHARE, column, ms
from jumar.profiling.profile import Profile
from jumar.profiling.views.intervals import SPAN, count_of, swept
from jumar.profiling.views.view import VIEWS, Impossible, Options, View
from jumar.profiling.views.windows import has_steps

MIN_SHARE = 0.001
"""Savings below this share of a step are not reported."""

_BLOCKING_SHARE = 0.1
"""Calls that block the host for at least this share of a step are always reported."""


_MAX_INTERVALS = 20
"""Maximum number of intervals per entry that the page steps through."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """An entry of the to-do list.

    Args:
        finding: The finding.
        claim: The instance in this profile.
        win_ns: The maximum saving per step of the slowest rank, in nanoseconds.
        step_ns: The average time of the steps that the list covers.
        longest: The longest time intervals of the claim, sorted by time.
        count: The number of all intervals of the claim.
    """

    finding: Finding
    claim: Claim
    saving_ns: float
    step_ns: float
    longest: pl.DataFrame = field(repr=False)
    count: int


def todo(profile: Profile, options: Options | None = None) -> list[Advice]:
    """The to-do list, largest saving first; all savings add up to at most one step.

    It covers the steady steps of the slowest rank, since the others wait for it.
    """
    options = options or Options()
    if profile.ops["start_ns"].null_count() == profile.ops.height:
        raise Impossible("ops with start times")
    # The page needs it twice: for the list, and for the intervals on the timeline.
    return profile.cached(f"to-do {options!r}", lambda: _ranked(profile, options))


def _ranked(profile: Profile, options: Options) -> list[Advice]:
    """Search all findings, and rank the claims by saving."""
    case = Case(profile, options)
    claimed = [(finding, claim) for finding in FINDINGS.values() for claim in finding.search(case)]
    savings = _unique_savings(case, claimed)
    rows = [
        Advice(
            finding=finding,
            # The spans of all entries would be as large as the profile.
            claim=replace(claim, spans=claim.spans.clear()),
            saving_ns=saving / case.steps,
            step_ns=case.step_ns,
            longest=_longest(claim.spans.filter(pl.col("rank") == case.rank)),
            count=claim.spans.height,
        )
        for (finding, claim), saving in zip(claimed, savings, strict=True)
        if saving / case.steps >= MIN_SHARE * case.step_ns
        or claim.host_ns / case.steps >= _BLOCKING_SHARE * case.step_ns
    ]
    return sorted(rows, key=lambda row: -row.saving_ns)


def _longest(spans: pl.DataFrame) -> pl.DataFrame:
    length = pl.col("end_ns") - pl.col("start_ns")
    longest = spans.select(list(SPAN)).top_k(
        _MAX_INTERVALS, by=[length, pl.col("start_ns")], reverse=[False, True]
    )
    return longest.sort("start_ns")


def _unique_savings(case: Case, claimed: Sequence[tuple[Finding, Claim]]) -> list[int]:
    """The time of each claim that no earlier claim covers, in nanoseconds over all steps."""
    savings = [0] * len(claimed)
    if not claimed:
        return savings
    is_rank = pl.col("rank") == case.rank
    claims = [claim.spans.filter(is_rank).select(list(SPAN)) for _, claim in claimed]
    edges = swept([case.step_spans, case.concurrent, *claims])
    state = edges.select(
        (pl.col("end_ns") - pl.col("start_ns")).alias("size"),
        (count_of(0) > 0).alias("is_inside"),
        (count_of(1) <= 0).alias("is_alone"),
        pl.lit(None, dtype=pl.Int16).alias("owner"),
    )
    # One claim at a time: the counts of twenty at once would take more memory than the profile.
    for index, (finding, _) in enumerate(claimed):
        is_claimed = edges.select((count_of(index + 2) > 0).alias("claimed"))["claimed"]
        free = (
            state["owner"].is_null() & is_claimed & (state["is_alone"] if finding.of_ops else True)
        )
        state = state.with_columns(
            pl.when(free).then(pl.lit(index, dtype=pl.Int16)).otherwise("owner").alias("owner")
        )
    owned_segments = state.filter(
        pl.col("is_inside") & pl.col("owner").is_not_null() & (pl.col("size") > 0)
    )
    for index, length in owned_segments.group_by("owner").agg(pl.col("size").sum()).iter_rows():
        savings[int(index)] = int(length)
    return savings


def step_summary(profile: Profile, options: Options) -> str:
    """A line with the rank and the steps that the to-do list covers."""
    case = Case(profile, options)
    step = f"{case.step_ns / 1e6:.3f} ms"
    has_ranks = len(profile.ranks) > 1
    steps = "1 step" if case.steps == 1 else f"average of {case.steps} steady steps"
    zh_steps = f"{case.steps} 个稳定迭代{'的平均值' if case.steps > 1 else ''}"
    if not has_steps(profile):
        steps, zh_steps = (
            "no steps are marked: the whole capture counts as one",
            "未标出迭代，全部视为一个",
        )
    return Text(
        en=f"{f'rank {case.rank}, the slowest: ' if has_ranks else ''}{step} per step ({steps}); "
        "savings are upper limits, and no time is counted twice",
        zh=f"{f'卡 {case.rank}（最慢）：' if has_ranks else ''}每迭代 {step}"
        f"（{zh_steps}）；收益为上限，每个时刻只计一次",
    ).in_language(options.language)


COLUMNS = {
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
    """The to-do list as a table (`COLUMNS`), the largest saving first."""
    options = options or Options()
    return pl.DataFrame(
        [
            {
                "win_ms": round(row.saving_ns / 1e6, 3),
                "share_%": round(100 * row.saving_ns / max(row.step_ns, 1), 2),
                "what": row.finding.what.filled(**row.claim.values).in_language(options.language),
                "evidence": [line.in_language(options.language) for line in row.claim.evidence],
                "change": row.finding.change.filled(**row.claim.values).in_language(
                    options.language
                ),
                "setting": row.finding.setting,
                "view": row.finding.view,
                "key": row.finding.name,
                "estimate": not row.finding.certain,
            }
            for row in todo(profile, options)
        ],
        schema=COLUMNS,
    )


VIEWS.add(
    View(
        name="todo",
        title=Text(
            en="What to do, by possible saving per step",
            zh="优化建议，按每迭代可节省的毫秒数排序",
        ),
        question=Text(
            en="What would make a step faster, and by how much?",
            zh="怎样缩短迭代时间，能缩短多少？",
        ),
        columns=(
            ms("win", "收益"),
            SHARE,
            column("what", "问题"),
            column("evidence", "依据"),
            column("change", "建议"),
            column("setting", "配置项"),
            column("view", "相关视图"),
            column("key", "标识"),
            column("estimate", "是否估算"),
        ),
        compute=todo_table,
        order=0,
        usual=True,
        ranking=False,
        uses_rates=True,
        advice=True,
    )
)
