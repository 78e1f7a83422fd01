import copy

import pytest
import torch

from jumar.models.pointwise import PointwiseConv2d


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (5, 4)])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_matrix_product_has_the_convolutions_output_and_gradients(
    size: tuple[int, int], stride: int, bias: bool
) -> None:
    torch.manual_seed(0)
    product = PointwiseConv2d(6, 8, stride=stride, bias=bias).double()
    product = product.to(memory_format=torch.channels_last)
    convolution = copy.deepcopy(product)
    convolution.matrix_product = False
    image = torch.randn(3, 6, *size, dtype=torch.float64)
    image = image.contiguous(memory_format=torch.channels_last)
    results: list[list[torch.Tensor]] = []
    for layer in (product, convolution):
        leaf = image.clone().requires_grad_()
        output = layer(leaf)
        output.square().sum().backward()
        assert leaf.grad is not None
        assert layer.weight.grad is not None
        assert output.is_contiguous(memory_format=torch.channels_last)
        results.append([output, leaf.grad, layer.weight.grad])
        if layer.bias is not None:
            assert layer.bias.grad is not None
            results[-1].append(layer.bias.grad)
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_weight_gradient_has_the_strides_of_the_weight() -> None:
    """Otherwise DistributedDataParallel copies every gradient, with a warning."""
    layer = PointwiseConv2d(6, 8).to(memory_format=torch.channels_last)
    image = torch.randn(3, 6, 4, 4).contiguous(memory_format=torch.channels_last)
    layer(image).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.stride() == layer.weight.stride()


def test_operators_are_convolutions_on_request_or_without_channels_last() -> None:
    image = torch.randn(3, 6, 4, 4)
    rows = image.contiguous(memory_format=torch.channels_last)

    def operators(layer: PointwiseConv2d, image: torch.Tensor) -> set[str]:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            layer(image)
        return {event.key for event in profile.key_averages()}

    assert "aten::linear" in operators(PointwiseConv2d(6, 8), rows)
    assert "aten::conv2d" in operators(PointwiseConv2d(6, 8), image)
    assert "aten::conv2d" in operators(PointwiseConv2d(6, 8, matrix_product=False), rows)


@pytest.mark.parametrize(("side", "stride"), [(1, 1), (2, 2), (4, 2), (4, 1)])
def test_images_share_one_product_instead_of_a_copy_of_the_weight_each(
    side: int, stride: int
) -> None:
    layer = PointwiseConv2d(6, 8, stride=stride).to(memory_format=torch.channels_last).bfloat16()
    image = torch.randn(3, 6, side, side, dtype=torch.bfloat16)
    image = image.contiguous(memory_format=torch.channels_last)
    with torch.no_grad(), torch.profiler.profile() as profile:
        layer(image)
    called = {event.key for event in profile.key_averages()}
    assert "aten::mm" in called
    assert "aten::bmm" not in called
