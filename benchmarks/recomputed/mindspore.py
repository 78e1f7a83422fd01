"""Ops, steps and collectives of MindSpore's folders of 2020 to 2022, and of graph mode's traces."""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from recomputed.figures import COMMUNICATION, Op, Raw, nanoseconds

_TICK = 10
_STEPS = "step_trace_raw_*_detail_time.csv"
_COLLECTIVES = "hccl_raw_*.csv"
_TIMELINES = ("ascend_timeline_display_*.json", "timeline_display_*.json")
_SLICES = ("msprof_*.json", "task_time_*.json", "step_trace_*.json")
_CORES = ("AI_CORE", "AI_CPU", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV")
_ITERATION = re.compile(r"Iteration (\d+)")
_AI_CPU = 9000


def is_capture(path: Path) -> bool:
    """Whether a folder has MindSpore's files, or the slices of a graph."""
    patterns = (_STEPS, _COLLECTIVES, *_TIMELINES, *(f"timeline/{name}" for name in _SLICES))
    return path.is_dir() and any(True for pattern in patterns for _ in path.rglob(pattern))


def read(path: Path) -> Raw:
    """The ops of a timeline or of slices, and the figures of steps and collectives."""
    timelines = sorted({file for pattern in _TIMELINES for file in path.rglob(pattern)})
    recorded: dict[str, Any] = defaultdict(int)
    for file in sorted(path.rglob(_STEPS)):
        for name, value in _steps(file):
            recorded[name] += value
    for file in sorted(path.rglob(_COLLECTIVES)):
        for name, value in _collectives(file):
            recorded[name] += value
    talks: dict[int, list[tuple[int, int]]] = {}
    if timelines:
        ops = _of_timelines(path, timelines)
        marks = {
            (rank, step): span
            for rank in {op.rank for op in ops}
            for step, span in _marks(path, rank).items()
        }
        talks = {rank: _reductions(path, rank) for rank in {op.rank for op in ops}}
    else:
        slices = [file for name in _SLICES for file in sorted(path.rglob(f"timeline/{name}"))]
        ops, marks = _of_slices(slices)
    unknown = ["ops with a launch", "from launch to start"]
    return Raw(ops=ops, marks=marks, talks=talks, recorded=recorded, unknown=unknown)


def _rows(path: Path) -> list[Mapping[str, str]]:
    csv.field_size_limit(1 << 30)
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _device(path: Path) -> int:
    found = re.findall(r"_(\d+)(?=[_.])", path.name)
    return int(found[0])


def _steps(path: Path) -> Iterator[tuple[str, int]]:
    """Begin, end and wait for data of each step, whose last row is an average."""
    for row in _rows(path):
        if not row["step_num"].isdigit() or row["step_num"] == "0":
            continue
        name = f"rank {_device(path)} step {row['step_num']} file"
        yield f"{name}: start", int(row["start_point"]) * _TICK
        yield f"{name}: end", int(row["end_point"]) * _TICK
        yield f"{name}: data", int(row["iteration_interval"]) * _TICK


def _collectives(path: Path) -> Iterator[tuple[str, int]]:
    for row in _rows(path):
        if not row["step_num"].isdigit():
            continue
        for costs in json.loads(row["communication_operator_cost"], parse_float=Decimal).values():
            yield "transit_ns", nanoseconds(costs[1], "ms") or 0
            yield "wait_ns", nanoseconds(costs[2], "ms") or 0


def _zero(folder: Path, events: Sequence[Mapping[str, Any]]) -> int:
    """What the timeline's clock lacks to that of the steps."""
    of_cpu = [event["ts"] for event in events if event.get("pid") == _AI_CPU]
    for file in folder.rglob("aicpu_intermediate_*.csv"):
        starts = [nanoseconds(row["run_start"], "us") for row in _rows(file)]
        known = [start for start in starts if start is not None]
        if of_cpu and known:
            return min(known) - (nanoseconds(min(of_cpu), "us") or 0)
    for file in folder.rglob("min_cycle_counter_*.txt"):
        return int(file.read_text(encoding="ascii").partition(".")[0]) * _TICK
    return 0


def _of_timelines(path: Path, files: Sequence[Path]) -> list[Op]:
    ops: list[Op] = []
    for file in files:
        events = [
            event
            for event in json.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
            if event.get("ph") == "X"
            and (event.get("pid") == _AI_CPU or "fullname" in (event.get("args") or {}))
        ]
        zero = _zero(path, events)
        marks = _marks(path, _device(file))
        for event in events:
            of_cpu = event["pid"] == _AI_CPU
            start = (nanoseconds(event["ts"], "us") or 0) + zero
            ops.append(
                Op(
                    rank=_device(file),
                    step=next((s for s, (a, b) in marks.items() if a <= start < b), None),
                    name=event["name"] if of_cpu else event["args"]["fullname"],
                    kind=event["name"] if of_cpu else event["args"]["type"],
                    work="compute",
                    start=start,
                    duration=nanoseconds(event["dur"], "us") or 0,
                    stream=str(event.get("tid")),
                )
            )
    return ops


def _marks(path: Path, device: int) -> dict[int, tuple[int, int]]:
    marks: dict[int, tuple[int, int]] = {}
    for file in path.rglob(f"step_trace_raw_{device}_detail_time.csv"):
        for row in _rows(file):
            if row["step_num"].isdigit() and row["step_num"] != "0":
                begin, end = int(row["start_point"]), int(row["end_point"])
                marks[int(row["step_num"])] = (begin * _TICK, end * _TICK)
    return marks


def _reductions(path: Path, device: int) -> list[tuple[int, int]]:
    """When collectives ran, which the file of steps has in columns named by stream and op."""
    found: list[tuple[int, int]] = []
    for file in path.rglob(f"step_trace_raw_{device}_detail_time.csv"):
        for row in _rows(file):
            if not row["step_num"].isdigit() or row["step_num"] == "0":
                continue
            for name in row:
                if name.startswith("stream_") and name.endswith("_start_point"):
                    begin = int(row[name] or 0)
                    end = int(row[name.removesuffix("_start_point") + "_end_point"] or 0)
                    found += [(begin * _TICK, end * _TICK)] if 0 < begin < end else []
    return found


def _of_slices(files: Sequence[Path]) -> tuple[list[Op], dict[tuple[int, int], tuple[int, int]]]:
    """The ops of a graph, of which each iteration has a file that may repeat those of others."""
    found: dict[tuple[Any, ...], Op] = {}
    marks: dict[tuple[int, int], tuple[int, int]] = {}
    for file in files:
        events = json.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
        hardware = _named(events, "process_name", "Ascend Hardware")
        kernels = _named(events, "thread_name", "Communication Kernel")
        rank = _device(file)
        for event in events:
            if event.get("ph") != "X":
                continue
            start = nanoseconds(event["ts"], "us") or 0
            lasted = nanoseconds(event["dur"], "us") or 0
            named = _ITERATION.fullmatch(event["name"])
            facts = event.get("args") or {}
            if named:
                marks.setdefault((rank, int(named[1])), (start, start + lasted))
            talks = (event["pid"], event["tid"]) in kernels
            computes = event["pid"] in hardware and "cat" not in event
            if talks or (computes and facts.get("Task Type") in _CORES):
                op = Op(
                    rank=rank,
                    step=None,
                    name=event["name"],
                    kind=None,
                    work=COMMUNICATION if talks else "compute",
                    start=start,
                    duration=lasted,
                    stream=str(facts.get("Stream Id", event["tid"])),
                )
                found[rank, op.stream, op.name, op.start, op.duration] = op
    ops = [Op(**{**vars(op), "step": _step_at(op, marks)}) for op in found.values()]
    return ops, marks


def _named(events: Sequence[Mapping[str, Any]], what: str, name: str) -> set[Any]:
    """Processes, or threads with their process, that have a name."""
    named = [event for event in events if event["name"] == what and event["args"]["name"] == name]
    return {
        event["pid"] if what == "process_name" else (event["pid"], event["tid"]) for event in named
    }


def _step_at(op: Op, marks: Mapping[tuple[int, int], tuple[int, int]]) -> int | None:
    for (rank, step), (begin, end) in marks.items():
        if rank == op.rank and begin <= op.start < end:
            return step
    return None
