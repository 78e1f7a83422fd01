"""The kind of an op in a comparison, by type, core, name and dtypes."""

import pytest

from jumar.profiling.comparison.op_kinds import (
    base_type,
    conversion,
    float_dtypes,
    has_16_bit,
    is_32_bit,
    op_kind,
    split_list,
    type_or_name,
)


@pytest.mark.parametrize(
    ("kind", "core", "name", "inputs", "outputs", "expected"),
    [
        ("Add", "COMMUNICATION", "a", None, None, "communication"),
        ("Cast", "COMMUNICATION", "a", None, None, "communication"),
        (None, None, "HCOM_allReduce_1", None, None, "communication"),
        ("Add", None, "c10d::x", None, None, "communication"),
        ("Add", "AI_CORE", "hcom_x", None, None, "compute"),
        ("Cast", "CUDA_MEMCPY", "a", None, None, "cast"),
        ("aten::_to_copy", "CUDA", "a", None, None, "cast"),
        ("Memcpy", "CUDA_MEMCPY", "a", None, None, "copy"),
        ("copy_", "CUDA_MEMSET", "a", "FLOAT;BF16", None, "copy"),
        ("TransData", "AI_CORE", "a", "FLOAT", "BF16", "format"),
        ("aten::copy_", "CUDA", "a", "FLOAT;BF16", None, "cast"),
        ("copy_", "CUDA", "a", "FLOAT;FLOAT", None, "format"),
        ("copy_", "CUDA", "a", "FLOAT", None, "format"),
        ("clone", "CUDA", "a", "FLOAT", "BF16", "cast"),
        ("clone", "CUDA", "a", "FLOAT", "FLOAT", "format"),
        ("clone", "CUDA", "a", "FLOAT", None, "format"),
        ("Add", "AI_CORE", "a", "FLOAT", "BF16", "compute"),
        (None, "AI_CORE", "a", None, None, "compute"),
    ],
)
def test_ops_are_classified_as_compute_cast_layout_communication_or_copy(
    kind: str | None,
    core: str | None,
    name: str,
    inputs: str | None,
    outputs: str | None,
    expected: str,
) -> None:
    assert op_kind(kind, core, name, inputs, outputs) == expected


def test_conversion_has_the_dtypes_from_the_file() -> None:
    assert conversion("Cast", "FLOAT;INT32", "BF16;BOOL") == ("FLOAT", "BF16")
    assert conversion("Cast", None, "") == ("", "")
    assert conversion("aten::copy_", "FLOAT;BF16", None) == ("BF16", "FLOAT")
    assert conversion("copy_", "FLOAT;BF16;INT8", "BOOL") == ("BF16", "FLOAT")
    assert conversion("copy_", "FLOAT", "BF16") == ("FLOAT", "BF16")
    assert (split_list("FLOAT;;BF16"), split_list(""), split_list(None)) == (
        ["FLOAT", "", "BF16"],
        [],
        [],
    )


@pytest.mark.parametrize(
    ("kind", "base"),
    [
        ("MatMulV2", "matmul"),
        ("MatMulV10", "matmul"),
        ("ReduceSumD", "reducesum"),
        ("TransposeV2D", "transpose"),
        ("aten::add_", "add"),
        ("add", "add"),
        ("Conv2D", "conv2d"),
        ("Conv3DTranspose", "conv3dtranspose"),
        ("SplitVD", "splitv"),
        ("GatherV2D", "gather"),
        ("log2", "log2"),
        ("relu_1_2", "relu"),
        ("relu_12", "relu"),
        ("_12", "_12"),
        ("D", "d"),
        ("V2", "v2"),
    ],
)
def test_base_of_a_type_omits_its_version(kind: str, base: str) -> None:
    assert base_type(kind) == base


def test_without_a_type_the_name_without_its_number_is_used() -> None:
    assert type_or_name("Add", "x_1") == "Add"
    assert type_or_name(None, "Add_1_23") == type_or_name("", "Add_1") == "Add"
    assert type_or_name(None, "12") == "12"


def test_op_bit_width_follows_its_float_tensors() -> None:
    assert float_dtypes("FLOAT;INT32|BF16;BOOL;HALF;DOUBLE;HIF8") == {
        *("FLOAT", "BF16", "HALF", "DOUBLE", "HIF8")
    }
    assert [
        has_16_bit(types) for types in ("FLOAT;BF16", "FLOAT|FLOAT16", "FLOAT", "INT8", "")
    ] == [*(True, True, False, False, False)]
    assert [
        is_32_bit(types) for types in ("FLOAT;INT8", "FLOAT32|FLOAT", "FLOAT;BF16", "INT8")
    ] == [*(True, True, False, False)]
