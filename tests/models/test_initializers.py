import math

import pytest
import torch

from jumar.models.initializers import slim_variance_scaling_, variance_scaling_


@pytest.mark.parametrize("shape", [(512, 64, 3, 3), (700, 900)])
def test_variance_scaling_has_variance_one_over_fan_in_truncated_at_two_deviations(
    shape: tuple[int, ...],
) -> None:
    torch.manual_seed(0)
    weight = torch.empty(shape)
    variance_scaling_(weight)
    fan_in = math.prod(shape[1:])
    assert weight.double().square().mean().item() * fan_in == pytest.approx(1.0, abs=0.01)
    cut = 2 * math.sqrt(1 / fan_in) / 0.8796
    assert 0.99 * cut < weight.abs().max().item() <= cut


def test_slims_variance_scaling_has_variance_two_over_fan_in_truncated_at_two_deviations() -> None:
    torch.manual_seed(0)
    weight = torch.empty(512, 64, 3, 3)
    slim_variance_scaling_(weight)
    fan_in = 64 * 9
    # TF-Slim's 1.3 is 1 / 0.8796 ** 2 = 1.2925, rounded.
    expected = 2 * 1.3 / 1.2925
    assert weight.double().square().mean().item() * fan_in == pytest.approx(expected, abs=0.01)
    cut = 2 * math.sqrt(2.6 / fan_in)
    assert 0.99 * cut < weight.abs().max().item() <= cut
