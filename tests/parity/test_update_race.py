"""A gradient that passes through a kernel after its update, worked out by hand."""

import copy

import torch
from torch import nn

from tests.parity.update_race import changed_early, train_step


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


def test_step_changes_each_raced_kernel_before_the_gradient_passes() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(3, 3, bias=False) for _ in range(4))).double()
    values = torch.randn(5, 3, dtype=torch.float64)
    kernels = [layer.weight.detach().clone() for layer in model]

    def create(model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=0.5)

    def backward(model: nn.Module) -> None:
        model.zero_grad()
        model(values).square().sum().backward()

    inputs = [values]
    for kernel in kernels:
        inputs.append(inputs[-1] @ kernel.T)
    gradient, expected = 2 * inputs[-1], {}
    for number in reversed(range(4)):
        expected[number] = kernels[number] - 0.5 * gradient.T @ inputs[number]
        passed = expected[number] if number in (1, 3) else kernels[number]
        gradient = gradient @ passed
    train_step(model, create(model), create, backward, ["1", "3"])
    for number, layer in enumerate(model):
        torch.testing.assert_close(layer.weight.detach(), expected[number])
