"""Op types that a step computes with, and the op list that keeps some of them in float32."""

import json
from pathlib import Path

from jumar.precision.mixlist import lint_mixlist, load_mixlist
from jumar.precision.searching.candidates import candidates, mixlist_of

CALLED = ("conv2d", "linear", "softmax.int", "add.Tensor", "relu", "cat", "matmul", "histc")


def test_ops_of_one_type_form_one_candidate() -> None:
    (only,) = candidates(["mean", "mean.dim"])
    assert (only.name, only.ops) == ("ReduceMean", ("mean", "mean.dim"))
    assert "ReduceMeanD" in only.types


def test_ops_a_mode_cannot_lower_are_no_candidates() -> None:
    names = [each.name for each in candidates(CALLED)]
    assert names == ["Conv2D", "MatMul", "SoftmaxV2", "Add", "Relu"]


def test_op_without_a_type_is_named_by_its_own_name() -> None:
    assert [each.types for each in candidates(["angle"])] == [("aten::angle",)]


def test_types_that_torch_cannot_distinguish_are_listed_together() -> None:
    by_name = {each.name: each.types for each in candidates(CALLED)}
    assert {"Add", "BiasAdd", "AddN"} <= set(by_name["Add"])
    assert {"Conv2D", "DepthwiseConv2D"} <= set(by_name["Conv2D"])


def test_type_that_would_change_other_ops_is_not_listed() -> None:
    """L2Loss is a power and a sum in torch, LRN a pooling and a power."""
    called = ("pow.Tensor_Scalar", "sum", "avg_pool2d")
    by_name = {each.name: each.types for each in candidates(called)}
    assert not {"L2Loss", "LRN"} & {name for types in by_name.values() for name in types}
    assert "L2Loss" in candidates(["pow.Tensor_Scalar"])[0].types


def test_list_keeps_named_ops_and_lowers_the_rest(tmp_path: Path) -> None:
    every = candidates(CALLED)
    path = tmp_path / "ops_info.json"
    path.write_text(json.dumps(mixlist_of(every, {"SoftmaxV2", "Conv2D"})))
    lists = load_mixlist(path)
    assert {op: lists[op] for op in ("conv2d", "softmax.int", "linear", "add.Tensor", "relu")} == {
        "conv2d": "black",
        "softmax.int": "black",
        "linear": "white",
        "add.Tensor": "white",
        "relu": "white",
    }
    findings = lint_mixlist(path, "allow_mix_precision")
    assert not [each for each in findings if each.severity == "error"]


def test_empty_lists_are_omitted() -> None:
    every = candidates(["relu"])
    assert set(mixlist_of(every, {"Relu"})) == {"black-list"}
    assert set(mixlist_of(every, ())) == {"white-list"}
