"""Operations and bytes of ops, by hand from the definitions of the ops."""

import numpy as np
import pytest

from jumar.profiling.views.op_costs import Cost, cost, dtypes_of, family


def test_dtype_names_match_msprof() -> None:
    assert dtypes_of("FLOAT;DT_BF16; int8") == ["FLOAT", "BF16", "INT8"]
    assert dtypes_of(None) == [""]


_NUMPY = {
    "DOUBLE": np.float64,
    "INT64": np.int64,
    "UINT64": np.uint64,
    "COMPLEX64": np.complex64,
    "COMPLEX128": np.complex128,
    "FLOAT": np.float32,
    "FLOAT32": np.float32,
    "INT32": np.int32,
    "UINT32": np.uint32,
    "FLOAT16": np.float16,
    "BF16": np.float16,
    "BFLOAT16": np.float16,
    "INT16": np.int16,
    "UINT16": np.uint16,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "BOOL": np.bool_,
}


@pytest.mark.parametrize("dtype", _NUMPY)
def test_dtype_sizes_match_numpy(dtype: str) -> None:
    size = np.dtype(_NUMPY[dtype]).itemsize
    assert cost("Relu", "10", dtype, "ND", "10", dtype) == Cost(10.0, 20.0 * size, False, dtype)


def test_missing_or_unknown_dtype_is_that_of_the_preceding_tensor() -> None:
    assert cost("Add", "10;20;30", "FLOAT16;STRING", None, "5", "INT8").bytes == 2 * 60 + 5
    assert cost("Add", "10;20", "STRING", None, "5", None).bytes == 4 * 35
    # Without outputs as much is written as the largest input has.
    assert cost("Add", "10;;20", "INT8;DOUBLE", None, None, None).bytes == 10 + 8 + 8 * 20 + 20


def test_op_without_shapes_or_from_a_custom_library_has_no_cost() -> None:
    assert cost("Add", None, "FLOAT", None, None, None) == Cost(None, None, False, "FLOAT")
    assert cost("Add", ";", "BF16", None, ";", "BF16") == Cost(None, None, False, "BF16")
    assert cost("own::mm", "4,4;4,4", "BF16", None, "4,4", "BF16") == Cost(
        None, None, False, "BF16"
    )
    assert cost("aten::add", "4,4;4,4", "BF16", None, "4,4", "BF16") == Cost(
        16.0, 96.0, False, "BF16"
    )
    assert cost(None, "", "FLOAT", None, "4", "FLOAT") == Cost(4.0, 20.0, False, "FLOAT")
    assert cost("Relu", "7", "FLOAT", None, "", "FLOAT") == Cost(7.0, 56.0, False, "FLOAT")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("MatMulV2", "matrix"),
        ("aten::mm", "matrix"),
        ("aten::addmm", "matrix"),
        ("_grouped_matmul", "matrix"),
        ("ampere_sgemm_128", "matrix"),
        ("mmx", ""),
        ("aten::convolution", "convolution"),
        ("mkldnn_convolution", "convolution"),
        ("Conv3D", "convolution"),
        ("DepthwiseConv2D", "convolution"),
        ("FlashAttentionScoreGrad", "attention"),
        ("aten::_scaled_dot_product_flash_attention", "attention"),
        ("own::matmul", ""),
        ("Relu", ""),
    ],
)
def test_family_of_an_op_follows_from_its_type(kind: str, expected: str) -> None:
    assert family(kind) == expected
    assert cost(kind, "2,2;2,2", "FLOAT", None, "2,2", "FLOAT").cube == bool(expected)


