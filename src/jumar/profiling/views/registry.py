"""All views by the name that `--view` takes."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import polars as pl

from jumar.ground.errors import unknown_name
from jumar.profiling.profile import Profile
from jumar.profiling.views.aicpu import ai_cpu
from jumar.profiling.views.casts import cast_share
from jumar.profiling.views.collectives import collectives
from jumar.profiling.views.core_use import core_use, dynamic_shapes
from jumar.profiling.views.critical_path import critical_path
from jumar.profiling.views.data_stalls import data_stalls
from jumar.profiling.views.frequency import frequency
from jumar.profiling.views.fusion import fused, fusion_candidates
from jumar.profiling.views.host_bound import host_bound, launches
from jumar.profiling.views.memory import memory_holders, memory_peak
from jumar.profiling.views.roofline import roofline
from jumar.profiling.views.slow_ranks import alignment, packets, slow_links, slow_ranks
from jumar.profiling.views.step_split import split_view
from jumar.profiling.views.top import (
    GROUPS,
    ai_cpu_by_compute_time,
    grouped,
    ops_by_duration,
    types_by_total,
)
from jumar.profiling.views.variability import op_variability, step_variability
from jumar.profiling.views.view import Options, View

_Make = Callable[[Profile, Options], pl.DataFrame]


def _by(group: str, profile: Profile, _: Options) -> pl.DataFrame:
    return grouped(profile, group)


def _todo(profile: Profile, options: Options) -> pl.DataFrame:
    # The advice is made of views; importing it with them would go in a circle.
    from jumar.profiling.advice.todo import todo_table

    return todo_table(profile, options)


def _view(name: str, title: str, make: _Make, *, ranking: bool = True) -> View:
    return View(name=name, title=title, make=make, ranking=ranking)


_ALL: Final = (
    _view("todo", "What to do, by milliseconds a step that can be won", _todo, ranking=False),
    _view("steps", "Where each step goes (ms)", split_view, ranking=False),
    _view("types", "Op types by total time (op_statistic)", types_by_total),
    _view("ops", "Ops by duration (op_summary)", ops_by_duration),
    _view("aicpu-time", "AI CPU ops by compute time", ai_cpu_by_compute_time),
    _view("aicpu", "AI CPU ops: reason and replacement", ai_cpu),
    *(
        _view(f"by-{name}", f"Ops by {' and '.join(columns)}", partial(_by, name))
        for name, columns in GROUPS.items()
    ),
    _view("casts", "Casts and format changes", cast_share),
    _view("cores", "Ops that leave cores unused", core_use),
    _view("dynamic", "Ops by state: dynamic or static shapes", dynamic_shapes),
    _view("frequency", "Clock of the cores", frequency, ranking=False),
    _view("ranks", "Ranks by computing time", slow_ranks, ranking=False),
    _view("links", "Links by bandwidth", slow_links),
    _view("packets", "Transfers by size and packets", packets),
    _view("alignment", "Transfers by multiples of 512 bytes", alignment, ranking=False),
    _view("collectives", "Collectives: transfer, wait, idle, and who came late", collectives),
    _view("host", "What explains the device's free time", host_bound),
    _view("launches", "How far the host launches ahead", launches, ranking=False),
    _view("data", "Waiting for data", data_stalls, ranking=False),
    _view("roofline", "Head-room by op against the chip's peak (estimate)", roofline),
    _view("critical", "The critical path of device and host", critical_path),
    _view("variability", "Steps: median, p95, outliers, warm-up", step_variability, ranking=False),
    _view("op-variability", "Ops by time above their median", op_variability),
    _view("fused", "Fused ops and what they replace", fused),
    _view("fusion", "Chains of vector ops that could be fused (estimate)", fusion_candidates),
    _view("memory", "Device memory: peak and gap", memory_peak, ranking=False),
    _view("memory-by-op", "Memory at the peak, by who allocated it", memory_holders),
)

VIEWS: Final[Mapping[str, View]] = {view.name: view for view in _ALL}


def find_view(name: str) -> View:
    """The view of a name; a `UserError` with the nearest one where there is none."""
    if name not in VIEWS:
        raise unknown_name("view", name, VIEWS, where="--view")
    return VIEWS[name]
