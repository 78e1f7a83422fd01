"""Shapes and dtypes of ops, taken over from further steps that were recorded with them.

For shapes torch's profiler keeps a record of every tensor. On a CPU these lie between the tensors,
so that memory is used anew and steps of large tensors take up to three quarters longer. So the
steps whose times count are recorded without shapes, and a few more with.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

from jumar.training.profiling.capture import STEP
from jumar.training.profiling.layers import Event, start_of

Calls = dict[object, list[Event]]
"""The ops of a step in order, by thread."""


def take_shapes(
    events: Sequence[Event], shaped: Sequence[Event], inputs: Mapping[int, Hashable]
) -> list[int]:
    """Give ops the arguments that they have in a step that was recorded with shapes.

    A step takes over those of another one if both call the same ops in the same order on each
    thread, and if their layers got inputs of the same shapes: a batch of other lengths, or a step
    in which another objective is trained, has other shapes.

    Args:
        events: A trace without shapes; its ops get arguments.
        shaped: A trace of other steps with shapes.
        inputs: For each step of both, what tells its shapes.

    Returns:
        The steps for which there is none to take over from.
    """
    patterns = [(inputs[step], _names(calls), calls) for step, calls in _steps(shaped).items()]
    without: list[int] = []
    for step, calls in _steps(events).items():
        names = _names(calls)
        same = [other for key, others, other in patterns if key == inputs[step] and others == names]
        if not same:
            without.append(step)
            continue
        for thread, own in calls.items():
            for event, other in zip(own, same[0][thread], strict=True):
                event["args"] = {**other.get("args", {}), **event.get("args", {})}
    return without


def _names(calls: Calls) -> dict[object, list[object]]:
    return {thread: [event.get("name") for event in own] for thread, own in calls.items()}


def _steps(events: Sequence[Event]) -> dict[int, Calls]:
    """The ops within each step."""
    spans: dict[int, tuple[int, int]] = {}
    for event in events:
        name = str(event.get("name"))
        if name.startswith(STEP) and event.get("ph") == "X":
            spans[int(name.removeprefix(STEP))] = _span(event)
    ops = [event for event in events if event.get("cat") == "cpu_op" and event.get("ph") == "X"]
    ops.sort(key=lambda event: (_span(event)[0], -_span(event)[1]))
    steps: dict[int, Calls] = {step: defaultdict(list) for step in spans}
    for event in ops:
        at = start_of(event)
        for step, (start, end) in spans.items():
            if start <= at < end:
                steps[step][event.get("tid")].append(event)
    return {step: dict(calls) for step, calls in steps.items()}


def _span(event: Event) -> tuple[int, int]:
    start = start_of(event)
    return start, start + round(1000 * float(event.get("dur") or 0))
