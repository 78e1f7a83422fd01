"""Ops and steps of torch.profiler's traces: CUDA, ROCm, and the names of 2021's releases."""

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from recomputed.figures import COMMUNICATION, Op, Raw, nanoseconds

_STEP = re.compile(r"ProfilerStep#(\d+)")
_WORKS = {
    "kernel": "compute",
    "mtia_ccp_events": "compute",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
}
_OPS = ("cpu_op", "operator")
_COLLECTIVE = re.compile("all_?reduce|all_?gather|reduce_?scatter|all_?to_?all")
_GLOO = re.compile("(gloo|mpi|ccl):")

Event = Mapping[str, Any]


def is_trace(path: Path) -> bool:
    """Whether a file may be a trace."""
    return path.name.endswith((".json", ".json.gz"))


def read(path: Path) -> Raw:
    """The ops and marks of a trace, or of each rank's trace in a folder."""
    files = [path] if path.is_file() else sorted(filter(is_trace, path.rglob("*")))
    ops: list[Op] = []
    marks: dict[tuple[int, int], tuple[int, int]] = {}
    on_cpu = True
    for place, file in enumerate(files):
        opening = gzip.open if file.suffix == ".gz" else open
        with opening(file, "rt", encoding="utf-8", errors="replace") as stream:
            content = json.load(stream, parse_float=Decimal)
        beside = content if isinstance(content, dict) else {}
        events = content["traceEvents"] if beside else content
        some, steps, of_cpu = _read(events, int(beside.get("baseTimeNanoseconds") or 0))
        on_cpu &= of_cpu
        known = (beside.get("distributedInfo") or {}).get("rank")
        ranked = list(_ranked(some, known if isinstance(known, int) else None, place))
        ops += ranked
        for rank in {op.rank for op in ranked}:
            marks |= {(rank, step): span for step, span in steps.items()}
    return Raw(ops=ops, marks=marks, marked=on_cpu)


def _ranked(ops: Sequence[tuple[int | None, Op]], named: int | None, place: int) -> Iterable[Op]:
    """The ops with their rank: their device where a trace has several, else the trace's own.

    Args:
        ops: The ops with their device.
        named: The rank that the trace names.
        place: Where the trace stands among the files of the capture.
    """
    devices = {device for device, _ in ops if device is not None}
    alone = place if len(devices) != 1 else next(iter(devices))
    for device, op in ops:
        of = device if len(devices) > 1 and device is not None else named
        yield replace(op, rank=alone if of is None else of)


def _read(
    events: Iterable[Any], base: int
) -> tuple[list[tuple[int | None, Op]], dict[int, tuple[int, int]], bool]:
    """Ops with their device, marks of steps, and whether the ops are those of a CPU."""
    slices: dict[str, list[Event]] = defaultdict(list)
    arrows: dict[Any, dict[str, Event]] = defaultdict(dict)
    for event in events:
        if isinstance(event, dict) and event.get("cat") == "fwdbwd":
            arrows[event.get("id")].setdefault(str(event.get("ph")), event)
        if isinstance(event, dict) and event.get("ph") == "X" and _is_timed(event):
            slices[str(event.get("cat")).lower()].append(event)
    marks: dict[int, tuple[int, int]] = {}
    for category, some in slices.items():
        for event in some if not category.startswith("gpu_") else ():
            found = _STEP.fullmatch(str(event.get("name")))
            if found:
                start, duration = _times(event)
                marks.setdefault(int(found[1]), (base + start, base + start + duration))
    calls = [
        event
        for category in _OPS
        for event in slices.get(category, ())
        if not _STEP.fullmatch(str(event.get("name")))
    ]
    layers = _Layers(slices.get("python_function", ()), calls, arrows.values())
    kernels = [(work, event) for cat, work in _WORKS.items() for event in slices.get(cat, ())]
    if not kernels:
        annotated = slices.get("user_annotation", [])
        return [(None, op) for op in _of_cpu(calls, annotated, marks, base, layers)], marks, True
    runtime = [
        event
        for category, some in slices.items()
        if category.endswith(("runtime", "_driver"))
        for event in some
    ]
    return _of_device(kernels, runtime, calls, marks, base, layers), marks, False


