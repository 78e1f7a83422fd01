"""Copying shapes and dtypes of ops from additional steps that were recorded with them.

To record shapes, torch's profiler keeps a record of every tensor. On a CPU these records fragment
the heap, and steps with large tensors take up to three quarters longer. The timed steps are
therefore recorded without shapes, and a few additional ones with shapes.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from jumar.observer import DATA
from jumar.training.profiling.capture import STEP
from jumar.training.profiling.layers import Event, start_of

Calls = dict[object, list[Event]]
"""The ops of each thread, in order."""


@dataclass(frozen=True, kw_only=True)
class MissingShapes:
    """The steps and ops without shapes.

    Attributes:
        steps: Steps whose ops have no shapes, not counting ops that prepare data.
        data_ops: Number of ops that prepared data in this process. Their shapes are not copied,
            because they may differ between batches without being noticed.
    """

    steps: Sequence[int] = ()
    data_ops: int = 0


def copy_shapes(
    events: Sequence[Event], shaped: Sequence[Event], inputs: Mapping[int, Hashable]
) -> MissingShapes:
    """Copy the arguments of ops from steps recorded with shapes.

    The two steps must call the same ops in the same order on each thread, with layer inputs of the
    same shapes, because shapes differ for batches of another length and for other objectives. Sizes
    that depend on data, such as those of masked selections, are copied although they may differ.

    Args:
        events: A trace without shapes, whose ops are modified.
        shaped: A trace of other steps, with shapes.
        inputs: The input shapes of the layers, for each step of both traces.
    """
    patterns = [(inputs[step], calls) for step, (calls, _) in _steps(shaped).items()]
    without_shapes: list[int] = []
    data_ops = 0
    for step, (calls, data) in _steps(events).items():
        matches = [
            candidate
            for key, candidate in patterns
            if key == inputs[step] and _equal(calls, candidate)
        ]
        if matches:
            _copy(calls, matches[0])
        else:
            without_shapes.append(step)
        data_ops += sum(map(len, data.values()))
    return MissingShapes(steps=tuple(without_shapes), data_ops=data_ops)


def _copy(calls: Calls, shaped: Calls) -> None:
    for thread, events in calls.items():
        for event, shaped_event in zip(events, shaped[thread], strict=True):
            event["args"] = {**shaped_event.get("args", {}), **event.get("args", {})}


def _equal(calls: Calls, others: Calls) -> bool:
    """Whether both call the same ops in the same order on each thread."""
    return calls.keys() == others.keys() and all(
        [event.get("name") for event in events] == [event.get("name") for event in others[thread]]
        for thread, events in calls.items()
    )


def _steps(events: Sequence[Event]) -> dict[int, tuple[Calls, Calls]]:
    """The ops of each step, and those among them that prepare data."""
    spans: dict[int, tuple[int, int]] = {}
    loading: list[tuple[int, int]] = []
    for event in events:
        name = str(event.get("name"))
        if event.get("ph") != "X":
            continue
        if name.startswith(STEP):
            spans[int(name.removeprefix(STEP))] = _span(event)
        elif name == DATA and event.get("cat") != "cpu_op":
            loading.append(_span(event))
    ops = [event for event in events if event.get("cat") == "cpu_op" and event.get("ph") == "X"]
    ops.sort(key=lambda event: (_span(event)[0], -_span(event)[1]))
    steps: dict[int, tuple[Calls, Calls]] = {}
    for step, (start, end) in spans.items():
        ranges = [(load_start, stop) for load_start, stop in loading if start <= load_start < end]
        calls: Calls = defaultdict(list)
        data: Calls = defaultdict(list)
        for event in ops:
            event_start = start_of(event)
            if start <= event_start < end:
                prepares_data = any(first <= event_start < stop for first, stop in ranges)
                (data if prepares_data else calls)[event.get("tid")].append(event)
        steps[step] = dict(calls), dict(data)
    return steps


def _span(event: Event) -> tuple[int, int]:
    start = start_of(event)
    return start, start + round(1000 * float(event.get("dur") or 0))
