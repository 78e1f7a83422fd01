"""Profiles of every producer and release, recognised by their headers, into one `Profile`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl

from jumar.ground.errors import UserError
from jumar.profiling.profile import Missing, Profile
from jumar.profiling.reading.communication import (
    read_communication,
    read_matrix,
    read_msprof_info,
    read_nothing,
    read_profiler_info,
)
from jumar.profiling.reading.databases.database import read_database
from jumar.profiling.reading.environment import read_metadata
from jumar.profiling.reading.events import BrokenJson
from jumar.profiling.reading.files.archives import unpacked
from jumar.profiling.reading.files.finding import sources_of
from jumar.profiling.reading.files.raw import how_to_export, raw_folders, unexported
from jumar.profiling.reading.gathering import gathered
from jumar.profiling.reading.hccl_trace import read_hccl_trace
from jumar.profiling.reading.mindspore import hccl, tables, timeline
from jumar.profiling.reading.negative import without_negative
from jumar.profiling.reading.part import Part, Source
from jumar.profiling.reading.tables.chip_table import read_chip_table
from jumar.profiling.reading.tables.csv_tables import (
    read_statistic,
    read_step_times,
    read_step_trace,
)
from jumar.profiling.reading.tables.op_tables import read_ops
from jumar.profiling.reading.tables.task_time import read_task_time
from jumar.profiling.reading.traces import ascend_trace, kineto
from jumar.profiling.reading.traces.trace import read_trace
from jumar.profiling.reading.workers import one_of_each_worker

__all__ = ["read"]


def read(path: str | Path | Sequence[str | Path]) -> Profile:
    """Read a profile of any producer.

    Args:
        path: A folder or a file, or several: torch_npu's folders, msprof's `PROF_*`, CSV and
            JSON files, databases, traces of torch.profiler (also `.gz`), zips of them.

    Raises:
        UserError: Nothing there is a profile that can be read. Files that are partly missing or
            broken are listed in `Profile.missing`.
    """
    paths = [path] if isinstance(path, (str, Path)) else list(path)
    captures: dict[str, list[Part]] = {}
    for root in paths:
        with unpacked(Path(root), str(root)) as place:
            for source in sources_of(place, str(root)):
                captures.setdefault(source.capture, []).append(_part(source))
    captures = one_of_each_worker(captures)
    profile = gathered(", ".join(str(root) for root in paths), captures)
    if _is_empty(profile):
        raise _unreadable(profile, paths)
    return replace(profile, missing=(*profile.missing, *_raw_beside(paths)))


def _raw_beside(paths: Sequence[str | Path]) -> list[Missing]:
    """Folders of raw data that were not exported, next to tables."""
    folders = [
        folder for path in paths if Path(path).is_dir() for folder in raw_folders(Path(path))
    ]
    return [
        Missing(
            file=str(folder), what=f"not read: raw data, never exported; {how_to_export(folder)}"
        )
        for folder in folders
    ]


_SETTINGS: Final = ("environment", "device", "framework")
"""Tables without times: environment variables, the device's cores, the shapes of ops."""


def _is_empty(profile: Profile) -> bool:
    """Whether it has no information about what a step is spent on.

    Calls on the host and marks of steps alone do not, whatever their number; nor do settings beside
    tables that are empty or broken.
    """
    settings = _SETTINGS if profile.missing else ()
    known = [table for name, table in profile.statistics.items() if name not in settings]
    if any(table.height for table in (profile.ops, profile.collectives, profile.links, *known)):
        return False
    marks_only = all(kind in ("kineto", "trace", "") for _, kind in profile.files)
    return marks_only or profile.steps.is_empty()


def _unreadable(profile: Profile, paths: Sequence[str | Path]) -> UserError:
    raw = next(filter(None, (unexported(Path(path)) for path in paths)), "")
    if raw:
        return UserError("no tables are in it", where=profile.source, todo=raw)
    reasons = [f"{gap.file}: {gap.what}" for gap in profile.missing[:5]]
    known = any(kind for _, kind in profile.files)
    return UserError(
        "; ".join(reasons)
        or ("no ops and no tables of them" if known else "no file in it is a profile"),
        where=profile.source,
        todo="jumar reads op_summary, kernel_details and the tables beside them (CSV), "
        "trace_view.json, traces of torch.profiler (.json, .json.gz), databases of msprof and "
        "torch_npu (.db), and folders or zips of these.",
    )


def _trace(path: Path, shown: str, kind: str) -> Part:
    del kind
    with read_trace(path, shown) as trace:
        if not trace.events and trace.problem:
            raise BrokenJson(trace.problem)
        return (ascend_trace if ascend_trace.is_ascend(trace) else kineto).part_of(trace, shown)


_READERS: Final[dict[str, Callable[[Path, str, str], Part]]] = {
    "op_summary": read_ops,
    "kernel_details": read_ops,
    "step_trace_time": read_step_times,
    "cluster_step_trace_time": read_step_times,
    "step_trace": read_step_trace,
    "trace": _trace,
    "communication": read_communication,
    "communication_matrix": read_matrix,
    "profiler_info": read_profiler_info,
    "profiler_metadata": read_metadata,
    "msprof_info": read_msprof_info,
    "sqlite": read_database,
    "mindspore_aicpu": tables.read_aicpu,
    "mindspore_op_type": tables.read_op_types,
    "mindspore_op_detail": tables.read_op_details,
    "mindspore_framework": tables.read_framework,
    "mindspore_step_trace": tables.read_steps,
    "mindspore_timeline": timeline.read_timeline,
    "mindspore_clock": timeline.read_clock,
    "mindspore_hccl": hccl.read_hccl,
    "hccl_trace": read_hccl_trace,
    "task_time": read_task_time,
    "chips": read_chip_table,
    # Texts that repeat what the CSV files beside them hold.
    "mindspore_aicpu_text": read_nothing,
    "mindspore_op_text": read_nothing,
}


def _part(source: Source) -> Part:
    """The tables of one file; its problems are a separate part."""
    reader = _READERS.get(source.kind, read_statistic)
    try:
        if not source.kind:
            return _broken(source, "its header matches no known table")
        return _with_emptiness(without_negative(reader(source.path, source.shown, source.kind)))
    except (BrokenJson, OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        return _broken(source, str(error).splitlines()[0] if str(error) else type(error).__name__)


def _with_emptiness(part: Part) -> Part:
    """The part, with a note if one of its tables has only a header."""
    tables = (part.ops, part.steps, part.host, part.collectives, part.links)
    known = [table for table in (*tables, *part.statistics.values()) if table is not None]
    if part.missing or not known or any(table.height for table in known):
        return part
    return replace(part, missing=(Missing(file=part.file, what="rows: it has none"),))


def _broken(source: Source, what: str) -> Part:
    return Part(file=source.shown, kind="", missing=(Missing(file=source.shown, what=what[:200]),))
