"""TF-Slim's convolution: its parts, its start, its names."""

import math

import pytest
import torch
from torch import nn

from jumar.models.pointwise import PointwiseConv2d
from jumar.models.slim_convolution import SlimConv2d, decays, detector_names, set_norm_decay
from jumar.models.tf_layout import ConvolutionKernel, TfVariable, Unchanged


def test_convolution_has_a_norm_or_a_bias_and_a_relu_by_default() -> None:
    normed = SlimConv2d(3, 4, 3, stride=2, norm=True)
    plain = SlimConv2d(3, 4, 5, norm=False, relu=False)
    assert isinstance(normed.conv, nn.Conv2d)
    assert (normed.conv.stride, normed.conv.padding, normed.conv.bias) == ((2, 2), (1, 1), None)
    assert isinstance(normed.norm, nn.BatchNorm2d)
    assert (normed.norm.eps, normed.norm.momentum) == (1e-5, 0.003)
    assert isinstance(normed.relu, nn.ReLU)
    assert (plain.conv.stride, plain.conv.padding) == ((1, 1), (2, 2))
    assert plain.norm is None
    assert plain.relu is None
    assert plain.conv.bias is not None
    x = torch.randn(2, 3, 6, 6)
    torch.testing.assert_close(
        plain(x), nn.functional.conv2d(x, plain.conv.weight, plain.conv.bias, padding=2)
    )
    convolved = nn.functional.conv2d(x, normed.conv.weight, stride=2, padding=1)
    mean, variance = convolved.mean((0, 2, 3)), convolved.var((0, 2, 3), correction=0)
    expected = (convolved - mean[:, None, None]) / (variance + 1e-5).sqrt()[:, None, None]
    torch.testing.assert_close(normed(x), expected.relu(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("product", [True, False])
def test_one_pixel_kernel_may_be_a_matrix_product(product: bool) -> None:
    layer = SlimConv2d(3, 4, 1, stride=2, norm=False, matrix_product=product)
    assert isinstance(layer.conv, PointwiseConv2d)
    assert layer.conv.matrix_product is product
    assert layer.conv.stride == (2, 2)
    assert layer.conv.bias is not None
    assert SlimConv2d(3, 4, 1, norm=True).conv.bias is None
    default = SlimConv2d(3, 4, 1, norm=True).conv
    assert isinstance(default, PointwiseConv2d)
    assert default.matrix_product is True
    assert default.stride == (1, 1)


@pytest.mark.parametrize("kernel", [1, 3])
def test_kernels_start_within_glorot_bounds_and_biases_at_zero(kernel: int) -> None:
    torch.manual_seed(0)
    layer = SlimConv2d(40, 60, kernel, norm=False)
    limit = math.sqrt(6 / (kernel**2 * 100))
    assert 0.98 * limit < layer.conv.weight.abs().max().item() <= limit
    assert layer.conv.bias is not None
    assert not layer.conv.bias.any()


def test_names_match_slims_scopes() -> None:
    def variable(tf_name: str, name: str, layout: object = None) -> TfVariable:
        return TfVariable(tf_name=tf_name, name=name, layout=layout or Unchanged())  # type: ignore[arg-type]

    kernel = variable("a/weights", "b.conv.weight", ConvolutionKernel())
    assert SlimConv2d(1, 1, 3, norm=False).tf_variables("a", "b") == [
        kernel,
        variable("a/biases", "b.conv.bias"),
    ]
    assert SlimConv2d(1, 1, 3, norm=True).tf_variables("a", "b") == [
        kernel,
        variable("a/BatchNorm/gamma", "b.norm.weight"),
        variable("a/BatchNorm/beta", "b.norm.bias"),
        variable("a/BatchNorm/moving_mean", "b.norm.running_mean"),
        variable("a/BatchNorm/moving_variance", "b.norm.running_var"),
    ]
    names = detector_names([kernel])
    assert list(names.variables) == [kernel]
    assert names.averages == "beside"
    assert [optimizer.powers for optimizer in names.optimizers] == [("beta1_power", "beta2_power")]
    assert list(names.ignored) == [r"^resnet_v1_50/(logits/|mean_rgb$)"]


def test_weight_decay_applies_to_kernels_and_norms_keep_their_constants() -> None:
    network = nn.Sequential(SlimConv2d(1, 2, 3, norm=True), SlimConv2d(2, 1, 1, norm=False))
    decaying = [name for name, p in network.named_parameters() if decays(name, p)]
    assert decaying == ["0.conv.weight", "1.conv.weight"]
    set_norm_decay(network, 0.9)
    norm = network[0].norm
    assert isinstance(norm, nn.BatchNorm2d)
    assert norm.momentum == pytest.approx(0.1)
