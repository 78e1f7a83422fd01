"""Ops, steps and collectives of torch_npu's and msprof's folders and databases."""

import csv
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

from recomputed.figures import COMMUNICATION, Op, Raw, nanoseconds

_TABLES = ("kernel_details*.csv", "op_summary*.csv")
_TIMES = {
    "Computing": "computing",
    "Communication(Not Overlapped)": "communication, uncovered",
    "Overlapped": "communication, covered",
    "Communication": "communication",
    "Free": "free",
    "Preparing": "preparing",
}
_COLLECTIVE = {
    "Elapse Time(ms)": "elapse_ns",
    "Transit Time(ms)": "transit_ns",
    "Wait Time(ms)": "wait_ns",
    "Synchronization Time(ms)": "synchronization_ns",
    "Idle Time(ms)": "idle_ns",
}
_CORES = ("AI_CORE", "AI_CPU", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV")
_STEP = re.compile(r"ProfilerStep#(\d+)")
_LAUNCHES = ("ops with a launch", "from launch to start")

Row = Mapping[str, str]


def is_capture(path: Path) -> bool:
    """Whether a path is a table, a database or a folder of them."""
    if path.is_file():
        return path.suffix in (".csv", ".db")
    return any(True for ending in ("*.csv", "*.db", "trace_view.json") for _ in path.rglob(ending))


def read(path: Path) -> Raw:
    """The ops of all ranks, and what the tables of steps and collectives hold."""
    raws = [_of_rank(folder, rank) for rank, folder in _ranks(path)]
    recorded: dict[str, Any] = {}
    for name, value in chain.from_iterable(raw.recorded.items() for raw in raws):
        recorded[name] = value if ":" in name else recorded.get(name, 0) + value
    return Raw(
        ops=[op for raw in raws for op in raw.ops],
        marks={key: span for raw in raws for key, span in raw.marks.items()},
        recorded=recorded,
        unknown=[name for raw in raws for name in raw.unknown],
    )


def _ranks(path: Path) -> list[tuple[int | None, Path]]:
    """Each rank's folder, by the number in the name of its settings."""
    found = list(path.rglob("profiler_info_*.json")) if path.is_dir() else []
    ranks: list[tuple[int | None, Path]] = [
        (int(file.stem.rpartition("_")[2]), file.parent) for file in found
    ]
    return sorted(ranks, key=lambda pair: pair[0] or 0) if ranks else [(None, path)]


def _files(path: Path, *patterns: str) -> list[Path]:
    if path.is_file():
        return [path] if any(path.match(pattern) for pattern in patterns) else []
    return sorted(file for pattern in patterns for file in path.rglob(pattern))


def _of_rank(path: Path, named: int | None) -> Raw:
    rank = named or 0
    ops: Sequence[Op] = ()
    marks: dict[int, tuple[int, int]] = {}
    unknown = [*_LAUNCHES]
    rows = [row for file in _files(path, *_TABLES) for row in _csv(file)]
    if rows:
        ops = list(filter(None, (_op(row, rank) for row in rows)))
        marks = _marks(_files(path, "trace_view.json"))
        unknown += [] if any(op.stream for op in ops) else ["streams"]
    else:
        for file in _files(path, "*.db"):
            ops, marks = _of_database(file, named)
            unknown += ["streams"]
            if ops:
                rank = ops[0].rank
                break
        if not ops:
            for file in _files(path, "trace_view.json"):
                ops, marks = _of_trace(file, rank)
    recorded: dict[str, Any] = {}
    for file in _files(path, "step_trace_time.csv"):
        recorded |= dict(_step_times(_csv(file), rank))
    if any(name.endswith(": preparing") for name in recorded):
        # jumar shows it as the file has it.
        unknown.append("before the first op")
    for file in _files(path, "communication.json"):
        for name, value in _collectives(file):
            recorded[name] = recorded.get(name, 0) + value
    at_rank = {(rank, step): span for step, span in marks.items()}
    return Raw(ops=ops, marks=at_rank, recorded=recorded, unknown=unknown)


def _csv(path: Path) -> list[Row]:
    csv.field_size_limit(1 << 30)
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        # A line with too few fields, or too many, has its values in the wrong columns.
        return [row for row in csv.DictReader(file) if None not in row and None not in row.values()]


def _of(row: Row, *names: str) -> str | None:
    """The first of some columns that the row has a value in."""
    for name in names:
        text = (row.get(name) or "").strip(" \t\r\n\"'")
        if text and text != "N/A":
            return text
    return None


def _op(row: Row, rank: int) -> Op | None:
    start = nanoseconds(_of(row, "Start Time(us)", "Task Start Time(us)"), "us")
    duration = nanoseconds(_of(row, "Duration(us)", "Task Duration(us)"), "us")
    if start is None or duration is None:
        return None
    name, step = _of(row, "Name", "Op Name") or "", _of(row, "Step Id")
    core = _of(row, "Accelerator Core", "Task Type")
    talks = core in ("COMMUNICATION", "HCCL")
    return Op(
        rank=rank,
        step=None if step is None else int(step),
        name=name,
        kind=_of(row, "Type", "OP Type"),
        work=COMMUNICATION if talks or (not core and name.startswith("hcom_")) else "compute",
        start=start,
        duration=duration,
        stream=_of(row, "Stream ID") or "",
    )


def _of_trace(file: Path, rank: int) -> tuple[list[Op], dict[int, tuple[int, int]]]:
    """Ops and steps of a trace that stands alone."""
    content = json.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
    events = content if isinstance(content, list) else content["traceEvents"]
    named = [event for event in events if event.get("name") in ("process_name", "thread_name")]
    names = {
        (event["pid"], event["tid"] if event["name"] == "thread_name" else None): event["args"][
            "name"
        ]
        for event in named
    }
    marks = _marks([file])
    ops: list[Op] = []
    for event in events:
        process = names.get((event.get("pid"), None))
        thread = names.get((event.get("pid"), event.get("tid")), "")
        facts = event.get("args") or {}
        # A task of the queue itself, such as EVENT_WAIT, has a name in capitals only.
        task, name = facts.get("Task Type"), str(event.get("name"))
        computes = process == "Ascend Hardware" and (
            task in _CORES or (task in ("N/A", "Other") and name != name.upper())
        )
        talks = thread.startswith("Group ") and thread.endswith("Communication")
        if event.get("ph") != "X" or not (computes or talks):
            continue
        start, lasted = nanoseconds(event["ts"], "us") or 0, nanoseconds(event["dur"], "us") or 0
        ops.append(
            Op(
                rank=rank,
                step=next((s for s, (a, b) in marks.items() if a <= start < b), None),
                name=name,
                kind=None,
                work=COMMUNICATION if talks else "compute",
                start=start,
                duration=lasted,
                stream=str(facts.get("Physic Stream Id", facts.get("Stream Id", event["tid"]))),
            )
        )
    return ops, marks


def _marks(files: Sequence[Path]) -> dict[int, tuple[int, int]]:
    """Begin and end of each step by the trace beside the tables."""
    marks: dict[int, tuple[int, int]] = {}
    for file in files:
        content = json.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
        for event in content if isinstance(content, list) else content["traceEvents"]:
            found = _STEP.fullmatch(str(event.get("name")))
            start = nanoseconds(event.get("ts"), "us")
            lasted = nanoseconds(event.get("dur"), "us")
            if found and event.get("ph") == "X" and start is not None and lasted is not None:
                marks.setdefault(int(found[1]), (start, start + lasted))
    return marks


def _step_times(rows: Sequence[Row], rank: int) -> Iterator[tuple[str, Any]]:
    for row in rows:
        for column, part in _TIMES.items():
            value = nanoseconds(_of(row, column), "us")
            if value is not None:
                yield f"rank {rank} step {row['Step']} file: {part}", value


def _collectives(file: Path) -> Iterator[tuple[str, Any]]:
    """The number of collectives and the sums of their times; their totals are left out."""
    content = json.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
    for groups in content.values():
        for collectives in groups.values():
            for name, facts in collectives.items():
                if name == "Total Op Info":
                    continue
                yield "collectives", 1
                info = facts["Communication Time Info"]
                spent = {
                    target: nanoseconds(info.get(column), "ms") or 0
                    for column, target in _COLLECTIVE.items()
                }
                sent = [
                    nanoseconds(transport.get("Transit Time(ms)"), "ms") or 0
                    for transport in facts.get("Communication Bandwidth Info", {}).values()
                ]
                if spent["transit_ns"] == 0 and max(sent, default=0):
                    # It says that nothing was transferred, beside a table of what was.
                    spent["transit_ns"] = min(max(sent), spent["elapse_ns"])
                    rest = spent["elapse_ns"] - spent["transit_ns"]
                    spent["wait_ns"] = min(spent["wait_ns"], rest)
                    spent["idle_ns"] = min(spent["idle_ns"], rest - spent["wait_ns"])
                yield from spent.items()


def _of_database(file: Path, rank: int | None) -> tuple[list[Op], dict[int, tuple[int, int]]]:
    """Ops and steps of a database that a profiler exported."""
    database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if not {"TASK", "COMPUTE_TASK_INFO", "STRING_IDS"} <= tables:
            return [], {}
        marks: dict[int, tuple[int, int]] = {}
        if "STEP_TIME" in tables:
            for step, start, end in database.execute("SELECT id, startNs, endNs FROM STEP_TIME"):
                marks[step] = (start, end)
        rows = database.execute(
            "SELECT n.value, k.value, t.startNs, t.endNs, t.deviceId FROM COMPUTE_TASK_INFO c "
            "JOIN TASK t ON t.globalTaskId = c.globalTaskId "
            "LEFT JOIN STRING_IDS n ON n.id = c.name LEFT JOIN STRING_IDS k ON k.id = c.opType"
        ).fetchall()
        devices = {row[4] for row in rows}
        own = devices.pop() if rank is None and len(devices) == 1 else rank or 0
        found = [(*row[:4], "compute") for row in rows]
        if "COMMUNICATION_OP" in tables:
            rows = database.execute(
                "SELECT n.value, NULL, c.startNs, c.endNs FROM COMMUNICATION_OP c "
                "LEFT JOIN STRING_IDS n ON n.id = c.opName"
            ).fetchall()
            found += [(*row, COMMUNICATION) for row in rows]
    finally:
        database.close()
    ops = [
        Op(
            rank=own,
            step=next((s for s, (a, b) in marks.items() if a <= start < b), None),
            name=name or "",
            kind=None if kind in (None, "N/A") else kind,
            work=work,
            start=start,
            duration=end - start,
        )
        for name, kind, start, end, work in found
    ]
    return ops, marks
