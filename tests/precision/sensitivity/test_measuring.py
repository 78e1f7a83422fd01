"""Noise in one op at a time moves the step, and nothing else does."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import jumar.precision
from jumar.ground.errors import UserError
from jumar.precision.sensitivity.measuring import Sensitivity
from tests.precision.recording.networks import Network, batch


class Shaky(nn.Module):
    """A layer whose output hardly matters, and one whose output is nearly cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.quiet = nn.Linear(8, 8)
        self.loud = nn.Linear(8, 8)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        loud = self.loud(values)
        rest = loud - loud.detach().mul(0.999)
        return 1000 * rest + 1e-4 * self.quiet(values)


def step_of(net: nn.Module, number: int = 0) -> Callable[[], torch.Tensor]:
    images, labels = batch(number)

    def step() -> torch.Tensor:
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        return loss.detach()

    return step


def measured(net: nn.Module, **options: Any) -> Sensitivity:
    return jumar.precision.noise(net, step_of(net), **options)


@pytest.fixture
def net() -> nn.Module:
    torch.manual_seed(0)
    return Network()


def test_passes_without_noise_are_bitwise_equal_and_leave_no_state(net: nn.Module) -> None:
    step = step_of(net)
    step()
    random = torch.get_rng_state()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    gradients = [
        (each.grad, each.grad.clone()) for each in net.parameters() if each.grad is not None
    ]
    result = measured(net)
    assert result.floor == (0.0, 0.0)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    after = [each.grad for each in net.parameters() if each.grad is not None]
    assert [id(each) for each in after] == [id(each) for each, _ in gradients]
    assert all(torch.equal(*pair) for pair in gradients)
    # Without putting anything back, dropout and batch norm make a difference.
    assert step() != step()
    assert not all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def test_loss_and_gradients_match_the_plain_step(net: nn.Module) -> None:
    random = torch.get_rng_state()
    result = measured(net)
    torch.set_rng_state(random)
    loss = step_of(net)()
    gradients = [each.grad for each in net.parameters() if each.grad is not None]
    assert result.loss == loss.double().item()
    assert result.gradient == pytest.approx(
        math.sqrt(sum(each.norm().item() ** 2 for each in gradients))
    )


def test_every_op_of_a_layer_has_a_row_in_the_order_of_execution(net: nn.Module) -> None:
    rows = measured(net).rows
    phases = [row.phase for row in rows]
    assert phases == sorted(phases, key=["forward", "backward"].index)
    names = [(row.layer, row.op, row.phase) for row in rows]
    assert len(set(names)) == len(names)
    assert ("conv", "aten.convolution.default", "forward") in names or any(
        op == "aten.convolution.default" for _, op, _ in names
    )
    convolution = next(row for row in rows if row.op == "aten.convolution.default")
    assert convolution.cann == "Conv2D"
    assert not [op for _, op, _ in names if op.startswith(("aten.view", "aten.t.", "aten.ones_"))]
    assert all(row.gradient > 0 for row in rows if row.phase == "backward" and row.layer)


def test_errors_of_ops_add_in_quadrature(net: nn.Module) -> None:
    result = measured(net)
    expected = math.sqrt(sum(row.gradient**2 for row in result.rows))
    assert expected / 2 < result.together[1] < 2 * expected
    by_layer = result.summed("layer")
    total = math.sqrt(sum(gradient**2 for _, gradient in by_layer.values()))
    assert total == pytest.approx(expected)
    assert [*by_layer.values()] == sorted(by_layer.values(), key=lambda each: -each[1])


def test_layer_most_sensitive_to_rounding_is_ranked_first() -> None:
    torch.manual_seed(0)
    net = Shaky()
    values, labels = torch.randn(16, 8), torch.arange(16) % 8

    def step() -> torch.Tensor:
        loss = nn.functional.cross_entropy(net(values), labels)
        loss.backward()
        return loss.detach()

    result = jumar.precision.noise(net, step, by="layer", backward=False)
    rows = {row.layer: row for row in result.rows}
    assert set(rows) == {"", "quiet", "loud"}
    assert rows["loud"].gradient > 1e3 * rows["quiet"].gradient > 0
    assert result.ranked[0].layer in ("loud", "")


def test_float16_has_an_eighth_of_bfloat16s_noise(net: nn.Module) -> None:
    rough, fine = (measured(net, dtype=dtype) for dtype in ("bfloat16", "float16"))
    assert rough.together[1] / fine.together[1] == pytest.approx(8, rel=0.5)


def test_changes_are_relative_to_loss_and_gradients(net: nn.Module) -> None:
    def larger() -> torch.Tensor:
        images, labels = batch(0)
        loss = 2**20 * nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        return loss.detach()

    plain = measured(net, by="layer", backward=False)
    scaled = jumar.precision.noise(net, larger, by="layer", backward=False)
    rows = {row.layer: row for row in scaled.rows}
    for row in plain.rows:
        if row.layer:
            assert rows[row.layer].gradient == pytest.approx(row.gradient, rel=1e-3)
            assert rows[row.layer].loss == pytest.approx(row.loss, rel=1e-2, abs=1e-6)


def test_seed_determines_the_noise(net: nn.Module) -> None:
    first, again, other = (measured(net, by="op", seed=seed) for seed in (1, 1, 2))
    assert [row.gradient for row in first.rows] == [row.gradient for row in again.rows]
    assert [row.gradient for row in first.rows] != [row.gradient for row in other.rows]


def test_units_can_be_larger_and_smaller(net: nn.Module) -> None:
    results = {by: measured(net, by=by) for by in ("group", "layer", "op", "call")}
    counts = {by: len(result.rows) for by, result in results.items()}
    assert counts["layer"] < counts["op"] < counts["group"] < counts["call"]
    assert len({sum(row.calls for row in each.rows) for each in results.values()}) == 1
    assert all(row.calls == 1 for row in results["call"].rows)
    for by, result in results.items():
        assert result.passes == counts[by] + 3
    alone = measured(net, backward=False)
    assert {row.phase for row in alone.rows} == {"forward"}


def test_number_of_passes_is_announced(net: nn.Module) -> None:
    lines: list[str] = []
    result = measured(net, by="layer", say=lines.append)
    assert lines[0].startswith(f"{result.passes} passes forward and backward, about ")


def test_non_deterministic_step_is_detected(net: nn.Module) -> None:
    step, count = step_of(net), [0]

    def shaken() -> torch.Tensor:
        count[0] += 1
        with torch.no_grad():
            next(net.parameters()).mul_(1 + 1e-3 * count[0])
        return step()

    assert jumar.precision.noise(net, shaken, by="layer").floor[1] > 0


def test_unmeasurable_steps_are_refused(net: nn.Module) -> None:
    with pytest.raises(UserError, match="the step has a loss of nan"):
        jumar.precision.noise(net, lambda: step_of(net)() * math.nan)
    with pytest.raises(UserError, match="unknown dtype 'float8'"):
        measured(net, dtype="float8")
    with pytest.raises(UserError, match="unknown unit 'steps'"):
        measured(net, by="steps")
