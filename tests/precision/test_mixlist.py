"""Mixlists: CANN's rules, names, contradictions, and what torch cannot distinguish."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.precision.mixlist import Finding, lint_mixlist, load_mixlist
from jumar.precision.oplist import default_lists
from jumar.precision.optypes import op_groups

MIXED = "allow_mix_precision"


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write_list(content: object) -> Path:
        path = tmp_path / "mixlist.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return path

    return write_list


def black(*names: str) -> dict[str, dict[str, list[str]]]:
    return {"black-list": {"to-add": list(names)}}


def errors(path: Path) -> list[str]:
    return [f.what for f in lint_mixlist(path, MIXED) if f.severity == "error"]


def warnings(path: Path) -> list[str]:
    return [f.what for f in lint_mixlist(path, MIXED) if f.severity == "warning"]


def changes(path: Path) -> dict[str, str]:
    before = default_lists()
    return {op: name for op, name in load_mixlist(path).items() if before.get(op) != name}


@pytest.mark.parametrize(
    "name", ["add", "aten::add", "add.Tensor", "aten::add.Tensor", "Add", "AddV2"]
)
def test_op_is_named_by_cann_type_or_aten_name(write: Any, name: str) -> None:
    assert changes(write(black(name)))["add.Tensor"] == "black"


def test_op_type_moves_every_torch_op_it_corresponds_to(write: Any) -> None:
    result = changes(write(black("BatchNorm", "ReduceMeanD", "Mul")))
    assert result.keys() >= {"batch_norm", "native_batch_norm", "mean", "mean.dim", "mul.Tensor"}
    assert set(result.values()) == {"black"}


def test_aten_name_moves_only_that_op(write: Any) -> None:
    assert changes(write(black("aten::linear"))) == {"linear": "black"}


def test_lists_of_published_models_are_accepted(write: Any) -> None:
    for names in (
        ["SoftmaxV2"],
        ["Add"],
        ["ReduceSumD"],
        ["ReduceSumD", "Mul"],
        ["LayerNorm", "SquaredDifference", "SoftmaxCrossEntropyWithLogits"],
        ["Sub", "Add", "Mul"],
    ):
        assert errors(write(black(*names))) == [], names


@pytest.mark.parametrize(
    "content",
    [
        {"black-list": {"to-remove": ["SoftmaxV2"]}},
        {"white-list": {"to-remove": ["MatMulV2"]}},
        {"gray-list": {"to-add": ["SoftmaxV2"]}},
        {"gray-list": {"to-add": ["SoftmaxV2"]}, "black-list": {"to-remove": ["SoftmaxV2"]}},
        {"gray-list": {"to-add": ["SoftmaxV2"]}, "white-list": {"to-remove": ["SoftmaxV2"]}},
        {"white-list": {"to-add": ["SoftmaxV2"]}},
        {"white-list": {"to-add": ["SoftmaxV2"]}, "gray-list": {"to-remove": ["SoftmaxV2"]}},
        {"white-list": {"to-add": ["SoftmaxV2"]}, "black-list": {"to-remove": ["SoftmaxV2"]}},
        {"black-list": {"to-add": ["SoftmaxV2"]}},
        {"black-list": {"to-add": ["SoftmaxV2"]}, "gray-list": {"to-remove": ["SoftmaxV2"]}},
        {"black-list": {"to-add": ["SoftmaxV2"]}, "white-list": {"to-remove": ["SoftmaxV2"]}},
    ],
)
def test_every_combination_that_cann_allows_is_allowed(write: Any, content: object) -> None:
    assert errors(write(content)) == []


LISTS = ("black-list", "white-list", "gray-list")


@given(
    st.sets(st.tuples(st.sampled_from(LISTS), st.sampled_from(["to-add", "to-remove"])), min_size=1)
)
def test_every_other_combination_is_an_error(
    tmp_path_factory: pytest.TempPathFactory, said: set[tuple[str, str]]
) -> None:
    content: dict[str, dict[str, list[str]]] = {}
    for list_name, change in said:
        content.setdefault(list_name, {})[change] = ["Add"]
    path = tmp_path_factory.mktemp("mixlist") / "list.json"
    path.write_text(json.dumps(content))
    added = {name for name, change in said if change == "to-add"}
    removed = {name for name, change in said if change == "to-remove"}
    allowed = (
        len(added) <= 1
        and len(removed) <= 1
        and not added & removed
        and (added or removed != {"gray-list"})
    )
    assert (errors(path) == []) == bool(allowed)


def test_adding_moves_an_op_without_removing_it(write: Any) -> None:
    assert changes(write(black("MatMulV2")))["linear"] == "black"


def test_removing_without_adding_makes_gray(write: Any) -> None:
    result = changes(write({"black-list": {"to-remove": ["SoftmaxV2", "exp"]}}))
    assert result == {"softmax.int": "gray", "exp": "gray"}


def test_removing_from_a_list_it_is_not_on_changes_nothing_and_is_mentioned(write: Any) -> None:
    path = write({"white-list": {"to-remove": ["SoftmaxV2"]}})
    assert changes(path) == {}
    assert "it is black and gray, not white" in warnings(path)[0]


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("MatMu1V2", "MatMulV2"),
        ("Loglp", "Log1p"),
        ("StrideSliceD", "StridedSliceD"),
        ("LayerNormXbackpropV2", "LayerNormXBackpropV2"),
        ("matmulv2", "MatMulV2"),
        ("aten::sofmax", "softmax"),
    ],
)
def test_misspelt_name_is_refused_with_the_nearest(write: Any, name: str, close: str) -> None:
    (finding,) = [f for f in lint_mixlist(write(black(name)), MIXED) if f.severity == "error"]
    assert finding.what == f"unknown op '{name}'"
    assert f"'{close}'" in finding.todo


@pytest.mark.parametrize(
    ("name", "op_type", "aten"),
    [
        ("Conv2d", "Conv2D", "conv2d"),
        ("nn.Conv2d", "Conv2D", "conv2d"),
        ("torch.nn.Conv2d", "Conv2D", "conv2d"),
        ("nn.BatchNorm2d", "BatchNorm", "batch_norm"),
        ("ReLU", "Relu", "relu"),
        ("LSTM", "DynamicRNN", "lstm"),
        ("F.softmax", "Softmax", "softmax"),
        ("torch.matmul", "MatMul", "matmul"),
        ("tf.nn.Conv2D", "Conv2D", "conv2d"),
        ("nn.Linear", "MatMul", "linear"),
    ],
)
def test_framework_name_suggests_op_type_and_aten_operator(
    write: Any, name: str, op_type: str, aten: str
) -> None:
    (finding,) = lint_mixlist(write(black(name)), MIXED)
    assert f"the CANN op type '{op_type}' or the aten operator '{aten}'" in str(finding)


@pytest.mark.parametrize(
    "content",
    [
        {"black-list": {"to-add": ["Conv2d"]}, "white-list": {"to-add": ["Conv2d"]}},
        {"black_list": {"to-add": ["Add", "Mul", "Sub"]}},
        {"black-list": {"to-append": ["Add", "Mul", "Sub"]}},
        {"black-list": {"to-add": [1, 1]}},
    ],
)
def test_one_fault_is_one_finding(write: Any, content: object) -> None:
    assert len(lint_mixlist(write(content), MIXED)) == 1


@pytest.mark.parametrize("list_name", LISTS)
def test_no_two_findings_read_the_same(write: Any, list_name: str) -> None:
    names = sorted({name for group in op_groups() for name in group.types})
    findings = [str(found) for found in lint_mixlist(write({list_name: {"to-add": names}}), MIXED)]
    assert len(set(findings)) == len(findings)


def test_findings_name_the_line(write: Any) -> None:
    path = write('{"black-list": {"to-add": [\n"Add",\n"Sofmax"\n]}}')
    (finding,) = [f for f in lint_mixlist(path, MIXED) if f.severity == "error"]
    assert finding.line == 3
    with pytest.raises(UserError, match=r"mixlist.json, line 3: unknown op 'Sofmax'"):
        load_mixlist(path)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "the file is empty"),
        ("[]", "the file must contain one object"),
        ('"Add"', "the file must contain one object"),
        ({"blacklist": {}}, "unknown key 'blacklist'"),
        ({"black-list": {"add": ["Add"]}}, "unknown key 'add'"),
        ({"black-list": ["Add"]}, "'black-list' must be an object"),
        ({"black-list": "Add"}, "'black-list' must be an object"),
        ({"black-list": {"to-add": "Add"}}, "'to-add' must be an array"),
        ({"black-list": {"to-add": {"Add": 1}}}, "'to-add' must be an array"),
        ({"black-list": {"to-add": [1]}}, "not the name of an op"),
        ({"black-list": {"to-add": [["Add"]]}}, "not the name of an op"),
        ({"black-list": {"to-add": [{}]}}, "not the name of an op"),
        ('{"black-list": {"to-add": ["Add" // why\n]}}', "comments are not JSON"),
        ('{"black-list": {}, "black-list": {}}', "appears twice"),
        ('{"black-list": ', "not JSON"),
    ],
)
def test_file_in_another_format_is_refused(write: Any, content: object, what: str) -> None:
    path = write(content)
    assert what in errors(path)[0]
    with pytest.raises(UserError):
        load_mixlist(path)


@pytest.mark.parametrize("content", [{}, {"black-list": {}}, {"white-list": {"to-add": []}}])
def test_empty_list_is_allowed_as_in_cann(write: Any, content: object) -> None:
    path = write(content)
    assert lint_mixlist(path, MIXED) == []
    assert changes(path) == {}


@given(st.text())
def test_any_name_is_accepted_or_refused_without_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    path = tmp_path_factory.mktemp("mixlist") / "list.json"
    path.write_text(json.dumps(black(name)), "utf-8")
    lint_mixlist(path, MIXED)


@pytest.mark.parametrize("mode", ["force_fp16", "origin", "allow_fp32_to_fp16"])
def test_mode_that_ignores_lists_is_an_error(write: Any, mode: str) -> None:
    first = lint_mixlist(write(black("Add")), mode)[0]
    assert first.severity == "error"
    assert "ignores op lists" in first.what


@pytest.mark.parametrize(
    ("names", "ops"),
    [(["SoftmaxV2", "softmax"], "softmax.int"), (["MatMul", "MatMulV2"], "linear")],
)
def test_two_names_of_one_op_on_different_lists_are_an_error(
    write: Any, names: list[str], ops: str
) -> None:
    path = write({"black-list": {"to-add": names[:1]}, "white-list": {"to-add": names[1:]}})
    (result,) = errors(path)
    assert "different lists" in result
    assert ops in result


def test_op_types_torch_cannot_distinguish_get_the_safer_list(write: Any) -> None:
    path = write({"black-list": {"to-add": ["AddN"]}, "white-list": {"to-add": ["Add"]}})
    assert errors(path) == []
    assert any("the safer list, black" in what for what in warnings(path))
    assert changes(path)["add.Tensor"] == "black"
    assert changes(path)["add.Scalar"] == "white"


def test_op_type_without_its_own_op_says_what_else_changes(write: Any) -> None:
    result = warnings(write(black("SquaredDifference")))
    assert result == [
        "torch cannot distinguish 'SquaredDifference' from Sub, Pow, Square, so they change "
        "together: torch computes it from sub and square"
    ]


def test_only_one_kind_of_matrix_product_can_be_moved(write: Any) -> None:
    result = changes(write(black("BatchMatMul")))
    assert result["bmm"] == "black"
    assert result["matmul"] == "gray"
    assert "mm" not in result
    assert "linear" not in result
    assert changes(write(black("BatchMatMul", "MatMul")))["matmul"] == "black"


def test_only_one_kind_of_convolution_can_be_moved(write: Any) -> None:
    result = changes(write(black("Conv2D")))
    assert result["conv2d"] == "black"
    assert result["convolution"] == "gray"
    assert "conv3d" not in result


@pytest.mark.parametrize("name", ["ReluGrad", "SoftmaxGrad", "BiasAddGrad", "EmbeddingDenseGrad"])
def test_backward_names_are_reported_to_follow_the_forward(write: Any, name: str) -> None:
    path = write(black(name))
    assert "in the dtypes of the forward pass" in warnings(path)[0]
    assert changes(path) == {}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Cast", "casts are not on the lists"),
        ("StridedSliceD", "view"),
        ("ApplyAdamD", "outside the forward region"),
        ("TransData", "graph engine"),
        ("ROIAlign", "no equivalent torch op"),
        ("Assign", "parameters are always fp32"),
        ("HcomAllReduce", "gradients are exchanged"),
        ("NPUGetFloatStatus", "loss scale"),
        ("ZerosLike", "the requested dtype"),
    ],
)
def test_names_without_effect_say_why(write: Any, name: str, why: str) -> None:
    path = write(black(name))
    assert errors(path) == []
    assert why in warnings(path)[0]
    assert changes(path) == {}


@pytest.mark.parametrize("name", ["aten::view", "aten::gelu_backward", "aten::add_"])
def test_unlistable_aten_ops_are_mentioned(write: Any, name: str) -> None:
    path = write(black(name))
    assert "cannot be on a list" in warnings(path)[0]
    assert changes(path) == {}


def test_op_without_a_low_kernel_stays_fp32_on_the_white_list(write: Any) -> None:
    path = write({"white-list": {"to-add": ["CTCLossV2"]}})
    assert "stays in fp32" in warnings(path)[0]


def test_gray_for_a_pass_through_op_is_mentioned(write: Any) -> None:
    path = write({"black-list": {"to-remove": ["SoftmaxCrossEntropyWithLogits"]}})
    assert "consists of other ops" in warnings(path)[0]


def test_adding_to_gray_is_reported_ineffective_on_ascend(write: Any) -> None:
    path = write({"gray-list": {"to-add": ["SoftmaxV2"]}})
    assert changes(path) == {"softmax.int": "gray"}
    assert "unlike in CANN" in warnings(path)[0]


def test_missing_file_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        load_mixlist(tmp_path / "none.json")


def test_non_text_file_is_a_user_error(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not UTF-8"):
        load_mixlist(path)


def test_every_combination_rule_has_its_own_message(write: Any) -> None:
    def found(content: dict[str, dict[str, list[str]]]) -> list[Finding]:
        return lint_mixlist(write(content), MIXED)

    both = {"black-list": {"to-add": ["Add"]}, "white-list": {"to-add": ["Add"]}}
    same = {"black-list": {"to-add": ["Add"], "to-remove": ["Add"]}}
    twice = {"black-list": {"to-remove": ["Add"]}, "white-list": {"to-remove": ["Add"]}}
    gray = {"gray-list": {"to-remove": ["Add"]}}
    for content, what, todo in (
        (both, "'Add' is added to more than one list: black and white", "keep one of them"),
        (same, "'Add' is added to and removed from the black list", "keep one of them"),
        (twice, "'Add' is removed from more than one list: black and white", "keep one of them"),
        (
            gray,
            "'Add' is removed from the gray list, but not added to another",
            "add it to the white or the black list",
        ),
    ):
        error = Finding(severity="error", line=found(content)[0].line, what=what, todo=todo)
        assert found(content) == [error]
        assert error.line > 1


def test_findings_are_sorted_by_severity_then_line_on_one_line_each(write: Any) -> None:
    path = write('{"black-list": {"to-add": ["Cast",\n"Sofmax",\n"ReluGrad",\n"Soft"]}}')
    findings = lint_mixlist(path, MIXED)
    assert [(each.severity, each.line) for each in findings] == [
        ("error", 2),
        ("error", 4),
        ("warning", 1),
        ("warning", 3),
    ]
    assert str(findings[0]).startswith("error: line 2: unknown op 'Sofmax' (did you mean ")
    assert str(Finding(severity="warning", line=0, what="x")) == "warning: x"
    assert str(lint_mixlist(write({}), "force_fp16")[0]) == (
        "error: the mode 'force_fp16' ignores op lists"
        " (use allow_mix_precision or allow_mix_precision_bf16)"
    )


def test_loading_names_the_first_error_and_nine_others(write: Any) -> None:
    def todo(count: int) -> list[str]:
        path = write(black(*(f"Xyzzy{number}qq" for number in range(count))))
        with pytest.raises(UserError) as error:
            load_mixlist(path)
        assert error.value.what == "unknown op 'Xyzzy0qq'"
        assert error.value.where == f"{path}, line 4"
        return error.value.todo.split("\n  ")

    known = "see docs/precision.md for the known names"
    assert todo(1) == [known]
    others = [f"line {5 + number}: unknown op 'Xyzzy{number + 1}qq'" for number in range(9)]
    assert todo(10) == [known, *others]
    assert todo(12) == [known, *others, "and 2 more"]
    with pytest.raises(UserError) as error:
        load_mixlist(write(""))
    assert error.value.where.endswith("mixlist.json")


def test_names_without_effect_say_what_to_list_instead(write: Any) -> None:
    (result,) = warnings(write(black("ReluGrad")))
    assert result == (
        "'ReluGrad' has no effect: it runs in the backward pass, in the dtypes of the forward "
        "pass; list Relu, ReluV2 instead"
    )
    assert warnings(write(black("aten::view"))) == [
        "'aten::view' cannot be on a list: it writes in place, returns a view, or runs in the"
        " backward pass"
    ]


def test_two_op_types_on_different_lists_say_for_which_ops_the_safer_is_used(write: Any) -> None:
    path = write({"gray-list": {"to-add": ["AddN"]}, "white-list": {"to-add": ["Add"]}})
    assert any("the safer list, gray, is used" in what for what in warnings(path))
    assert changes(path).get("add.Tensor", "gray") == "gray"


def test_unknown_keys_suggest_the_nearest_or_list_all(write: Any) -> None:
    for content, what, todo in (
        ({"blak-list": {}}, "unknown key 'blak-list'", "did you mean 'black-list'?"),
        ({"zzz": {}}, "unknown key 'zzz'", "black-list, white-list, gray-list"),
        ({"black-list": {"to-ad": []}}, "unknown key 'to-ad'", "did you mean 'to-add'?"),
        ({"black-list": {"zzz": []}}, "unknown key 'zzz'", "to-add, to-remove"),
    ):
        (finding,) = lint_mixlist(write(content), MIXED)
        assert (finding.what, finding.todo) == (what, todo)
