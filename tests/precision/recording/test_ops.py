"""What is recorded of an op: its inputs and its other arguments, with their names."""

import torch

from jumar.precision.recording.calls import Calls
from jumar.precision.recording.contents import Contents
from jumar.precision.recording.layers import Layers
from jumar.precision.recording.ops import OpRecorder
from jumar.precision.recording.statistics import Meter


def test_keyword_arguments_of_an_op_are_recorded_by_name() -> None:
    calls, meter = Calls(), Meter(counts=True)
    contents = Contents(meter, keeps_tensors=False, sample=0, max_bytes=0, digests=False)
    one, two, sums = torch.arange(3.0), torch.ones(3), torch.zeros(3)
    with OpRecorder(calls, contents, Layers({})):
        torch.add(one, two, alpha=2)
        torch.sum(one, dtype=torch.float64)
        torch.add(one, two, out=sums)
    rows = meter.read()
    recorded = {call.op: call for call in (entry.call(rows) for entry in calls.entries)}
    assert recorded["aten.add.Tensor"].arguments == {"alpha": "2"}
    assert recorded["aten.sum.default"].arguments == {"dtype": "torch.float64"}
    inputs = [value for value in recorded["aten.add.out"].values if value.role == "input"]
    assert [(value.name, value.shape) for value in inputs] == [
        *(("0", (3,)), ("1", (3,)), ("out", (3,))),
    ]
