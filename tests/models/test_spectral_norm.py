import pytest
import torch
from torch import nn

from jumar.models.spectral_norm import (
    SpectralConv2d,
    SpectralConvTranspose2d,
    SpectralLinear,
    as_matrix,
    power_iteration,
)


def layers() -> list[nn.Module]:
    torch.manual_seed(3)
    return [
        SpectralConv2d(4, 6, 3, bias=False),
        SpectralConvTranspose2d(4, 6, 3, stride=2),
        SpectralLinear(4, 6),
    ]


@pytest.mark.parametrize("layer", layers(), ids=lambda layer: type(layer).__name__)
def test_after_many_forwards_the_largest_singular_value_is_one(layer: nn.Module) -> None:
    shape = (2, 4) if isinstance(layer, SpectralLinear) else (2, 4, 8, 8)
    for _ in range(60):
        layer(torch.randn(shape))
    layer.eval()
    weight = layer.normalized_weight()
    assert torch.linalg.matrix_norm(as_matrix(weight), 2).item() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("layer", layers(), ids=lambda layer: type(layer).__name__)
def test_vector_is_as_long_as_the_last_axis_of_the_tensorflow_kernel(layer: nn.Module) -> None:
    inputs_are_last = isinstance(layer, SpectralConvTranspose2d)
    assert layer.u.shape == ((4,) if inputs_are_last else (6,))


@pytest.mark.parametrize("moves", [False, True])
def test_evaluation_updates_the_vector_only_in_original_mode(moves: bool) -> None:
    layer = SpectralConv2d(3, 4, 3, bias=False).eval()
    layer.moves_in_evaluation = moves
    before = layer.u.clone()
    with torch.inference_mode():
        layer(torch.randn(1, 3, 4, 4))
    assert torch.equal(layer.u, before) != moves
    layer.train()(torch.randn(1, 3, 4, 4)).sum().backward()
    assert layer.weight.grad is not None


def test_memory_formats_give_the_same_estimate() -> None:
    layer = SpectralConv2d(5, 7, 3, bias=False)
    weight = layer.weight.detach()
    left, right = power_iteration(weight, layer.u)
    other_left, other_right = power_iteration(
        weight.contiguous(memory_format=torch.channels_last), layer.u
    )
    torch.testing.assert_close(left, other_left)
    assert right.norm().item() == pytest.approx(other_right.norm().item(), abs=1e-6)


def test_gradient_treats_the_vectors_as_constants() -> None:
    layer = SpectralLinear(4, 6).double().eval()
    left, right = power_iteration(layer.weight, layer.u)
    layer.normalized_weight()[0, 0].backward()
    weight = layer.weight.detach().requires_grad_()
    (weight / torch.einsum("i,ij,j", left, weight, right))[0, 0].backward()
    assert layer.weight.grad is not None
    assert weight.grad is not None
    torch.testing.assert_close(layer.weight.grad, weight.grad)


def test_estimate_is_unaffected_by_low_precision() -> None:
    layer = SpectralConv2d(8, 8, 3, bias=False)
    images, start = torch.randn(1, 8, 4, 4), layer.u.clone()
    layer(images)
    moved = layer.u.clone()
    layer.u.copy_(start)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        layer(images)
    assert torch.equal(layer.u, moved)
