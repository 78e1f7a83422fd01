"""What low precision would do to each op, measured in one pass in float32."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from jumar.precision.searching.attribution import Attribution, MeasuringPolicy, OpEffect

EPSILON = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
LOWS = pytest.mark.parametrize("low", EPSILON)


class Net(nn.Module):
    """A convolution, a norm with running statistics, a product and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 5)

    def forward(self, images: Tensor) -> Tensor:
        hidden = functional.relu(self.norm(self.conv(images))).mean((2, 3))
        return functional.softmax(self.head(hidden), -1)


def rows(net: nn.Module, batch: Tensor, low: torch.dtype) -> dict[str, OpEffect]:
    policy = MeasuringPolicy(device_type="cpu")
    measured = Attribution("cpu", low, dict(net.named_modules()))
    with measured.measuring(), policy.forward():
        loss = net(batch).square().sum()
        loss.backward()
    return {row.op: row for row in measured.rows()}


@pytest.fixture
def batch() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(8, 3, 6, 6)


@LOWS
def test_errors_are_those_of_rounding(batch: Tensor, low: torch.dtype) -> None:
    measured = rows(Net(), batch, low)
    assert {"conv2d", "batch_norm", "relu", "mean.dim", "linear", "softmax.int"} <= set(measured)
    for row in measured.values():
        assert 0 < row.error < 4 * EPSILON[low], row
        assert 0 < row.loss_change < 1, row
        assert row.overflows == 0
    assert measured["conv2d"].layer == "conv"
    assert measured["relu"].layer == ""


@LOWS
def test_measuring_changes_nothing(batch: Tensor, low: torch.dtype) -> None:
    torch.manual_seed(1)
    one, other = Net(), Net()
    other.load_state_dict(one.state_dict())
    rows(one, batch, low)
    other(batch).square().sum().backward()
    for name, tensor in other.state_dict().items():
        assert torch.equal(one.state_dict()[name], tensor), name
    for mine, exact in zip(one.parameters(), other.parameters(), strict=True):
        assert mine.grad is not None
        assert exact.grad is not None
        assert torch.equal(mine.grad, exact.grad)


def test_torchs_own_lists_are_back_afterwards(batch: Tensor) -> None:
    rows(Net(), batch, torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert functional.linear(batch, torch.eye(6)).dtype == torch.bfloat16


def test_the_change_of_the_loss_is_error_times_gradient() -> None:
    net = nn.Linear(1, 1, bias=False)
    nn.init.constant_(net.weight, 1.0)
    value = 1 + 2.0**-12  # halfway between two float16 numbers is 2**-11
    batch = torch.tensor([[value]])
    policy = MeasuringPolicy(device_type="cpu")
    measured = Attribution("cpu", torch.float16, {"": net})
    with measured.measuring(), policy.forward():
        (net(batch) * 3.0).sum().backward()
    (linear,) = [row for row in measured.rows() if row.op == "linear"]
    assert linear.loss_change == pytest.approx(3.0 * 2.0**-12, rel=1e-4)
    assert linear.error == pytest.approx(2.0**-12 / value, rel=1e-4)


def test_what_leaves_the_range_is_counted_and_no_error() -> None:
    net = nn.Linear(2, 2, bias=False)
    nn.init.constant_(net.weight, 300.0)
    batch = torch.tensor([[300.0, 0.0], [1e-10, 0.0], [1.0, 1.0]])
    measured = rows(net, batch, torch.float16)["linear"]
    assert measured.overflows == 2
    assert measured.vanishing == 2
    assert measured.largest == pytest.approx(90000.0)
    assert measured.error < 2.0**-11
    assert rows(net, batch, torch.bfloat16)["linear"].overflows == 0


def test_random_ops_draw_no_other_numbers() -> None:
    class Dropping(nn.Module):
        def forward(self, values: Tensor) -> Tensor:
            return functional.dropout(values, 0.5)

    values = torch.ones(64, requires_grad=True)
    torch.manual_seed(3)
    policy = MeasuringPolicy(device_type="cpu")
    with Attribution("cpu", torch.float16, {}).measuring(), policy.forward():
        measured = Dropping()(values)
    torch.manual_seed(3)
    assert torch.equal(measured, functional.dropout(values, 0.5))
