"""The gate: checks a profile against limits, for continuous integration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import polars as pl

from jumar.ground.errors import UserError
from jumar.profiling.profile import Profile
from jumar.profiling.reading.unreadable import lost_part
from jumar.profiling.views.casts import is_cast, is_format_change
from jumar.profiling.views.slow_ranks import rank_times
from jumar.profiling.views.step_split import contradictions, step_split
from jumar.profiling.views.view import LEVEL_1, Impossible
from jumar.profiling.views.windows import computing, steady, step_windows


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The result of a check: a limit and the measured value.

    Args:
        name: The measure, as in the option `--max-NAME`.
        unit: `ms` or `%`.
        limit: The largest allowed value.
        value: The measured value; None if the profile lacks the data.
        needs: The data missing in that case.
    """

    name: str
    unit: str
    limit: float
    value: float | None
    needs: str = ""

    @property
    def kept(self) -> bool:
        """Whether the limit is met; without a value it is not."""
        return self.value is not None and self.value <= self.limit


_MEASURED_KINDS: Final = (
    *("kernel_details", "op_summary", "task_time", "kineto", "trace", "hccl_trace"),
    *("mindspore_timeline", "mindspore_op_detail", "mindspore_aicpu"),
    *("step_trace_time", "cluster_step_trace_time", "step_trace", "mindspore_step_trace"),
)
"""Kinds of files with ops or steps."""


def _require_whole_files(profile: Profile) -> None:
    """Raise `Impossible` for truncated files and dropped lines, whose time would be missing."""
    kinds = dict(profile.files)
    # The kind of a file that cannot be read is unknown: it may contain ops.
    possible_kinds = (*_MEASURED_KINDS, None)
    gaps = [gap for gap in profile.missing if kinds.get(gap.file) in possible_kinds]
    for part, needs, why in (
        ("all", "{}", "it cannot be read"),
        ("end", "all of {}", "it ends in the middle"),
        ("lines", "all lines of {}", "incomplete ones were dropped"),
    ):
        for gap in gaps:
            if lost_part(gap) == part:
                raise Impossible(needs.format(gap.file), why)


def _require_whole_steps(profile: Profile) -> None:
    """Raise `Impossible` for incomplete files, steps without bounds or ops, and mixed ranks."""
    _require_whole_files(profile)
    for gap in profile.missing:
        if "gate" in gap.needed_for:
            mixed = "ranks" in gap.needed_for
            raise Impossible("ops of known ranks" if mixed else "steps on the clock of the ops")
    for line in contradictions(profile):
        raise Impossible(f"figures that agree: {line.en}")


def step_ms(profile: Profile) -> float:
    """Average steady step time of the slowest rank, including the time before the first op."""
    _require_whole_steps(profile)
    windows = steady(step_windows(profile))
    if windows.is_empty():
        raise Impossible("ops with start times, or steps")
    step_time = (pl.col("end_ns") - pl.col("begin_ns")).mean().alias("mean")
    return float(windows.group_by("rank").agg(step_time)["mean"].max()) / 1e6  # pyright: ignore


def _share(profile: Profile, chosen: Callable[[pl.DataFrame], pl.Expr], column: str) -> float:
    """Percentage of compute time in the chosen ops, which needs a column."""
    ops = computing(profile.ops.select("name", "type", "core", "duration_ns", "input_types"))
    if ops.is_empty() or ops[column].null_count() == ops.height:
        raise Impossible(f"the {column} of each op", LEVEL_1)
    _require_whole_files(profile)
    part = ops.filter(chosen(ops))["duration_ns"].sum()
    return 100 * float(part) / max(float(ops["duration_ns"].sum()), 1.0)


def _is_on_ai_cpu(_: pl.DataFrame) -> pl.Expr:
    return pl.col("core").eq_missing("AI_CPU")


def _share_of_step(profile: Profile, column: str) -> float:
    """Percentage of step time in a part of the steps."""
    if profile.ops["start_ns"].null_count() == profile.ops.height:
        raise Impossible("ops with start times")
    _require_whole_steps(profile)
    split = step_split(profile)
    total_ns = float((split["end_ns"] - split["start_ns"]).sum())
    return 100 * float(split[column].sum()) / max(total_ns, 1.0)


def free_share(profile: Profile) -> float:
    """Percentage of step time in which the device is idle."""
    if profile.kind == "cpu":
        raise Impossible("ops on a device separate from the host")
    return _share_of_step(profile, "free_ns")


def rank_spread(profile: Profile) -> float:
    """The percentage by which the slowest rank computes longer than the median rank."""
    times = rank_times(profile)
    _require_whole_files(profile)
    return float(str(times["computes_longer_%"].max()))


MEASURES: Final[Mapping[str, tuple[str, Callable[[Profile], float]]]] = {
    "step-ms": ("ms", step_ms),
    "aicpu-share": ("%", partial(_share, chosen=_is_on_ai_cpu, column="core")),
    "cast-share": ("%", partial(_share, chosen=is_cast, column="type")),
    "format-share": ("%", partial(_share, chosen=is_format_change, column="type")),
    "free-share": ("%", free_share),
    "uncovered-share": ("%", partial(_share_of_step, column="communication_not_overlapped_ns")),
    "rank-spread": ("%", rank_spread),
}
"""Unit and function of each measure, by the option's name without `--max-`."""


def gate(profile: Profile, limits: Mapping[str, float]) -> list[Measured]:
    """Measure everything for which a limit is given."""
    measured: list[Measured] = []
    for name, limit in limits.items():
        if not 0 <= limit < float("inf"):
            raise UserError(
                f"{limit} is not a valid limit", where=f"--max-{name}", todo="Give 0 or more."
            )
        unit, measure = MEASURES[name]
        try:
            value, needs = measure(profile), ""
        except Impossible as missing:
            value, needs = None, str(missing)
        measured.append(Measured(name=name, unit=unit, limit=limit, value=value, needs=needs))
    return measured
