import numpy as np
import pytest
import torch

from jumar.data.pixels.resize import resize
from jumar.models.legacy_bilinear import enlarge


@pytest.mark.parametrize("factor", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("size", [(1, 1), (2, 5), (7, 4)])
def test_maps_are_enlarged_like_tensorflows_resize(size: tuple[int, int], factor: int) -> None:
    maps = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(1))
    result = enlarge(maps, factor)
    assert result.shape == (2, 3, size[0] * factor, size[1] * factor)
    theirs = resize(maps.permute(0, 2, 3, 1).numpy(), tuple(result.shape[2:]))
    np.testing.assert_allclose(result.permute(0, 2, 3, 1).numpy(), theirs, atol=1e-6)


def test_gradient_uses_the_same_weights() -> None:
    maps = torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: enlarge(x, 4), (maps,))