@pytest.mark.parametrize(
    ("kind", "inputs", "formats", "outputs", "flops"),
    [
        ("mm", "4,5;5,6", None, None, 2 * 4 * 5 * 6),
        ("mm", "4,5;5,6", None, "4,6", 2 * 4 * 5 * 6),
        ("aten::mv", "6,4;4", None, None, 2 * 6 * 4),
        ("aten::bmm", "8,4,5;8,5,6", None, None, 2 * 8 * 4 * 5 * 6),
        ("aten::linear", "8,4,5;6,5;6", None, None, 2 * 8 * 4 * 5 * 6),
        # The first of three is what is added, however many axes it has, with or without outputs.
        ("aten::addmm", "6;4,5;5,6", None, None, 2 * 4 * 5 * 6),
        ("aten::addmm", "4,6;4,5;5,6", None, None, 2 * 4 * 5 * 6),
        ("aten::addmm", "6;4,5;5,6", None, "4,6", 2 * 4 * 5 * 6),
        ("aten::baddbmm", "8,4,6;8,4,5;8,5,6", None, None, 2 * 8 * 4 * 5 * 6),
        ("aten::addmv", "6;6,4;4", None, None, 2 * 6 * 4),
        # Blocks of 16 by 16 are two axes more of a matrix, and no batch.
        (
            "BatchMatMul",
            "3,1,2,16,16;3,4,1,16,16",
            "FRACTAL_NZ;FRACTAL_NZ",
            "3,4,2,16,16",
            2 * 3 * 32 * 16 * 64,
        ),
        ("MatMul", "4,5", None, "4,6", None),
        ("MatMul", "4,0;0,6", None, None, None),
        ("MatMul", "0,4,5;0,5,6", None, "0,4,6", None),
    ],
)
def test_product_costs_two_times_m_n_k_operations(
    kind: str, inputs: str, formats: str | None, outputs: str | None, flops: int | None
) -> None:
    found = cost(kind, inputs, "FLOAT", formats, outputs, "FLOAT").flops
    assert found == (None if flops is None else pytest.approx(flops, rel=1e-12))


_X, _W, _Y = "2,3,8,8", "4,3,3,3", "2,4,8,8"
_FORWARD = 2 * (2 * 4 * 8 * 8) * (3 * 3 * 3)


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "flops"),
    [
        ("Conv2D", f"{_X};{_W};4", _Y, _FORWARD),
        ("Conv1D", "2,3,8;4,3,3", "2,4,6", 2 * 48 * 9),
        ("Conv2D", f"{_X};{_W}", None, None),
        ("Conv2D", f"{_X};{_W}", ";4", None),
        ("Conv2D", _X, _Y, None),
        ("aten::convolution_backward", f"{_Y};{_X};{_W}", f"{_X};{_W}", 2 * _FORWARD),
        ("aten::convolution_backward", f"{_Y};{_X}", _X, None),
        ("Conv2DBackpropInput", f"4;{_W};{_Y}", _X, _FORWARD),
        ("conv_input_backprop_inputbackprop", f"{_W};{_Y}", _X, _FORWARD),
        ("Conv2DBackpropInput", _Y, _X, None),
        ("Conv2DBackpropFilter", f"{_X};4;{_Y}", _W, _FORWARD),
        ("conv_filterbackprop", f"{_X};{_Y}", _W, _FORWARD),
        ("cudnn_convolution_backward_filter", f"{_X};{_Y}", _W, _FORWARD),
        ("Conv2DBackpropFilter", "4;5,6", _W, None),
        # FRACTAL_Z: 64 output channels in four blocks of 16.
        ("Conv2D", "1,1,4,4,8;9,4,16,8", "1,8,4,4,8", 2 * 1024 * 72),
        ("Conv2D", "1,1,4,4,8;9,4,16,16", "1,8,4,4,8", 2 * 1024 * 144),
        ("Conv2D", "1,1,4,4,8;9,4,16,32", "1,8,4,4,8", 2 * 1024 * 288),
        # A kernel of 16 by 7 is not blocked, nor is one of five axes.
        ("Conv2D", "1,4,4,4;9,4,16,7", "1,9,4,4", 2 * 144 * 448),
        ("Conv2D", "1,4,4,4;9,4,7,16", "1,9,4,4", 2 * 144 * 448),
        ("Conv3D", "1,4,4,4,4;9,4,16,8,2", "1,9,4,4,4", 2 * 576 * 1024),
    ],
)
def test_convolution_costs_two_operations_per_output_and_kernel_weight(
    kind: str, inputs: str, outputs: str | None, flops: int | None
) -> None:
    assert cost(kind, inputs, "FLOAT", None, outputs, "FLOAT").flops == flops


def test_other_ops_cost_one_operation_per_element_of_their_largest_tensor() -> None:
    assert cost("Add", "4,5;5", "FLOAT", None, "4,5", "FLOAT").flops == 20
    assert cost("Tile", "4", "FLOAT", None, "4,9", "FLOAT").flops == 36
    assert cost("ReduceSum", "6,7", "FLOAT", None, "", "FLOAT").flops == 42