def _is_timed(event: Event) -> bool:
    start, duration = nanoseconds(event.get("ts"), "us"), nanoseconds(event.get("dur"), "us")
    return start is not None and duration is not None and duration >= 0


def _times(event: Event) -> tuple[int, int]:
    """Start and duration of a timed event."""
    return nanoseconds(event.get("ts"), "us") or 0, nanoseconds(event.get("dur"), "us") or 0


def _argument(event: Event, *names: str) -> Any:
    arguments = event.get("args")
    found = [arguments[name] for name in names if name in arguments] if arguments else []
    return found[0] if found else None


def _of_device(
    kernels: Sequence[tuple[str, Event]],
    runtime: Sequence[Event],
    calls: Sequence[Event],
    marks: Mapping[int, tuple[int, int]],
    base: int,
    layers: "_Layers",
) -> list[tuple[int | None, Op]]:
    launches: dict[Any, Event] = {}
    for call in runtime:
        correlation = _argument(call, "correlation")
        if correlation is not None:
            launches.setdefault(correlation, call)
    wanted = [
        launches[key]
        for key in {_argument(event, "correlation") for _, event in kernels} & launches.keys()
    ]
    around = dict(zip(map(id, wanted), _innermost(calls, wanted), strict=True))
    layer = dict(zip(map(id, wanted), layers.around(wanted), strict=True))
    ids = Counter(_argument(call, "External id", "external id") for call in calls)
    by_id = {_argument(call, "External id", "external id"): call for call in calls}
    result: list[tuple[int | None, Op]] = []
    for work, event in kernels:
        start, duration = _times(event)
        launch = launches.get(_argument(event, "correlation"))
        parent = around.get(id(launch)) if launch is not None else None
        external = _argument(event, "External id", "external id")
        if parent is None and external is not None and ids[external] == 1:
            parent = by_id[external]
        moment = None if launch is None else base + _times(launch)[0]
        stream = _argument(event, "stream")
        device = _argument(event, "device")
        op = Op(
            rank=0,
            step=_step_at(base + start if moment is None else moment, marks),
            name=str(event.get("name")),
            kind=None if parent is None else str(parent.get("name")).removeprefix("aten::"),
            work=COMMUNICATION if work == "compute" and _talks(event, parent) else work,
            start=base + start,
            duration=duration,
            stream=str(event.get("tid") if stream is None else stream),
            size=int(_argument(event, "bytes") or 0),
            launch=moment,
            layer=layer.get(id(launch)),
        )
        result.append((device if isinstance(device, int) else None, op))
    return list(_without_earlier(result))


def _talks(kernel: Event, parent: Event | None) -> bool:
    """Whether a kernel is a collective, of a library of them or launched by an op named so."""
    if str(kernel.get("name")).startswith(("nccl", "rccl")):
        return True
    return parent is not None and _COLLECTIVE.search(str(parent.get("name"))) is not None


def _without_earlier(
    ops: Sequence[tuple[int | None, Op]],
) -> Iterable[tuple[int | None, Op]]:
    """The ops, of which those that were queued before the recording began have no step.

    Such an op has no launch, and runs before the first op of its stream that has one; of a stream
    without launches, before the first launch for its device.
    """
    first: dict[Any, int] = {}
    for device, op in ops:
        if op.launch is not None:
            stream = (device, op.stream)
            first[stream] = min(op.start, first.get(stream, op.start))
            first[device] = min(op.launch, first.get(device, op.launch))
    for device, op in ops:
        begun = first.get((device, op.stream), first.get(device))
        earlier = op.launch is None and begun is not None and op.start < begun
        yield device, replace(op, step=None) if earlier else op


