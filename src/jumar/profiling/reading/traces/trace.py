"""One pass over the events of a trace from any producer, keeping what is needed."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import polars as pl

from jumar.profiling.reading.events import EventReader, arguments_of
from jumar.profiling.reading.exact import nanoseconds_of
from jumar.profiling.reading.files.opening import opened
from jumar.profiling.reading.traces.categories import DEVICE, category_of
from jumar.profiling.reading.traces.kineto_types import shapes_and_types
from jumar.profiling.reading.traces.spilling import Kind, Table, Texts
from jumar.profiling.reading.unreadable import Unreadable, span_of

MOST_NAMES: Final = 1_000_000
"""Names of processes and threads that are kept."""

_CALLS: Final[Mapping[str, Kind]] = {
    "name": "text",
    "category": "text",
    "thread": "text",
    "start_ns": "whole",
    "duration_ns": "whole",
    "correlation": "whole",
    "external": "whole",
    "shapes": "text",
    "types": "text",
    "module": "text",
}
_KERNELS: Final[Mapping[str, Kind]] = {
    "name": "text",
    "category": "text",
    "pid": "text",
    "thread": "text",
    "start_ns": "whole",
    "duration_ns": "whole",
    "correlation": "whole",
    "external": "whole",
    "device": "whole",
    "stream": "text",
    "task": "whole",
    "core": "text",
    "block_num": "whole",
    "bytes": "whole",
}
_LAUNCHES: Final[Mapping[str, Kind]] = {"arrow": "digits", "launch_ns": "whole", "thread": "text"}
_GRADIENTS: Final[Mapping[str, Kind]] = {"arrow": "digits", "thread": "text", "start_ns": "whole"}
_CLOCKS: Final[Mapping[str, Kind]] = {"time_ns": "whole", "mhz": "whole"}
_WAITS: Final[Mapping[str, Kind]] = {"name": "text", "data_ns": "whole"}


_UNREAD: Final = ("B", "b", "i", "I", "C", "O")
"""Phases of events that hold something, other than slices: their beginnings, marks, counters."""


class Trace:
    """The content of a trace, in columns; a context manager that frees its disk space.

    Attributes:
        texts: The dictionary of the texts in all tables.
        calls: Events on the host but those of Python's own functions.
        python: Functions of Python.
        kernels: Events on a device, and all others that name no category.
        launches: Where arrows to an NPU start, by the start of the op that they point at.
        forward: Where autograd's arrows start: at an op of the forward pass.
        backward: Where they end: in the node that computes the op's gradient.
        clocks: Frequencies of the cores.
        waits: How long each iteration of graph mode waited for data.
        processes: Names by process.
        threads: Names by process and thread.
        beside: Values beside the events.
        unread: Events with a category that are neither slices nor arrows, by that category.
        unreadable: Slices of time without a time, which are left out.
        problem: Why reading stopped early; empty when it did not.
        events: Slices of time that were read.
    """

    def __init__(self, shown: str = "") -> None:
        self.texts = Texts()
        self.unreadable = Unreadable(shown)
        self.calls = Table(_CALLS, self.texts)
        self.python = Table(_CALLS, self.texts)
        self.kernels = Table(_KERNELS, self.texts)
        self.launches = Table(_LAUNCHES, self.texts)
        self.forward = Table(_GRADIENTS, self.texts)
        self.backward = Table(_GRADIENTS, self.texts)
        self.clocks = Table(_CLOCKS, self.texts)
        self.waits = Table(_WAITS, self.texts)
        self.processes: dict[str, str] = {}
        self.threads: dict[tuple[str, str], str] = {}
        self.beside: dict[str, Any] = {}
        self.unread: Counter[str] = Counter()
        self._categories: dict[str, str] = {}
        self.problem = ""
        self.events = 0

    @property
    def _tables(self) -> tuple[Table, ...]:
        return (
            *(self.calls, self.python, self.kernels, self.launches),
            *(self.forward, self.backward, self.clocks, self.waits),
        )

    def pack(self) -> None:
        """Turn the last rows into columns: only then all texts have a number."""
        for table in self._tables:
            table.pack()

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *_: object) -> None:
        for table in self._tables:
            table.close()

    def host(self, *columns: str) -> Iterator[pl.DataFrame]:
        """Calls on the host in file order, those of Python last; numbers for texts."""
        yield from self.calls.frames(*columns)
        yield from self.python.frames(*columns)

    def called(self, pattern: str) -> pl.DataFrame:
        """The calls on the host whose name matches a pattern; numbers for texts."""
        wanted = self.texts.matching(pattern)
        frames = self.host() if len(wanted) else ()
        return self.calls.joined(rows.filter(pl.col("name").is_in(wanted)) for rows in frames)

    def take(self, event: Mapping[str, Any]) -> None:
        """Keep the needed parts of one event."""
        phase = event.get("ph")
        if phase == "X":
            self._take_slice(event)
        elif phase in ("s", "f"):
            self._take_arrow(event, phase)
        elif phase == "M":
            self._take_name(event)
        elif phase == "t" and event.get("cat") == "Data_aug Bound":
            waited = nanoseconds_of(arguments_of(event).get("Data_aug Bound(us)"))
            self.waits.add((event.get("name"), waited))
        elif phase == "C" and event.get("name") == "AI Core Freq":
            megahertz = arguments_of(event).get("MHz")
            time = nanoseconds_of(event.get("ts"))
            self.clocks.add((time, nanoseconds_of(megahertz, "ns")))
        elif phase in _UNREAD and isinstance(event.get("cat"), str):
            self.unread[event["cat"]] += 1

    def _take_slice(self, event: Mapping[str, Any]) -> None:
        span = span_of(event, self.unreadable, shortest=0)
        if span is None:
            return
        start, duration = span
        self.events += 1
        category = self._category(event.get("cat"))
        arguments = arguments_of(event)
        if category in DEVICE or category is None:
            self._take_kernel(event, category, arguments, start, duration)
            return
        shapes, types = "", ""
        if category in ("cpu_op", "user_annotation"):
            shapes, types = shapes_and_types(
                arguments.get("Input Dims", arguments.get("Input dims")),
                arguments.get("Input type", arguments.get("Input Type")),
            )
        rows = self.python if category == "python_function" else self.calls
        rows.add(
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

    def _take_arrow(self, event: Mapping[str, Any], phase: str) -> None:
        arrow, time = event.get("id"), nanoseconds_of(event.get("ts"))
        if event.get("cat") == "async_npu" and phase == "s":
            self.launches.add((arrow, time, event.get("tid")))
        elif event.get("cat") == "fwdbwd" and time is not None:
            (self.forward if phase == "s" else self.backward).add((arrow, event.get("tid"), time))

    def _category(self, written: object) -> str | None:
        """The category of a slice in current terms, cached."""
        if written is None:
            return None
        text = written if isinstance(written, str) else str(written)
        category = self._categories.get(text)
        if category is None:
            category = self._categories[text] = category_of(text)
        return category

    def _take_kernel(
        self,
        event: Mapping[str, Any],
        category: str | None,
        arguments: Mapping[str, Any],
        start: int,
        duration: int,
    ) -> None:
        grid = arguments.get("grid")
        blocks: int | None = None
        if isinstance(grid, list) and all(type(size) is int for size in grid):
            blocks = 1
            for size in grid[:3]:
                blocks *= size
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

    def _take_name(self, event: Mapping[str, Any]) -> None:
        name = arguments_of(event).get("name")
        if len(self.threads) + len(self.processes) > MOST_NAMES or not isinstance(name, str):
            return
        if event.get("name") == "process_name":
            self.processes[str(event.get("pid"))] = name
        elif event.get("name") == "thread_name":
            self.threads[str(event.get("pid")), str(event.get("tid"))] = name


def read_trace(path: Path, shown: str = "") -> Trace:
    """All events of a trace file.

    Args:
        path: The file.
        shown: Its name in messages.

    Returns:
        The trace, a context: its columns are on the disk until it is left.
    """
    with ExitStack() as on_failure, opened(path) as file:
        trace = on_failure.enter_context(Trace(shown or str(path)))
        reader = EventReader(file)
        for event in reader:
            trace.take(event)
        trace.problem = reader.problem
        trace.beside = reader.beside
        trace.pack()
        on_failure.pop_all()
    return trace
