"""SAME convolutions and max-pooling against TensorFlow 1.15."""

from pathlib import Path

import pytest
import torch

from jumar.models.same_padding import SameConv2d, SameMaxPool2d
from jumar.models.tf_layout import ConvolutionKernel
from tests.parity.fixture import ParityCase


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "image_ops.npz")


def images(case: ParityCase) -> torch.Tensor:
    return torch.from_numpy(case.input("float_images").transpose(0, 3, 1, 2).copy())


@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_same_convolution_matches_the_original(case: ParityCase, kernel: int, stride: int) -> None:
    conv = SameConv2d(3, 4, kernel, stride=stride, bias=False)
    weight = ConvolutionKernel().to_torch(case.input(f"kernel{kernel}{kernel}"))
    with torch.no_grad():
        conv.weight.copy_(torch.from_numpy(weight.copy()))
        output = conv(images(case))
    assert case.check(f"op/conv_same_k{kernel}_s{stride}", output.permute(0, 2, 3, 1).numpy())


def test_same_max_pooling_matches_the_original(case: ParityCase) -> None:
    output = SameMaxPool2d()(images(case))
    assert case.check("op/max_pool_same_3_2", output.permute(0, 2, 3, 1).numpy())
