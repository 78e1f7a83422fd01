"""What the ops of a step take at least."""

import pytest
import torch
from torch import nn

from on_accelerator.floor import floor_of

RATES = {"float32": 1e9, "bfloat16": 4e9, "copy": 1e6}


def test_matrix_product_time_is_operations_over_peak_rate() -> None:
    left, right = torch.ones(30, 40), torch.ones(40, 50)
    floor = floor_of(lambda: left @ right, {**RATES, "copy": 1e12})
    assert floor.flops == 2 * 30 * 40 * 50
    assert floor.seconds == pytest.approx(floor.flops / 1e9)


def test_peak_rate_depends_on_the_dtype() -> None:
    matrix = torch.ones(64, 64, dtype=torch.bfloat16)
    floor = floor_of(lambda: matrix @ matrix, {**RATES, "copy": 1e12})
    assert floor.seconds == pytest.approx(2 * 64**3 / 4e9)


def test_addition_time_counts_bytes_read_and_written() -> None:
    first, second = torch.ones(1000), torch.ones(1000)
    floor = floor_of(lambda: first + second, RATES)
    assert (floor.flops, floor.seconds) == (0, pytest.approx(3 * 4000 / 1e6))


def test_in_place_writes_count_once_and_views_not_at_all() -> None:
    tensor = torch.ones(10, 100)
    floor = floor_of(lambda: tensor.t().add_(1.0), RATES)
    assert floor.seconds == pytest.approx(4000 / 1e6)


def test_backward_pass_is_counted() -> None:
    layer, batch = nn.Linear(32, 64, bias=False), torch.ones(8, 32, requires_grad=True)
    forward = 2 * 8 * 32 * 64
    floor = floor_of(lambda: layer(batch).sum().backward(), RATES)
    assert floor.flops == 3 * forward


def test_without_rates_only_operations_are_counted() -> None:
    matrix = torch.ones(4, 4)
    assert floor_of(lambda: matrix @ matrix, {}).seconds == 0
