"""Ranges around layers: what they are named, and what the layers got."""

import pytest
import torch
from torch import nn

from jumar.training.profiling.ranges import RANGE, ModuleRanges


class Fails(nn.Module):
    def forward(self, values: torch.Tensor, factor: float) -> torch.Tensor:
        if factor < 0:
            raise ValueError("as planned")
        return values * factor


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(3, 2), Fails()

    def forward(self, values: torch.Tensor, factor: float = 1.0) -> torch.Tensor:
        return self.last(self.first(values), factor)


def names(net: nn.Module, factor: float = 1.0) -> list[str]:
    """The ranges that a profiler sees in a pass, in order."""
    with torch.autograd.profiler.profile() as seen:
        if factor < 0:
            with pytest.raises(ValueError, match="as planned"):
                net(torch.ones(4, 3), factor)
        else:
            net(torch.ones(4, 3), factor)
    events = sorted(seen.function_events, key=lambda event: event.time_range.start)
    return [event.name for event in events if event.name.startswith(RANGE)]


def test_layers_are_marked_with_inputs_from_install_to_remove() -> None:
    net = Net()
    ranges = ModuleRanges({"first": net.first, "last": net.last})
    assert names(net) == []
    ranges.install()
    assert names(net) == ["module:first", "module:last"]
    shapes = (
        ("module:first", (torch.Size([4, 3]),)),
        ("module:last", (torch.Size([4, 2]),)),
    )
    assert ranges.take_inputs() == shapes
    assert ranges.take_inputs() == ()
    # A pass that fails closes what it opened.
    assert names(net, -1.0) == ["module:first", "module:last"]
    assert ranges._open == []
    assert names(net) == ["module:first", "module:last"]
    ranges.remove()
    ranges.take_inputs()
    assert names(net) == []
    assert ranges.take_inputs() == ()
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in net.modules())
