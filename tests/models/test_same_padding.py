import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.models.same_padding import SameConv2d, SameMaxPool2d, same_padding


def windows(image: torch.Tensor, kernel: int, stride: int, outside: float) -> torch.Tensor:
    """All windows of SAME padding, one by one: [N, C, rows, columns, kernel, kernel]."""
    height, width = image.shape[2:]
    rows, columns = math.ceil(height / stride), math.ceil(width / stride)
    top = max((rows - 1) * stride + kernel - height, 0) // 2
    left = max((columns - 1) * stride + kernel - width, 0) // 2
    result = torch.full((*image.shape[:2], rows, columns, kernel, kernel), outside)
    result = result.to(image.dtype)
    for row in range(rows):
        for column in range(columns):
            for i in range(kernel):
                for j in range(kernel):
                    y, x = row * stride - top + i, column * stride - left + j
                    if 0 <= y < height and 0 <= x < width:
                        result[:, :, row, column, i, j] = image[:, :, y, x]
    return result


def test_same_padding_puts_the_odd_pixel_after() -> None:
    assert same_padding(224, 3, 2) == (0, 1)
    assert same_padding(57, 3, 2) == (1, 1)
    assert same_padding(56, 3, 1) == (1, 1)
    assert same_padding(56, 1, 2) == (0, 0)


@settings(max_examples=40)
@given(
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    groups=st.sampled_from([1, 2]),
)
def test_same_convolution_equals_the_sum_over_every_window(
    height: int, width: int, kernel: int, stride: int, groups: int
) -> None:
    torch.manual_seed(0)
    conv = SameConv2d(4, 6, kernel, stride=stride, groups=groups).double()
    image = torch.randn(2, 4, height, width, dtype=torch.float64)
    parts = windows(image, kernel, stride, 0.0).unflatten(1, (groups, 4 // groups))
    weight = conv.weight.unflatten(0, (groups, 6 // groups))
    expected = torch.einsum("ngcyxij,gocij->ngoyx", parts, weight).flatten(1, 2)
    assert conv.bias is not None
    torch.testing.assert_close(conv(image), expected + conv.bias[:, None, None])


@settings(max_examples=20)
@given(
    size=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    kernel=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
def test_windows_and_strides_may_differ_per_axis(
    size: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int]
) -> None:
    torch.manual_seed(0)
    conv = SameConv2d(2, 3, kernel, stride=stride).double()
    image = torch.randn(2, 2, *size, dtype=torch.float64)
    rows = same_padding(size[0], kernel[0], stride[0])
    columns = same_padding(size[1], kernel[1], stride[1])
    padded = torch.nn.functional.pad(image, (*columns, *rows))
    expected = torch.nn.functional.conv2d(padded, conv.weight, conv.bias, stride)
    assert expected.shape[2:] == tuple(-(-n // step) for n, step in zip(size, stride, strict=True))
    torch.testing.assert_close(conv(image), expected)


@pytest.mark.parametrize("height", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("width", [1, 2, 5, 6])
def test_same_max_pooling_equals_the_largest_of_every_window(height: int, width: int) -> None:
    torch.manual_seed(0)
    image = torch.randn(2, 3, height, width) - 2
    expected = windows(image, 3, 2, -math.inf).amax((-1, -2))
    torch.testing.assert_close(SameMaxPool2d()(image), expected, rtol=0, atol=0)


def test_padded_convolution_stays_in_channels_last() -> None:
    image = torch.randn(2, 4, 8, 8).contiguous(memory_format=torch.channels_last)
    conv = SameConv2d(4, 4, 3, stride=2).to(memory_format=torch.channels_last)
    assert conv(image).is_contiguous(memory_format=torch.channels_last)
