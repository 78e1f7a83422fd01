"""Which layer an op belongs to: forward by ranges around the modules, backward by sequence number.

An op of the forward pass runs within the range of its module. Autograd gives the node that an op
creates the current sequence number, and its profiler records that number for both the op and the
node's backward; so whatever runs within a backward node belongs to the layer of the last op that
began with the node's number.
"""

import bisect
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

from jumar.profiling.reading.exact import nanoseconds_of
from jumar.training.profiling.ranges import RANGE

MODULE: Final = "Module Hierarchy"
"""The event argument that holds the path of its layer, where torch itself would put it."""

_TO_NPU: Final = "async_npu"

Event = dict[str, Any]
Value = TypeVar("Value")


class Layers:
    """Which layer was running at a given time, forward or backward.

    Args:
        events: The events of a trace from torch.profiler or torch_npu's profiler.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        slices = [event for event in events if event.get("ph") == "X"]
        self._forward = Spans(
            [
                (event, str(event["name"]).removeprefix(RANGE))
                for event in slices
                if str(event.get("name", "")).startswith(RANGE)
            ],
            "",
        )
        creators: dict[int, tuple[int, str]] = {}
        nodes: list[tuple[Event, int]] = []
        for event in slices:
            number = _number(event)
            if number is None:
                continue
            if event["args"].get("Fwd thread id"):
                nodes.append((event, number))
                continue
            # Of all ops that began with this number, the last one created the node.
            began = start_of(event)
            if number not in creators or began >= creators[number][0]:
                creators[number] = (began, self._forward.at(event))
        self._backward = Spans(
            [(event, creators[number][1]) for event, number in nodes if number in creators], ""
        )

    def at(self, event: Event) -> str:
        """The path of the layer that was running when the event began; empty outside any layer."""
        return self._forward.at(event) or self._backward.at(event)


def note_modules(events: Sequence[Event]) -> None:
    """Add the path of its layer to the arguments of every op in a trace."""
    layers = Layers(events)
    for event in events:
        if event.get("cat") == "cpu_op" and not str(event.get("name", "")).startswith(RANGE):
            path = layers.at(event)
            if path:
                event.setdefault("args", {})[MODULE] = path


def launched_layers(events: Sequence[Event]) -> dict[int, str]:
    """The layer of each NPU kernel, by the nanosecond at which the kernel began.

    The NPU's kernel table has no link to the host; the trace's flows lead from op to kernel.
    """
    layers = Layers(events)
    flows = [event for event in events if event.get("cat") == _TO_NPU]
    paths = {event.get("id"): layers.at(event) for event in flows if event.get("ph") == "s"}
    by_start = {
        start_of(event): paths.get(event.get("id"), "") for event in flows if event["ph"] == "f"
    }
    return {moment: path for moment, path in by_start.items() if path}


def _number(event: Event) -> int | None:
    """The number that links an op to its backward node."""
    number = event.get("args", {}).get("Sequence number")
    return number if isinstance(number, int) and number >= 0 else None


def start_of(event: Event) -> int:
    """The nanosecond at which an event began, on the trace's own clock."""
    return nanoseconds_of(event.get("ts")) or 0


class Spans(Generic[Value]):
    """Nested ranges per thread, for looking up the innermost one at a given time.

    Args:
        spans: Events with a duration, each with the value it stands for.
        nothing: The value outside all of them.
    """

    def __init__(self, spans: Sequence[tuple[Event, Value]], nothing: Value) -> None:
        by_thread: dict[object, list[tuple[int, int, Value]]] = defaultdict(list)
        for event, value in spans:
            start = start_of(event)
            end = start + (nanoseconds_of(event.get("dur")) or 0)
            by_thread[_thread(event)].append((start, end, value))
        self._nothing = nothing
        self._changes = {thread: _changes(ranges, nothing) for thread, ranges in by_thread.items()}

    def at(self, event: Event) -> Value:
        """The value of the innermost range around the start of an event."""
        if _thread(event) not in self._changes:
            return self._nothing
        moments, values = self._changes[_thread(event)]
        index = bisect.bisect_right(moments, start_of(event)) - 1
        return values[index] if index >= 0 else self._nothing


def _thread(event: Event) -> tuple[object, object]:
    return event.get("pid"), event.get("tid")


def _changes(spans: list[tuple[int, int, Value]], nothing: Value) -> tuple[list[int], list[Value]]:
    """The times at which a thread's innermost range changes, and the new values."""
    moments: list[int] = []
    values: list[Value] = []
    open_: list[tuple[int, Value]] = []

    def close(until: int | None) -> None:
        while open_ and (until is None or open_[-1][0] <= until):
            end, _ = open_.pop()
            moments.append(end)
            values.append(open_[-1][1] if open_ else nothing)

    for start, end, value in sorted(spans, key=lambda span: (span[0], -span[1])):
        close(start)
        moments.append(start)
        values.append(value)
        open_.append((end, value))
    close(None)
    return moments, values
