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
def test_errors_match_rounding(batch: Tensor, low: torch.dtype) -> None:
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
    for ours, exact in zip(one.parameters(), other.parameters(), strict=True):
        assert ours.grad is not None
        assert exact.grad is not None
        assert torch.equal(ours.grad, exact.grad)


def test_torchs_autocast_lists_are_restored(batch: Tensor) -> None:
    rows(Net(), batch, torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert functional.linear(batch, torch.eye(6)).dtype == torch.bfloat16


def test_change_of_the_loss_is_error_times_gradient() -> None:
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


def test_out_of_range_values_are_counted_separately_from_errors() -> None:
    net = nn.Linear(2, 2, bias=False)
    nn.init.constant_(net.weight, 300.0)
    batch = torch.tensor([[300.0, 0.0], [1e-10, 0.0], [1.0, 1.0]])
    measured = rows(net, batch, torch.float16)["linear"]
    assert measured.overflows == 2
    assert measured.vanishing == 2
    assert measured.largest == pytest.approx(90000.0)
    assert measured.error < 2.0**-11
    assert rows(net, batch, torch.bfloat16)["linear"].overflows == 0


def test_random_ops_draw_the_same_numbers() -> None:
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


def test_calls_of_an_op_in_a_layer_add_up_to_one_row() -> None:
    layer = nn.Linear(1, 1, bias=False)
    nn.init.constant_(layer.weight, 1.0)
    value = 1 + 2.0**-12
    measured = Attribution("cpu", torch.float16, {"a.b": layer})
    policy = MeasuringPolicy(device_type="cpu")
    with measured.measuring(), policy.forward():
        first, second = layer(torch.tensor([[value], [2.0]])), layer(torch.tensor([[-4.0]]))
        outside = torch.cat([first, second]) * 3.0
        outside.sum().backward()
    rows = {(row.op, row.layer): row for row in measured.rows()}
    assert list(rows) == [("linear", "a.b"), ("cat", ""), ("mul.Tensor", ""), ("sum", "")]
    error = 2.0**-12
    assert rows["linear", "a.b"] == OpEffect(
        op="linear",
        layer="a.b",
        calls=2,
        error=pytest.approx(error / (value**2 + 4 + 16) ** 0.5),  # type: ignore[arg-type]
        loss_change=pytest.approx(3 * error),  # type: ignore[arg-type]
        largest=4.0,
        overflows=0,
        vanishing=0,
        elements=3,
    )
    # Lists of tensors are rounded too.
    assert rows["cat", ""].error == pytest.approx(error / (value**2 + 4 + 16) ** 0.5)
    assert rows["mul.Tensor", ""].largest == 12.0
    assert (rows["sum", ""].calls, rows["sum", ""].elements) == (1, 1)


@pytest.mark.parametrize(
    ("low", "smallest", "below", "largest"),
    [
        (torch.float16, 2.0**-24, 2.0**-24 - 2.0**-48, 65504.0),
        (torch.bfloat16, 2.0**-133, 2.0**-133 - 2.0**-149, 3.38953139e38),
    ],
)
def test_range_ends_at_the_smallest_and_largest_number(
    low: torch.dtype, smallest: float, below: float, largest: float
) -> None:
    values = torch.tensor([smallest, below, 0.0, -smallest / 2, largest, float("inf")])
    measured = Attribution("cpu", low, {})
    policy = MeasuringPolicy(device_type="cpu")
    with measured.measuring(), policy.forward():
        torch.relu(values)
        torch.abs(values)
        torch.abs(torch.tensor([largest * 1.002]))
    rows = {row.op: row for row in measured.rows()}
    assert (rows["relu"].vanishing, rows["abs"].vanishing) == (1, 2)
    assert (rows["relu"].overflows, rows["abs"].overflows) == (0, 1)
    assert rows["abs"].calls == 2


def test_running_statistics_are_updated_once(batch: Tensor) -> None:
    norm, plain = nn.BatchNorm2d(3), nn.BatchNorm2d(3)
    measured = Attribution("cpu", torch.bfloat16, {"norm": norm})
    with measured.measuring(), MeasuringPolicy(device_type="cpu").forward():
        norm(batch)
    plain(batch)
    for name, tensor in plain.state_dict().items():
        assert torch.equal(norm.state_dict()[name], tensor), name
    (row,) = measured.rows()
    assert (row.op, row.layer, row.elements) == ("batch_norm", "norm", batch.numel())
    assert 0 < row.error < 2.0**-7


def test_op_with_integer_or_low_precision_inputs_is_computed_in_float32() -> None:
    measured = Attribution("cpu", torch.float16, {})
    with measured.measuring(), MeasuringPolicy(device_type="cpu").forward():
        product = torch.mm(torch.eye(2).half(), torch.eye(2).bfloat16())
        whole = torch.abs(torch.tensor([-3]))
    assert (product.dtype, whole.dtype) == (torch.float32, torch.int64)
    rows = {row.op: row for row in measured.rows()}
    assert (rows["mm"].largest, rows["mm"].error, rows["mm"].elements) == (1.0, 0.0, 4)
    assert (rows["abs"].largest, rows["abs"].calls, rows["abs"].elements) == (0.0, 1, 0)
