"""Which steps take over shapes from which."""

from typing import Any

from jumar.training.profiling.layers import Event
from jumar.training.profiling.shapes import MissingShapes, copy_shapes


def step(number: int, start: float, ops: list[tuple[str, int]], **arguments: Any) -> list[Event]:
    """A step of 100 us with ops of 10 us, each on a thread; shapes are their place in the step."""
    mark = {"name": f"ProfilerStep#{number}", "ph": "X", "ts": start, "dur": 100.0, "tid": 1}
    events: list[Event] = [mark]
    for place, (name, thread) in enumerate(ops):
        event: Event = {"name": name, "cat": "cpu_op", "ph": "X", "dur": 10.0, "tid": thread}
        event |= {"ts": start + 10 * place, "args": {"External id": number}}
        event["args"] |= {key: [value, place] for key, value in arguments.items()}
        events.append(event)
    return events


OPS = [("aten::mm", 1), ("aten::add", 1), ("aten::mm", 2)]


def shapes_of(events: list[Event]) -> list[Any]:
    return [each["args"].get("Input Dims") for each in events if each.get("cat") == "cpu_op"]


def test_step_adopts_missing_shapes_and_keeps_its_own() -> None:
    events = step(1, 0, OPS)
    shaped = step(5, 900, OPS, **{"Input Dims": 7})
    assert copy_shapes(events, shaped, {1: "a", 5: "a"}) == MissingShapes()
    assert shapes_of(events) == [[7, 0], [7, 1], [7, 2]]
    assert {each["args"]["External id"] for each in events if "args" in each} == {1}


def test_steps_with_other_ops_order_or_threads_adopt_nothing() -> None:
    shaped = step(5, 900, OPS, **{"Input Dims": 7})
    others = (
        [*OPS, ("aten::mul", 1)],
        OPS[:2],
        [OPS[1], OPS[0], OPS[2]],
        [("aten::mm", 1), ("aten::add", 1), ("aten::mm", 1)],
    )
    for ops in others:
        events = step(1, 0, ops)
        assert copy_shapes(events, shaped, {1: "a", 5: "a"}) == MissingShapes(steps=(1,))
        assert shapes_of(events) == [None] * len(ops)


def test_step_with_equal_inputs_is_preferred() -> None:
    events = [*step(1, 0, OPS), *step(2, 200, OPS), *step(3, 400, OPS)]
    shaped = [
        *step(8, 900, OPS, **{"Input Dims": 8}),
        *step(9, 1100, OPS, **{"Input Dims": 9}),
    ]
    keys = {1: "wide", 2: "long", 3: "neither", 8: "long", 9: "wide"}
    assert copy_shapes(events, shaped, keys) == MissingShapes(steps=(3,))
    firsts = [value[0] if value else None for value in shapes_of(events)]
    assert firsts == [9, 9, 9, 8, 8, 8, None, None, None]


def test_ops_between_steps_have_no_step() -> None:
    events = [*step(1, 0, OPS), {**step(1, 0, OPS)[1], "ts": 150.0, "args": {}}]
    shaped = step(5, 900, OPS, **{"Input Dims": 7})
    assert copy_shapes(events, shaped, {1: "a", 5: "a"}) == MissingShapes()
    assert shapes_of(events)[-1] is None


def test_data_preparation_ops_are_ignored_when_adopting_shapes() -> None:
    def loading(number: int, start: float, ops: list[tuple[str, int]], **more: Any) -> list[Event]:
        mark = {"name": "data", "cat": "user_annotation", "ph": "X", "ts": start, "dur": 20.0}
        return [*step(number, start, [*ops, *OPS], **more), {**mark, "tid": 1}]

    # Equal names do not make equal sizes, so a batch like the other takes nothing either.
    events = [*loading(1, 0, OPS[:2]), *loading(2, 200, [OPS[1], OPS[1]])]
    shaped = loading(5, 900, OPS[:2], **{"Input Dims": 7})
    keys = {1: "a", 2: "a", 5: "a"}
    assert copy_shapes(events, shaped, keys) == MissingShapes(data_ops=4)
    own = [None, None, *([7, place] for place in range(2, 5))]
    assert shapes_of(events) == [*own, *own]
