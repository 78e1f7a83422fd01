"""One pass over the events of a trace: what is kept of them, whoever wrote it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

from jumar.profiling.reading.events import EventReader
from jumar.profiling.reading.exact import nanoseconds_of
from jumar.profiling.reading.kineto_types import shapes_and_types
from jumar.profiling.reading.opening import opened
from jumar.profiling.reading.rows import Rows

KEPT_CALLS: Final = 1_000_000
"""Host calls kept of a trace; of more, the shortest are left out, so that memory is bounded."""

_CALLS: Final = {
    "name": True,
    "category": True,
    "thread": True,
    "start_ns": False,
    "duration_ns": False,
    "correlation": False,
    "external": False,
    "shapes": True,
    "types": True,
    "module": True,
}
_KERNELS: Final = {
    "name": True,
    "category": True,
    "pid": True,
    "thread": True,
    "start_ns": False,
    "duration_ns": False,
    "correlation": False,
    "external": False,
    "device": False,
    "stream": True,
    "task": False,
    "core": True,
    "block_num": False,
    "bytes": False,
}
_FLOWS: Final = {"category": True, "id": True, "thread": True, "start_ns": False}
_CLOCKS: Final = {"pid": True, "time_ns": False, "mhz": False}
_WAITS: Final = {"name": True, "data_ns": False}
_CUDA: Final = ("kernel", "gpu_memcpy", "gpu_memset", "concurrent_kernel")
_FLOW_KINDS: Final = ("async_npu", "HostToDevice")


class Trace:
    """What a trace holds, in columns.

    Attributes:
        calls: Events on the host.
        kernels: Events on a device, and all others that name no category.
        flows: Starts of arrows from the host to the device.
        processes: Names by process.
        threads: Names by process and thread.
        beside: Values beside the events.
        problem: Why reading stopped early; empty when it did not.
        shortest_ns: Calls shorter than this were left out; 0 when none were.
    """

    def __init__(self) -> None:
        self._calls = Rows(_CALLS)
        self._kernels = Rows(_KERNELS)
        self._flows = Rows(_FLOWS)
        self._clocks = Rows(_CLOCKS)
        self._waits = Rows(_WAITS)
        self._python = Rows(_CALLS)
        self.processes: dict[str, str] = {}
        self.threads: dict[tuple[str, str], str] = {}
        self.beside: dict[str, Any] = {}
        self.problem = ""
        self.shortest_ns = 0
        self.events = 0

    @property
    def calls(self) -> pl.DataFrame:
        """Events on the host."""
        return pl.concat([self._calls.frame(), self._python.frame()])

    @property
    def kernels(self) -> pl.DataFrame:
        """Events on a device, or of processes that only their names tell."""
        return self._kernels.frame()

    @property
    def flows(self) -> pl.DataFrame:
        """Where arrows to the device start."""
        return self._flows.frame()

    @property
    def clocks(self) -> pl.DataFrame:
        """Frequencies of the cores."""
        return self._clocks.frame()

    @property
    def waits(self) -> pl.DataFrame:
        """How long the data of each iteration of graph mode was waited for."""
        return self._waits.frame()

    def take(self, event: Mapping[str, Any]) -> None:
        """Keep what is used of one event."""
        phase = event.get("ph")
        if phase == "X":
            self._take_slice(event)
        elif phase == "s":
            if event.get("cat") in _FLOW_KINDS:
                start = nanoseconds_of(event.get("ts"))
                self._flows.add((event["cat"], event.get("id"), event.get("tid"), start))
                if self._flows.full:
                    self._flows.pack()
        elif phase == "M":
            self._take_name(event)
        elif phase == "t" and event.get("cat") == "Data_aug Bound":
            waited = nanoseconds_of(_arguments(event).get("Data_aug Bound(us)"))
            self._waits.add((event.get("name"), waited))
        elif phase == "C" and event.get("name") == "AI Core Freq":
            megahertz = _arguments(event).get("MHz")
            time = nanoseconds_of(event.get("ts"))
            self._clocks.add((event.get("pid"), time, nanoseconds_of(megahertz, "ns")))

    def _take_slice(self, event: Mapping[str, Any]) -> None:
        start, duration = nanoseconds_of(event.get("ts")), nanoseconds_of(event.get("dur", 0))
        if start is None or duration is None or duration < 0:
            return
        self.events += 1
        category = event.get("cat")
        arguments = _arguments(event)
        if category in _CUDA or category is None:
            self._take_kernel(event, arguments, start, duration)
            return
        shapes, types = "", ""
        if category in ("cpu_op", "user_annotation"):
            shapes, types = shapes_and_types(
                arguments.get("Input Dims"),
                arguments.get("Input type", arguments.get("Input Type")),
            )
        rows = self._python if category == "python_function" else self._calls
        if duration < self.shortest_ns and rows is self._python:
            return
        rows.add(
            (
                event.get("name", ""),
                category,
                event.get("tid"),
                start,
                duration,
                arguments.get("correlation", arguments.get("correlation_id")),
                arguments.get("External id"),
                shapes,
                types,
                arguments.get("Module Hierarchy") or None,
            )
        )
        if rows.full:
            rows.pack()
            if len(self._python) > KEPT_CALLS:
                self._drop_short()

    def _take_kernel(
        self, event: Mapping[str, Any], arguments: Mapping[str, Any], start: int, duration: int
    ) -> None:
        grid = arguments.get("grid")
        blocks: int | None = None
        if isinstance(grid, list) and all(type(size) is int for size in grid):
            blocks = 1
            for size in grid[:3]:
                blocks *= size
        self._kernels.add(
            (
                event.get("name", ""),
                event.get("cat"),
                event.get("pid"),
                event.get("tid"),
                start,
                duration,
                arguments.get("correlation", arguments.get("connection_id")),
                arguments.get("External id"),
                arguments.get("device"),
                arguments.get(
                    "stream", arguments.get("Physic Stream Id", arguments.get("Stream Id"))
                ),
                arguments.get("Task Id"),
                arguments.get("Task Type", arguments.get("level")),
                blocks,
                arguments.get("bytes"),
            )
        )
        if self._kernels.full:
            self._kernels.pack()

    def _take_name(self, event: Mapping[str, Any]) -> None:
        name = _arguments(event).get("name")
        if len(self.threads) + len(self.processes) > KEPT_CALLS or not isinstance(name, str):
            return
        if event.get("name") == "process_name":
            self.processes[str(event.get("pid"))] = name
        elif event.get("name") == "thread_name":
            self.threads[str(event.get("pid")), str(event.get("tid"))] = name

    def _drop_short(self) -> None:
        """Keep the longer half of the Python calls, the only events without end or use in ops."""
        frame = self._python.frame()
        middle = frame["duration_ns"].median()
        self.shortest_ns = int(middle if isinstance(middle, (int, float)) else 0) + 1
        kept = Rows(_CALLS)
        for row in frame.filter(pl.col("duration_ns") >= self.shortest_ns).iter_rows():
            kept.add(row)
            if kept.full:
                kept.pack()
        self._python = kept


def _arguments(event: Mapping[str, Any]) -> Mapping[str, Any]:
    found = event.get("args")
    return found if isinstance(found, dict) else {}


def read_trace(path: Path) -> Trace:
    """All events of a trace file."""
    trace = Trace()
    with opened(path) as file:
        reader = EventReader(file)
        for event in reader:
            trace.take(event)
        trace.problem = reader.problem
        trace.beside = reader.beside
    return trace
