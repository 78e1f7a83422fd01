from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from jumar.training.profiling.layers import MODULE, Layers, add_layers, launched_layers
from jumar.training.profiling.ranges import RANGE, named_layers

Event = dict[str, Any]


def op(name: str, start: int, length: int, *, thread: int = 1, **arguments: int) -> Event:
    """A slice as both profilers write them."""
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": 1,
        "tid": thread,
        "ts": start,
        "dur": length,
        "args": {key.replace("_", " "): value for key, value in arguments.items()},
    }


def forward(name: str, start: int, length: int, number: int) -> Event:
    return op(name, start, length, **{"Sequence_number": number, "Fwd_thread_id": 0})


def backward(name: str, start: int, length: int, number: int) -> Event:
    return op(name, start, length, thread=2, **{"Sequence_number": number, "Fwd_thread_id": 1})


def test_backward_node_belongs_to_the_last_op_with_its_sequence_number() -> None:
    events = [
        op(f"{RANGE}a", 0, 10),
        forward("aten::conv2d", 1, 8, 7),
        forward("aten::to", 2, 1, 7),
        forward("aten::convolution", 4, 4, 8),
        op(f"{RANGE}b", 10, 10),
        # Begins with 9, but needs no gradient: the next op has the number still.
        forward("aten::add_", 11, 1, 9),
        op(f"{RANGE}c", 20, 10),
        forward("aten::relu", 21, 2, 9),
        backward("ReluBackward0", 40, 5, 9),
        op("aten::threshold_backward", 41, 3, thread=2),
        backward("ConvolutionBackward0", 50, 5, 8),
        op("aten::convolution_backward", 51, 3, thread=2),
        op("aten::sgd", 60, 3),
    ]
    add_layers(events)
    result = {event["name"]: event["args"].get(MODULE) for event in events}
    assert result["aten::conv2d"] == result["aten::convolution"] == "a"
    assert result["aten::add_"] == "b"
    assert result["ReluBackward0"] == result["aten::threshold_backward"] == "c"
    assert result["aten::convolution_backward"] == "a"
    assert result["aten::sgd"] is None
    assert result[f"{RANGE}a"] is None


def test_npu_kernels_are_found_by_trace_flows() -> None:
    # Times are decimal texts there, with more digits than fit a float.
    moment = "17364088836{:05d}.{:03d}"
    events = [
        {**op(f"{RANGE}features.0", 0, 50), "ts": moment.format(0, 1), "dur": 50},
        {**forward("aten::convolution", 0, 0, 3), "ts": moment.format(1, 250), "dur": 40.5},
        {**backward("ConvolutionBackward0", 0, 0, 3), "ts": moment.format(90, 0), "dur": 10.0},
    ]
    flows = [
        (1, 1, moment.format(2, 0), moment.format(70, 333)),
        (2, 2, moment.format(95, 0), moment.format(170, 334)),
        (3, 1, moment.format(60, 0), moment.format(180, 0)),
    ]
    for number, thread, begins, ends in flows:
        flow = {"cat": "async_npu", "name": "torch_to_npu", "id": number}
        events.append({**flow, "ph": "s", "pid": 1, "tid": thread, "ts": begins})
        events.append({**flow, "ph": "f", "pid": 9, "tid": 4, "ts": ends})
    assert launched_layers(events) == {
        1736408883600070333: "features.0",
        1736408883600170334: "features.0",
    }


@st.composite
def nested(draw: st.DrawFn, depth: int = 4) -> list[tuple[int, int]]:
    """Ranges of one thread as calls make them: side by side, or one within the other."""
    result: list[tuple[int, int]] = []

    def fill(start: int, end: int, level: int) -> None:
        at = start
        while level and at < end and draw(st.booleans()):
            begins = draw(st.integers(at, end - 1))
            ends = draw(st.integers(begins + 1, end))
            result.append((begins, ends))
            fill(begins, ends, level - 1)
            at = ends

    fill(0, 60, depth)
    return result


@given(nested(), st.integers(0, 60))
def test_innermost_range_around_a_moment_is_found(
    ranges: list[tuple[int, int]], moment: int
) -> None:
    events = [
        op(f"{RANGE}{place}", start, end - start) for place, (start, end) in enumerate(ranges)
    ]
    around = [place for place, (start, end) in enumerate(ranges) if start <= moment < end]
    # `ranges` lists what is outside before what is within.
    expected = str(around[-1]) if around else ""
    assert Layers(events).at(op("aten::add", moment, 0)) == expected


def test_every_module_has_one_name_starting_with_the_networks() -> None:
    network = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
    objective = nn.Module()
    objective.add_module("trained", network)
    objective.add_module("0", nn.Tanh())
    named = named_layers(network, [objective])
    assert {name: type(module).__name__ for name, module in named.items()} == {
        "0": "Linear",
        "1": "Sequential",
        "1.0": "ReLU",
        "Module.0": "Tanh",
    }
    assert torch.is_tensor(network(torch.ones(1, 2)))
