"""Finding the layer of an op: forward by the ranges of modules, backward by sequence numbers.

An op of the forward pass runs within the range of its module. Autograd assigns its current sequence
number to the node that an op creates, and the profiler records that number for both the op and the
node's backward. Everything that runs within a backward node therefore belongs to the layer of the
last op that started with the node's number.
"""

import bisect
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

from jumar.profiling.reading.exact import nanoseconds_of
from jumar.training.profiling.ranges import RANGE

MODULE: Final = "Module Hierarchy"
"""The name of the event argument for the path of the layer, as in torch itself."""

_TO_NPU: Final = "async_npu"

Event = dict[str, Any]
Value = TypeVar("Value")


class Layers:
    """Finds the layer that was running at a given time, forward or backward.

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
            sequence_number = _sequence_number(event)
            if sequence_number is None:
                continue
            if event["args"].get("Fwd thread id"):
                nodes.append((event, sequence_number))
                continue
            # Of all ops that started with this number, the last one created the node.
            began = start_of(event)
            if sequence_number not in creators or began >= creators[sequence_number][0]:
                creators[sequence_number] = (began, self._forward.at(event))
        self._backward = Spans(
            [
                (event, creators[sequence_number][1])
                for event, sequence_number in nodes
                if sequence_number in creators
            ],
            "",
        )

    def at(self, event: Event) -> str:
        """The path of the layer running when the event started; empty outside any layer."""
        return self._forward.at(event) or self._backward.at(event)


def add_layers(events: Sequence[Event]) -> None:
    """Add the path of its layer to every op of a trace."""
    layers = Layers(events)
    for event in events:
        if event.get("cat") == "cpu_op" and not str(event.get("name", "")).startswith(RANGE):
            path = layers.at(event)
            if path:
                event.setdefault("args", {})[MODULE] = path


def launched_layers(events: Sequence[Event]) -> dict[int, str]:
    """The layer of each NPU kernel, by its start time in nanoseconds.

    The NPU's kernel table has no link to the host, but the trace has flows from ops to kernels.
    """
    layers = Layers(events)
    flows = [event for event in events if event.get("cat") == _TO_NPU]
    paths = {event.get("id"): layers.at(event) for event in flows if event.get("ph") == "s"}
    by_start = {
        start_of(event): paths.get(event.get("id"), "") for event in flows if event["ph"] == "f"
    }
    return {start: path for start, path in by_start.items() if path}


def _sequence_number(event: Event) -> int | None:
    """The number that links an op to its backward node."""
    number = event.get("args", {}).get("Sequence number")
    return number if isinstance(number, int) and number >= 0 else None


def start_of(event: Event) -> int:
    """The start of an event in nanoseconds, on the trace's own clock."""
    return nanoseconds_of(event.get("ts")) or 0


class Spans(Generic[Value]):
    """Nested ranges per thread, for looking up the innermost one at a given time.

    Args:
        spans: Events with a duration, each with a value.
        default: The value outside all of them.
    """

    def __init__(self, spans: Sequence[tuple[Event, Value]], default: Value) -> None:
        by_thread: dict[object, list[tuple[int, int, Value]]] = defaultdict(list)
        for event, value in spans:
            start = start_of(event)
            end = start + (nanoseconds_of(event.get("dur")) or 0)
            by_thread[_thread(event)].append((start, end, value))
        self._default = default
        self._changes = {thread: _changes(ranges, default) for thread, ranges in by_thread.items()}

    def at(self, event: Event) -> Value:
        """The value of the innermost range around the start of an event."""
        if _thread(event) not in self._changes:
            return self._default
        moments, values = self._changes[_thread(event)]
        index = bisect.bisect_right(moments, start_of(event)) - 1
        return values[index] if index >= 0 else self._default


def _thread(event: Event) -> tuple[object, object]:
    return event.get("pid"), event.get("tid")


def _changes(spans: list[tuple[int, int, Value]], default: Value) -> tuple[list[int], list[Value]]:
    """The times at which a thread's innermost range changes, and the new values."""
    moments: list[int] = []
    values: list[Value] = []
    open_ranges: list[tuple[int, Value]] = []

    def close(until: int | None) -> None:
        while open_ranges and (until is None or open_ranges[-1][0] <= until):
            end, _ = open_ranges.pop()
            moments.append(end)
            values.append(open_ranges[-1][1] if open_ranges else default)

    for start, end, value in sorted(spans, key=lambda span: (span[0], -span[1])):
        close(start)
        moments.append(start)
        values.append(value)
        open_ranges.append((end, value))
    close(None)
    return moments, values
