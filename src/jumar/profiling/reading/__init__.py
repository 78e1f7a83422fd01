"""Reads the files of any producer and release, recognised by content, into one `Profile`."""

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
from jumar.profiling.reading.file_content import FileContent, Source
from jumar.profiling.reading.files.archives import unpacked
from jumar.profiling.reading.files.finding import sources_of
from jumar.profiling.reading.files.raw import export_command, raw_folders, unexported_hint
from jumar.profiling.reading.files.unrecognised import why_unrecognised
from jumar.profiling.reading.gathering import combined
from jumar.profiling.reading.hccl_trace import read_hccl_trace
from jumar.profiling.reading.mindspore import hccl, tables, timeline
from jumar.profiling.reading.negative import without_negative
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
from jumar.profiling.reading.workers import newest_of_each_worker

__all__ = ["read"]


def read(path: str | Path | Sequence[str | Path]) -> Profile:
    """Read a profile of any producer.

    Args:
        path: A folder or a file, or several: torch_npu's folders, msprof's `PROF_*`, CSV and
            JSON files, databases, traces of torch.profiler (also `.gz`), zips of them.

    Raises:
        UserError: No file is a readable profile. If only some files are missing or broken, they
            are listed in `Profile.missing` instead.
    """
    paths = [path] if isinstance(path, (str, Path)) else list(path)
    captures: dict[str, list[FileContent]] = {}
    unreadable_parts: list[Missing] = []
    for root in paths:
        with unpacked(Path(root), str(root)) as location:
            for source in sources_of(location, str(root)):
                if source.problem:
                    # Not a capture, so that it takes no rank.
                    unreadable_parts.append(Missing(file=source.display_name, what=source.problem))
                else:
                    captures.setdefault(source.capture, []).append(_read_source(source))
    captures = newest_of_each_worker(captures)
    profile = combined(", ".join(str(root) for root in paths), captures)
    profile = replace(profile, missing=(*unreadable_parts, *profile.missing))
    if _is_empty(profile):
        raise _nothing_to_read(profile, paths)
    return replace(profile, missing=(*profile.missing, *_unexported_folders(paths)))


def _unexported_folders(paths: Sequence[str | Path]) -> list[Missing]:
    """Folders of raw data that was never exported, next to exported tables."""
    return [
        Missing(
            file=str(folder), what=f"not read: raw data, never exported; {export_command(folder)}"
        )
        for path in paths
        if Path(path).is_dir()
        for folder in raw_folders(Path(path))
    ]


_TABLES_WITHOUT_TIMES: Final = ("environment", "device", "framework")
"""Environment variables, the number of cores, and the shapes of ops."""


def _is_empty(profile: Profile) -> bool:
    """Whether the profile does not show where the time goes.

    Host calls and step marks alone do not show it, however many there are; nor do tables without
    times next to empty or broken ones.
    """
    ignored = _TABLES_WITHOUT_TIMES if profile.missing else ()
    informative = [table for name, table in profile.statistics.items() if name not in ignored]
    if any(
        table.height for table in (profile.ops, profile.collectives, profile.links, *informative)
    ):
        return False
    marks_only = all(kind in ("kineto", "trace", "") for _, kind in profile.files)
    return marks_only or profile.steps.is_empty()


def _nothing_to_read(profile: Profile, paths: Sequence[str | Path]) -> UserError:
    export_hint = next(filter(None, (unexported_hint(Path(path)) for path in paths)), "")
    if export_hint:
        return UserError("contains no exported tables", where=profile.source, todo=export_hint)
    reasons = [
        gap.what if gap.file == profile.source else f"{gap.file}: {gap.what}"
        for gap in profile.missing[:5]
    ]
    recognised = any(kind for _, kind in profile.files)
    return UserError(
        "; ".join(reasons)
        or ("contains neither ops nor op statistics" if recognised else "contains no profile"),
        where=profile.source,
        todo="jumar reads op_summary, kernel_details and related tables (CSV), "
        "trace_view.json, traces of torch.profiler (.json, .json.gz), databases of msprof and "
        "torch_npu (.db), and folders or zips of these.",
    )


def _trace(path: Path, display_name: str, kind: str) -> FileContent:
    del kind
    with read_trace(path, display_name) as trace:
        if not trace.slice_count and trace.problem:
            raise BrokenJson(trace.problem)
        return (ascend_trace if ascend_trace.is_ascend(trace) else kineto).content_of(
            trace, display_name
        )


_READERS: Final[dict[str, Callable[[Path, str, str], FileContent]]] = {
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
    # Text versions of CSV files in the same folder.
    "mindspore_aicpu_text": read_nothing,
    "mindspore_op_text": read_nothing,
}


def _read_source(source: Source) -> FileContent:
    """The content of one file; if it cannot be read, only the reason."""
    reader = _READERS.get(source.kind, read_statistic)
    try:
        if not source.kind:
            return _unreadable_content(source, why_unrecognised(source.path))
        return _note_if_empty(
            without_negative(reader(source.path, source.display_name, source.kind))
        )
    except (BrokenJson, OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        return _unreadable_content(
            source, str(error).splitlines()[0] if str(error) else type(error).__name__
        )


def _note_if_empty(content: FileContent) -> FileContent:
    """The content, noting under `missing` if no table has any rows."""
    tables = (content.ops, content.steps, content.host, content.collectives, content.links)
    tables_read = [table for table in (*tables, *content.statistics.values()) if table is not None]
    if content.missing or not tables_read or any(table.height for table in tables_read):
        return content
    return replace(content, missing=(Missing(file=content.file, what="has no rows"),))


def _unreadable_content(source: Source, what: str) -> FileContent:
    return FileContent(
        file=source.display_name,
        kind="",
        missing=(Missing(file=source.display_name, what=what[:200]),),
    )
