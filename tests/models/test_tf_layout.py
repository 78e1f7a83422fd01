import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumar.models.tf_layout import (
    ConvolutionKernel,
    DenseKernel,
    DenseKernelAfterFlatten,
    Layout,
    TfVariable,
    Unchanged,
)

small = st.integers(min_value=1, max_value=4)


def variable(layout: Layout) -> TfVariable:
    return TfVariable(tf_name="theirs", name="ours", layout=layout)


@st.composite
def layouts_with_shapes(draw: st.DrawFn) -> tuple[Layout, tuple[int, ...]]:
    """A layout and a shape of TensorFlow that it takes."""
    a, b, c, d = (draw(small) for _ in range(4))
    return draw(
        st.sampled_from(
            [
                (Unchanged(), (a,)),
                (ConvolutionKernel(), (a, b, c, d)),
                (DenseKernel(), (a, b)),
                (DenseKernelAfterFlatten(height=a, width=b, channels=c), (a * b * c, d)),
            ]
        )
    )


@given(layouts_with_shapes())
def test_to_torch_and_back_is_the_same_array(case: tuple[Layout, tuple[int, ...]]) -> None:
    layout, shape = case
    original = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    tensor = variable(layout).to_torch(original)
    assert tensor.is_contiguous()
    np.testing.assert_array_equal(variable(layout).to_tensorflow(tensor), original)


def test_convolution_kernel_goes_from_height_width_in_out_to_out_in_height_width() -> None:
    original = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    tensor = variable(ConvolutionKernel()).to_torch(original)
    assert tensor.shape == (5, 4, 2, 3)
    assert tensor[4, 1, 0, 2] == original[0, 2, 1, 4]


def test_dense_kernel_after_flatten_gives_the_output_of_the_original() -> None:
    height, width, channels, units = 2, 3, 4, 5
    random = np.random.default_rng(0)
    images = random.standard_normal((7, height, width, channels))
    kernel = random.standard_normal((height * width * channels, units))
    layout = DenseKernelAfterFlatten(height=height, width=width, channels=channels)
    weight = variable(layout).to_torch(kernel)
    maps = torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
    ours = torch.nn.functional.linear(maps.flatten(1), weight)
    np.testing.assert_allclose(ours.numpy(), images.reshape(7, -1) @ kernel, rtol=1e-12)


def test_imported_tensor_does_not_share_memory_with_the_array() -> None:
    original = np.zeros(3, dtype=np.float32)
    tensor = variable(Unchanged()).to_torch(original)
    original[0] = 1
    assert tensor[0] == 0


@pytest.mark.parametrize(
    ("ours", "theirs"), [(torch.bfloat16, np.float32), (torch.float16, np.float16)]
)
def test_exported_types_are_those_that_numpy_has(ours: torch.dtype, theirs: type) -> None:
    exported = variable(DenseKernel()).to_tensorflow(torch.ones(2, 3, dtype=ours))
    assert exported.dtype == theirs
    assert exported.shape == (3, 2)
