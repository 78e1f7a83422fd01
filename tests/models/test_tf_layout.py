from dataclasses import FrozenInstanceError, fields, replace

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
    TfCounting,
    TfNames,
    TfOptimizer,
    TfVariable,
    Unchanged,
    adam_state,
    batch_norm_variables,
    convolution_variables,
    dense_variables,
    momentum_state,
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
def test_conversion_to_torch_and_back_round_trips(case: tuple[Layout, tuple[int, ...]]) -> None:
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
def test_exported_dtypes_exist_in_numpy(ours: torch.dtype, theirs: type) -> None:
    exported = variable(DenseKernel()).to_tensorflow(torch.ones(2, 3, dtype=ours))
    assert exported.dtype == theirs
    assert exported.shape == (3, 2)


@pytest.mark.parametrize(
    ("layout", "theirs", "ours"),
    [
        (Unchanged(), (2, 3), (2, 3)),
        (DenseKernel(), (2, 3), (3, 2)),
        (ConvolutionKernel(), (2, 3, 4, 5), (5, 4, 2, 3)),
        (DenseKernelAfterFlatten(height=2, width=3, channels=4), (24, 5), (5, 24)),
    ],
)
def test_layout_permutes_axes_and_compares_by_kind(
    layout: Layout, theirs: tuple[int, ...], ours: tuple[int, ...]
) -> None:
    assert layout.to_torch(np.zeros(theirs)).shape == ours
    assert layout.to_tensorflow(np.zeros(ours)).shape == theirs
    again = replace(layout)
    assert again == layout
    assert len({again, layout}) == 1


def test_optimizer_state_is_named_as_in_tensorflow() -> None:
    assert adam_state() == TfOptimizer(
        kind="adam",
        slots={"exp_avg": "/Adam", "exp_avg_sq": "/Adam_1"},
        powers=("beta1_power", "beta2_power"),
        trains="",
    )
    assert adam_state("Mine", number=2, trains="^g/", scope="train") == TfOptimizer(
        kind="adam",
        slots={"exp_avg": "/Mine", "exp_avg_sq": "/Mine_1"},
        powers=("train/beta1_power_2", "train/beta2_power_2"),
        trains="^g/",
    )
    assert momentum_state() == TfOptimizer(
        kind="momentum", slots={"momentum_buffer": "/Momentum"}, powers=None, trains=""
    )


def test_layer_variables_are_named_as_in_tensorflow() -> None:
    def names(variables: list[TfVariable]) -> list[tuple[str, str, Layout]]:
        return [(each.tf_name, each.name, each.layout) for each in variables]

    kernel = ("a/kernel", "b.weight", ConvolutionKernel())
    bias = ("a/bias", "b.bias", Unchanged())
    assert names(convolution_variables("a", "b", bias=False)) == [kernel]
    assert names(convolution_variables("a", "b", bias=True)) == [kernel, bias]
    assert names(dense_variables("a", "b")) == [("a/kernel", "b.weight", DenseKernel()), bias]
    flat = DenseKernelAfterFlatten(height=1, width=2, channels=3)
    assert names(dense_variables("a", "b", layout=flat)) == [("a/kernel", "b.weight", flat), bias]
    assert names(batch_norm_variables("a", "b")) == [
        ("a/gamma", "b.weight", Unchanged()),
        ("a/beta", "b.bias", Unchanged()),
        ("a/moving_mean", "b.running_mean", Unchanged()),
        ("a/moving_variance", "b.running_var", Unchanged()),
    ]


def test_variable_has_the_first_optimizer_that_trains_it() -> None:
    one, other = adam_state(trains="^d/"), adam_state(number=1, trains="^g/")
    names = TfNames(variables=(), optimizers=(one, other))

    def of(tf_name: str) -> TfOptimizer | None:
        return names.optimizer_of(TfVariable(tf_name=tf_name, name="x", layout=Unchanged()))

    assert (of("d/g/kernel"), of("g/kernel"), of("e/g/kernel")) == (one, other, None)
    everything = TfNames(variables=(), optimizers=(momentum_state(), one))
    variable = TfVariable(tf_name="d/kernel", name="x", layout=Unchanged())
    assert everything.optimizer_of(variable) == momentum_state()


def test_names_include_averages_and_steps_count_by_one_by_default() -> None:
    names = TfNames(variables=())
    assert (names.averages, names.averaged) == ("beside", "")
    assert (names.renamings, names.ignored, names.optimizers) == ((), (), ())
    assert names.counting == TfCounting(global_step=1, first_number=0)
    records = (names, names.counting, momentum_state(), variable(Unchanged()))
    for record in (*records, DenseKernelAfterFlatten(height=1, width=1, channels=1)):
        first = fields(record)[0].name
        with pytest.raises(FrozenInstanceError):
            setattr(record, first, None)
        with pytest.raises(TypeError, match="positional"):
            type(record)(*range(len(fields(record))))
    for method in ("to_torch", "to_tensorflow"):
        half = type("Half", (Layout,), {method: lambda self, array: array})
        with pytest.raises(TypeError, match="abstract"):
            half()
