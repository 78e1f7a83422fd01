"""The gate: limits that a profile must keep, for continuous integration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from jumar.ground.errors import UserError
from jumar.profiling.profile import Profile
from jumar.profiling.views.casts import is_cast, is_format_change
from jumar.profiling.views.slow_ranks import rank_times
from jumar.profiling.views.step_split import contradictions, step_split
from jumar.profiling.views.view import LEVEL_1, Impossible
from jumar.profiling.views.windows import computing, steady, step_windows


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One limit and what was measured.

    Args:
        name: As the option says it.
        unit: `ms` or `%`.
        limit: What is allowed at most.
        value: The measured value; None if the profile lacks the data.
        needs: What is missing in that case.
    """

    name: str
    unit: str
    limit: float
    value: float | None
    needs: str = ""

    @property
    def kept(self) -> bool:
        """Whether the limit is kept; an unmeasured value does not keep it."""
        return self.value is not None and self.value <= self.limit


_TIMED: Final = ("kernel_details", "op_summary", "task_time", "kineto", "trace", "hccl_trace")
"""Kinds of files whose end may hold ops or marks of steps."""
_WITHOUT_BREAK: Final = "the end: the last line has no line break"
"""What a file has that an editor saved, too."""


def _require_whole_steps(profile: Profile) -> None:
    """Refuse steps without bounds (`reading/clocks.py`) or ops, mixed ranks and cut files."""
    kinds = dict(profile.files)
    for gap in profile.missing:
        cut = gap.what.startswith("the end:") and not gap.what.startswith(_WITHOUT_BREAK)
        if cut and kinds.get(gap.file) in _TIMED:
            raise Impossible(f"all of {gap.file}")
        if "gate" in gap.needed_for:
            mixed = "ranks" in gap.needed_for
            raise Impossible("ops of known ranks" if mixed else "steps on the clock of the ops")
    for line in contradictions(profile):
        raise Impossible(f"figures that agree: {line.en}")


def step_ms(profile: Profile) -> float:
    """The average steady step of the slowest rank, including what precedes its first op."""
    _require_whole_steps(profile)
    windows = steady(step_windows(profile))
    if windows.is_empty():
        raise Impossible("ops with start times, or steps")
    lasted = (pl.col("end_ns") - pl.col("begin_ns")).mean().alias("mean")
    return float(windows.group_by("rank").agg(lasted)["mean"].max()) / 1e6  # pyright: ignore


def _share(
    profile: Profile, chosen: Callable[[pl.DataFrame], pl.Expr], column: str, needs: str
) -> float:
    """Percent of the time of computing ops."""
    ops = computing(profile.ops.select("name", "type", "core", "duration_ns", "input_types"))
    if ops.is_empty() or ops[column].null_count() == ops.height:
        raise Impossible(needs, LEVEL_1)
    part = ops.filter(chosen(ops))["duration_ns"].sum()
    return 100 * float(part) / max(float(ops["duration_ns"].sum()), 1.0)


def _on_ai_cpu(_: pl.DataFrame) -> pl.Expr:
    return pl.col("core").eq_missing("AI_CPU")


def aicpu_share(profile: Profile) -> float:
    """Percent of the ops' time on the AI CPU."""
    return _share(profile, _on_ai_cpu, "core", "the core of each op")


def cast_share(profile: Profile) -> float:
    """Percent of the ops' time in casts."""
    return _share(profile, is_cast, "type", "the type of each op")


def format_share(profile: Profile) -> float:
    """Percent of the ops' time in TransData, Transpose and the like."""
    return _share(profile, is_format_change, "type", "the type of each op")


def _of_step(profile: Profile, column: str) -> float:
    if profile.ops["start_ns"].null_count() == profile.ops.height:
        raise Impossible("ops with start times")
    _require_whole_steps(profile)
    split = step_split(profile)
    lasted = float((split["end_ns"] - split["start_ns"]).sum())
    return 100 * float(split[column].sum()) / max(lasted, 1.0)


def free_share(profile: Profile) -> float:
    """Percent of the steps in which the device is idle."""
    if profile.kind == "cpu":
        raise Impossible("ops of a device beside those of the host")
    return _of_step(profile, "free_ns")


def uncovered_share(profile: Profile) -> float:
    """Percent of the steps in communication that no computing overlaps."""
    return _of_step(profile, "communication_not_overlapped_ns")


def rank_spread(profile: Profile) -> float:
    """How many percent longer than the median rank the slowest one computes."""
    return float(str(rank_times(profile)["computes_longer_%"].max()))


MEASURES: Final[Mapping[str, tuple[str, Callable[[Profile], float]]]] = {
    "step-ms": ("ms", step_ms),
    "aicpu-share": ("%", aicpu_share),
    "cast-share": ("%", cast_share),
    "format-share": ("%", format_share),
    "free-share": ("%", free_share),
    "uncovered-share": ("%", uncovered_share),
    "rank-spread": ("%", rank_spread),
}
"""What can be limited, by the option's name without `--max-`."""


def gate(profile: Profile, limits: Mapping[str, float]) -> list[Measured]:
    """Measure everything that has a limit."""
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
