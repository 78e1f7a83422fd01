"""The running layer is known, even if its modules fail."""

import torch
from torch import nn

from jumar.precision.recording.layers import Layers


class Refusing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("not this time")


class Attempting(nn.Module):
    """Goes on with another layer where one fails."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Refusing(), nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            return self.first(x)
        except ValueError:
            return self.second(x)


def test_layer_that_failed_is_left() -> None:
    net = Attempting()
    layers = Layers()
    stacks: list[list[str]] = []
    net.second.register_forward_pre_hook(lambda *_: stacks.append([*layers.stack]))
    with layers.followed():
        net(torch.ones(1, 2))
    assert stacks == [["", "second"]]
    assert layers.stack == []
