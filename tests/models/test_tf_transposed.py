from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.models.tf_transposed import conv_transpose_same
from tests.parity.fixture import ParityCase


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (3, 2), (3, 3), (4, 2)])
def test_results_match_tensorflow(parity: Path, kernel: int, stride: int) -> None:
    case = ParityCase(parity / "image_ops.npz")
    images = torch.from_numpy(case.input("float_images")).permute(0, 3, 1, 2)
    weight = torch.from_numpy(case.input("kernel_t" if kernel == 3 else "kernel_t44"))
    made = conv_transpose_same(images, weight.permute(3, 2, 0, 1), stride=stride)
    key = f"op/conv_transpose_same_k{kernel}_s{stride}"
    assert case.check(key, made.permute(0, 2, 3, 1).numpy())


@settings(max_examples=30)
@given(
    size=st.integers(1, 9),
    kernel=st.integers(1, 5),
    stride=st.integers(1, 3),
)
def test_layer_is_the_transpose_of_a_same_padded_convolution(
    size: int, kernel: int, stride: int
) -> None:
    """<conv(x), y> = <x, transposed(y)>, which is how TensorFlow defines it."""
    if stride > kernel:
        return
    torch.manual_seed(size + 10 * kernel + 100 * stride)
    weight = torch.randn(2, 3, kernel, kernel, dtype=torch.float64)
    small = torch.randn(1, 2, size, size, dtype=torch.float64)
    large = torch.randn(1, 3, size * stride, size * stride, dtype=torch.float64)
    total = kernel - stride
    padded = torch.nn.functional.pad(large, (total // 2, total - total // 2) * 2)
    forward = torch.nn.functional.conv2d(padded, weight, stride=stride)
    made = conv_transpose_same(small, weight, stride=stride)
    assert made.shape == large.shape
    torch.testing.assert_close((forward * small).sum(), (made * large).sum())


def test_strides_with_gaps_are_refused() -> None:
    with pytest.raises(ValueError, match="gaps"):
        conv_transpose_same(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 1, 1), stride=2)
