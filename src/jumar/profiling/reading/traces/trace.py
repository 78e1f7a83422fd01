"""Reads the events of a trace, from any producer, into columns in a single pass."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import polars as pl

from jumar.profiling.reading.events import EventReader, arguments_of
from jumar.profiling.reading.exact import nanoseconds_of
from jumar.profiling.reading.files.opening import opened
from jumar.profiling.reading.traces.categories import DEVICE_CATEGORIES, category_of
from jumar.profiling.reading.traces.kineto_types import shapes_and_types
from jumar.profiling.reading.traces.spilling import ColumnType, SpillingTable, TextNumbers
from jumar.profiling.reading.unreadable import Unreadable, span_of

MAX_NAMES: Final = 1_000_000
"""Maximum number of process and thread names to keep."""

_CALL_COLUMNS: Final[Mapping[str, ColumnType]] = {
    "name": "text",
    "category": "text",
    "thread": "text",
    "start_ns": "integer",
    "duration_ns": "integer",
    "correlation": "integer",
    "external": "integer",
    "shapes": "text",
    "types": "text",
    "module": "text",
}
_KERNEL_COLUMNS: Final[Mapping[str, ColumnType]] = {
    "name": "text",
    "category": "text",
    "pid": "text",
    "thread": "text",
    "start_ns": "integer",
    "duration_ns": "integer",
    "correlation": "integer",
    "external": "integer",
    "device": "integer",
    "stream": "text",
    "task": "integer",
    "core": "text",
    "block_num": "integer",
    "bytes": "integer",
}
_LAUNCH_COLUMNS: Final[Mapping[str, ColumnType]] = {
    "arrow": "digits",
    "launch_ns": "integer",
    "thread": "text",
}
_GRADIENT_COLUMNS: Final[Mapping[str, ColumnType]] = {
    "arrow": "digits",
    "thread": "text",
    "start_ns": "integer",
}
_CLOCK_COLUMNS: Final[Mapping[str, ColumnType]] = {"time_ns": "integer", "mhz": "integer"}
_DATA_WAIT_COLUMNS: Final[Mapping[str, ColumnType]] = {"name": "text", "data_ns": "integer"}


_UNREAD_PHASES: Final = ("B", "b", "i", "I", "C", "O")
"""Phases of events that are counted but not read: begins, instants, counters, objects."""


class Trace:
    """The content of a trace, in columns; a context manager that frees its disk space.

    Attributes:
        texts: The numbers of the texts in all tables.
        calls: Slices on the host, except Python function calls.
        python: Python function calls.
        kernels: Slices on a device, and all slices without a category.
        launches: Starts of flow arrows to an NPU, by the start of the op that they point to.
        forward: Starts of autograd's arrows, in ops of the forward pass.
        backward: Ends of autograd's arrows, in the nodes that compute the ops' gradients.
        clocks: Clock frequencies of the cores.
        data_waits: The time that each iteration of graph mode waited for data.
        processes: Process names by process id.
        threads: Thread names by process and thread id.
        other_values: Values next to the events.
        unread_events: Number of events that were not read, by category.
        unreadable: Counts slices that were dropped because a time is missing or invalid.
        problem: Why reading stopped early; empty if it did not.
        slice_count: Number of slices that were read.
    """

    def __init__(self, display_name: str = "") -> None:
        self.texts = TextNumbers()
        self.unreadable = Unreadable(display_name)
        self.calls = SpillingTable(_CALL_COLUMNS, self.texts)
        self.python = SpillingTable(_CALL_COLUMNS, self.texts)
        self.kernels = SpillingTable(_KERNEL_COLUMNS, self.texts)
        self.launches = SpillingTable(_LAUNCH_COLUMNS, self.texts)
        self.forward = SpillingTable(_GRADIENT_COLUMNS, self.texts)
        self.backward = SpillingTable(_GRADIENT_COLUMNS, self.texts)
        self.clocks = SpillingTable(_CLOCK_COLUMNS, self.texts)
        self.data_waits = SpillingTable(_DATA_WAIT_COLUMNS, self.texts)
        self.processes: dict[str, str] = {}
        self.threads: dict[tuple[str, str], str] = {}
        self.other_values: dict[str, Any] = {}
        self.unread_events: Counter[str] = Counter()
        self.problem = ""
        self.slice_count = 0

    @property
    def _tables(self) -> tuple[SpillingTable, ...]:
        return (
            *(self.calls, self.python, self.kernels, self.launches),
            *(self.forward, self.backward, self.clocks, self.data_waits),
        )

    def pack(self) -> None:
        """Pack the last rows of all tables; only then do all texts have numbers."""
        for table in self._tables:
            table.pack()

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *_: object) -> None:
        for table in self._tables:
            table.close()

    def host_calls(self, *columns: str) -> Iterator[pl.DataFrame]:
        """Host calls in file order, Python calls last, with texts as numbers."""
        yield from self.calls.frames(*columns)
        yield from self.python.frames(*columns)

    def calls_named(self, pattern: str) -> pl.DataFrame:
        """The host calls whose name matches a pattern, with texts as numbers."""
        names = self.texts.matching(pattern)
        frames = self.host_calls() if len(names) else ()
        return self.calls.joined(rows.filter(pl.col("name").is_in(names)) for rows in frames)

    def add(self, event: Mapping[str, Any]) -> None:
        """Add the needed data of an event to the tables."""
        phase = event.get("ph")
        if phase == "X":
            self._add_slice(event)
        elif phase in ("s", "f"):
            self._add_arrow(event, phase)
        elif phase == "M":
            self._add_name(event)
        elif phase == "t" and event.get("cat") == "Data_aug Bound":
            wait = nanoseconds_of(arguments_of(event).get("Data_aug Bound(us)"))
            self.data_waits.add((event.get("name"), wait))
        elif phase == "C" and event.get("name") == "AI Core Freq":
            megahertz = arguments_of(event).get("MHz")
            time = nanoseconds_of(event.get("ts"))
            self.clocks.add((time, nanoseconds_of(megahertz, "ns")))
        elif phase in _UNREAD_PHASES and isinstance(event.get("cat"), str):
            self.unread_events[event["cat"]] += 1

    def _add_slice(self, event: Mapping[str, Any]) -> None:
        span = span_of(event, self.unreadable, default_duration=0)
        if span is None:
            return
        start, duration = span
        self.slice_count += 1
        category = None if event.get("cat") is None else category_of(str(event["cat"]))
        arguments = arguments_of(event)
        if category in DEVICE_CATEGORIES or category is None:
            self._add_kernel(event, category, arguments, start, duration)
            return
        shapes, types = "", ""
        if category in ("cpu_op", "user_annotation"):
            shapes, types = shapes_and_types(
                arguments.get("Input Dims", arguments.get("Input dims")),
                arguments.get("Input type", arguments.get("Input Type")),
            )
        table = self.python if category == "python_function" else self.calls
        table.add(
            (
                event.get("name", ""),
                category,
                event.get("tid"),
                start,
                duration,
                arguments.get("correlation", arguments.get("correlation_id")),
                arguments.get("External id", arguments.get("external id")),
                shapes,
                types,
                arguments.get("Module Hierarchy") or None,
            )
        )

    def _add_arrow(self, event: Mapping[str, Any], phase: str) -> None:
        arrow, time = event.get("id"), nanoseconds_of(event.get("ts"))
        if event.get("cat") == "async_npu" and phase == "s":
            self.launches.add((arrow, time, event.get("tid")))
        elif event.get("cat") == "fwdbwd" and time is not None:
            (self.forward if phase == "s" else self.backward).add((arrow, event.get("tid"), time))

    def _add_kernel(
        self,
        event: Mapping[str, Any],
        category: str | None,
        arguments: Mapping[str, Any],
        start: int,
        duration: int,
    ) -> None:
        grid = arguments.get("grid")
        blocks = (
            math.prod(grid[:3])
            if isinstance(grid, list) and all(type(size) is int for size in grid)
            else None
        )
        self.kernels.add(
            (
                event.get("name", ""),
                category,
                event.get("pid"),
                event.get("tid"),
                start,
                duration,
                arguments.get("correlation", arguments.get("connection_id")),
                arguments.get("External id", arguments.get("external id")),
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

    def _add_name(self, event: Mapping[str, Any]) -> None:
        name = arguments_of(event).get("name")
        if len(self.threads) + len(self.processes) > MAX_NAMES or not isinstance(name, str):
            return
        if event.get("name") == "process_name":
            self.processes[str(event.get("pid"))] = name
        elif event.get("name") == "thread_name":
            self.threads[str(event.get("pid")), str(event.get("tid"))] = name


def read_trace(path: Path, display_name: str = "") -> Trace:
    """Read a trace file.

    Args:
        path: The file.
        display_name: Its name in messages.

    Returns:
        The trace, to be used as a context manager: its columns may be on disk until it exits.
    """
    with ExitStack() as on_failure, opened(path) as file:
        trace = on_failure.enter_context(Trace(display_name or str(path)))
        reader = EventReader(file)
        for event in reader:
            trace.add(event)
        trace.problem = reader.problem
        trace.other_values = reader.other_values
        trace.pack()
        on_failure.pop_all()
    return trace
