"""Whether training waits for data, from any evidence in the profile."""

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import RANK, VERDICT, column, ms, percent
from jumar.profiling.profile import Profile
from jumar.profiling.views.host_calls import LOADING, free_time
from jumar.profiling.views.intervals import intersection, length, spans, union
from jumar.profiling.views.view import VIEWS, Impossible, Options, View
from jumar.profiling.views.windows import as_spans, steady, step_windows

STALL_SHARE = 0.05
"""Waiting for data for more than this share of a step is a stall."""

_GET_NEXT_TYPES = r"(?i)^(getnext|iteratorgetnext|iteratorv2|dequeue|queuedequeue|getnextv2)"
_QUEUES = ("aicpu_mi", "dp")


def data_stalls(profile: Profile, _: Options) -> pl.DataFrame:
    """One row per source and rank: the average wait for data, and the verdict.

    With PyTorch it is the time of loader calls while the device is idle; with MindSpore and
    TensorFlow `Data Aug Bound`, GetNext ops and empty queues; with torch_npu also `Preparing`,
    which is an upper limit because it includes everything before the first op.
    """
    windows = steady(step_windows(profile))
    rows = [
        *_loader_calls(profile, windows),
        *_recorded_waits(profile),
        *_get_next_ops(profile, windows),
        *_queues(profile),
    ]
    if not rows:
        raise Impossible(
            "calls of the data loader, Preparing, Data Aug Bound, GetNext, or data queues",
            "also record the host (activities CPU and NPU), or set training_trace=on",
        )
    return pl.DataFrame(rows, infer_schema_length=None).sort("rank", "source", maintain_order=True)


def _row(
    rank: int, source: str, waited: float, step: float, stall: str = "stall"
) -> dict[str, object]:
    """A row with the average wait in a step; `stall` is the verdict if it is too long."""
    share = waited / step if step else 0.0
    return {
        "rank": rank,
        "source": source,
        "per_step_ms": round(waited / 1e6, 6),
        "share_of_step_%": round(share * 100, 2),
        "verdict": stall if share > STALL_SHARE else "ok",
    }


def _steps(windows: pl.DataFrame) -> dict[int, tuple[int, float]]:
    """Number of steps and average step time of each rank."""
    step_time = (pl.col("end_ns") - pl.col("begin_ns")).mean()
    table = windows.group_by("rank").agg(pl.len(), step_time.alias("mean"))
    return {int(rank): (int(count), float(mean)) for rank, count, mean in table.iter_rows()}


def _loader_calls(profile: Profile, windows: pl.DataFrame) -> list[dict[str, object]]:
    calls = profile.host.filter(
        pl.col("layer").is_in(["op", "mark"]) & pl.col("name").str.contains(LOADING)
    )
    if calls.is_empty() or windows.is_empty():
        return []
    loading = union(spans(calls))
    inside = as_spans(windows)
    # On a CPU the op table includes the loader's own ops, so the whole call counts as waiting.
    free = inside if profile.kind == "cpu" else free_time(profile, inside)
    waits = intersection(loading, free)
    rows: list[dict[str, object]] = []
    for rank, (count, mean) in sorted(_steps(windows).items()):
        rank_waits = waits.filter(pl.col("rank") == rank)
        rows.append(_row(rank, "loader call, device idle", length(rank_waits) / count, mean))
    return rows


def _recorded_waits(profile: Profile) -> list[dict[str, object]]:
    parts = ("computing_ns", "communication_not_overlapped_ns", "free_ns", "preparing_ns")
    sum_of_parts = pl.sum_horizontal(parts)
    step_time = pl.coalesce(pl.col("end_ns") - pl.col("start_ns"), sum_of_parts)
    rows: list[dict[str, object]] = []
    for part, source, stall in (
        ("data_ns", "Data Aug Bound", "stall"),
        # Preparing also includes anything else before the first op.
        ("preparing_ns", "Preparing", "possible stall"),
    ):
        table = (
            profile.steps.filter(pl.col(part).is_not_null())
            .group_by(pl.col("rank").fill_null(0))
            .agg(pl.col(part).mean(), step_time.mean().alias("step"))
            .sort("rank")
        )
        for rank, waited, step in table.iter_rows():
            rows.append(_row(rank, source, float(waited), float(step or 0), stall))
    return rows


def _get_next_ops(profile: Profile, windows: pl.DataFrame) -> list[dict[str, object]]:
    ops = profile.ops.filter(pl.col("type").str.contains(_GET_NEXT_TYPES))
    steps = _steps(windows)
    totals = ops.group_by(pl.col("rank").fill_null(0)).agg(pl.col("duration_ns").sum())
    rows: list[dict[str, object]] = []
    for rank, total in totals.sort("rank").rows():
        count, mean = steps.get(int(rank), (1, 0.0))
        rows.append(_row(int(rank), "GetNext", float(total) / count, mean))
    return rows


def _queues(profile: Profile) -> list[dict[str, object]]:
    """Only the queue size is known; training stalls if more than a tenth of samples are 0."""
    rows: list[dict[str, object]] = []
    for kind in _QUEUES:
        table = profile.statistics.get(kind)
        if table is None:
            continue
        sizes = next(
            (name for name in ("queue_size", "cached_buffer_size") if name in table.columns), None
        )
        if sizes is None or table[sizes].null_count() == table.height:
            continue
        size = table[sizes].cast(pl.Float64, strict=False).drop_nulls()
        empty = float((size <= 0).sum()) / max(len(size), 1)
        rows.append(
            _row(0, f"{kind}: data queue empty", 0.0, 0.0)
            | {
                "share_of_step_%": round(empty * 100, 2),
                "verdict": "stall" if empty > 0.1 else "ok",
            }
        )
    return rows


VIEWS.add(
    View(
        name="data",
        title=Text(en="Waiting for data", zh="等待数据"),
        question=Text(en="Does training wait for batches?", zh="训练是否在等待数据？"),
        columns=(
            RANK,
            column("source", "依据", "evidence"),
            ms("per_step", "每迭代等待", "per step"),
            percent("share_of_step", "占迭代时间"),
            VERDICT,
        ),
        compute=data_stalls,
        order=130,
        ranking=False,
    )
)
