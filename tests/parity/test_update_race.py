"""A gradient that passes through a kernel after its update, worked out by hand."""

import copy

import torch
from torch import nn

from tests.parity.update_race import changed_early


def test_only_gradients_below_a_layer_pass_through_its_changed_kernel() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    after = copy.deepcopy(model)
    with torch.no_grad():
        after[1].weight += 1.0
    values = torch.tensor([[1.0, -2.0]])
    with changed_early(model, after, ["1"]):
        result = model(values)
    torch.testing.assert_close(result, model(values))
    result.sum().backward()
    torch.testing.assert_close(model[1].weight.grad, model[0](values))
    torch.testing.assert_close(model[0].weight.grad, after[1].weight.T @ values)
    # Outside of the context nothing is changed.
    model.zero_grad()
    model(values).sum().backward()
    torch.testing.assert_close(model[0].weight.grad, model[1].weight.T @ values)