def _of_cpu(
    calls: Sequence[Event],
    annotated: Sequence[Event],
    marks: Mapping[int, tuple[int, int]],
    base: int,
    layers: "_Layers",
) -> Iterable[Op]:
    """Ops of a CPU with their own time, and collectives, which are annotations."""
    within: Counter[int] = Counter()
    for call, parent in zip(calls, _innermost(calls, calls), strict=True):
        if parent is not None:
            within[id(parent)] += _times(call)[1]
    collectives = [event for event in annotated if _GLOO.match(str(event.get("name")))]
    every = [*calls, *collectives]
    for place, (event, layer) in enumerate(zip(every, layers.around(every), strict=True)):
        start, duration = _times(event)
        talks = place >= len(calls)
        name = str(event.get("name")).removeprefix("aten::")
        yield Op(
            rank=0,
            step=_step_at(base + start, marks),
            name=name,
            kind=name,
            work=COMMUNICATION if talks else "compute",
            start=base + start,
            duration=max(duration - within[id(event)], 0),
            stream=str(event.get("tid")),
            layer=layer,
        )


class _Layers:
    """Which torch.nn module runs: forward its call, backward the one that an arrow comes from."""

    def __init__(
        self,
        python: Iterable[Event],
        calls: Iterable[Event],
        arrows: Iterable[Mapping[str, Event]],
    ) -> None:
        modules = [event for event in python if str(event.get("name")).startswith("nn.Module: ")]
        self._names = {
            id(event): str(event["name"]).removeprefix("nn.Module: ") for event in modules
        }
        nodes = [call for call in calls if "evaluate_function: " in str(call.get("name"))]
        whole = [arrow for arrow in arrows if {"s", "f"} <= arrow.keys()] if modules else []
        self._calls = modules
        ends = _innermost(nodes, [arrow["f"] for arrow in whole])
        # What backward recomputes has a backward pass of its own.
        for _ in range(2):
            starts = self.around([arrow["s"] for arrow in whole])
            known = [
                (node, name)
                for node, name in zip(ends, starts, strict=True)
                if node is not None and name is not None
            ]
            self._names |= {id(node): name for node, name in known}
            self._calls = [*modules, *(node for node, _ in known)]

    def around(self, events: Sequence[Event]) -> list[str | None]:
        """The layer in which each event begins."""
        calls = _innermost(self._calls, events)
        return [None if call is None else self._names[id(call)] for call in calls]


def _innermost(calls: Sequence[Event], inner: Sequence[Event]) -> list[Event | None]:
    """The call of the same thread that began last of those running when each inner one begins."""
    order = {id(call): place for place, call in enumerate(calls)}
    by_thread: dict[Any, list[tuple[int, int, int, int]]] = defaultdict(list)
    for place, call in enumerate(calls):
        start, duration = _times(call)
        by_thread[call.get("tid")].append((start, -duration, 0, place))
    found: list[Event | None] = [None] * len(inner)
    for place, event in enumerate(inner):
        if id(event) not in order:
            by_thread[event.get("tid")].append((_times(event)[0], 1, 1, place))
    asked = {order[id(event)]: place for place, event in enumerate(inner) if id(event) in order}
    for rows in by_thread.values():
        running: list[tuple[int, int]] = []
        for start, minus, only_asks, place in sorted(rows):
            while running and running[-1][0] <= start:
                running.pop()
            parent = calls[running[-1][1]] if running else None
            if only_asks:
                found[place] = parent
                continue
            if place in asked:
                found[asked[place]] = parent
            running.append((start - minus, place))
    return found


def _step_at(moment: int, marks: Mapping[int, tuple[int, int]]) -> int | None:
    inside = [(span[0], step) for step, span in marks.items() if span[0] <= moment < span[1]]
    return max(inside)[1] if inside else None
