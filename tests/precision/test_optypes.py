"""CANN op types: every torch name exists, and the table agrees with the reference."""

import re
from collections import Counter
from pathlib import Path

import pytest

from jumar.precision.optypes import (
    WITHOUT_EFFECT,
    groups_by_type,
    op_groups,
    types_of,
)
from jumar.precision.overloads import can_cast, find_overload

NOT_IN_A_LIST = {
    # Views and casts of the reference's rows, which no list may touch.
    *("to.dtype", "_to_copy", "permute", "transpose.int", "reshape", "view", "unbind.int"),
    *("split.Tensor", "split_with_sizes", "slice.Tensor", "expand"),
    # Made from nothing, or from whole numbers.
    *("arange", "linspace", "full", "zeros_like", "ones_like", "eye"),
    # Written in place.
    *("_native_batch_norm_legit", "copy_", "_fused_adam_", "_fused_adamw_", "_fused_sgd_"),
    "_amp_foreach_non_finite_check_and_unscale_",
    # The sum of BiasAdd's row is the gradient of the bias.
    "sum.dim_IntList",
}


def _rows(text: str, start: str, end: str) -> list[list[str]]:
    part = text.split(start)[1].split(end)[0]
    rows = [line.strip().strip("|").split("|") for line in part.splitlines() if line[:1] == "|"]
    return [[cell.strip() for cell in row] for row in rows if "---" not in row[0]]


def _names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.fixture(scope="module")
def reference(shared: Path) -> str:
    path = shared / "reference" / "op-names.md"
    if not path.is_file():
        pytest.skip("needs the reference table of op names beside the checkout")
    return path.read_text("utf-8")


def test_every_aten_overload_exists_and_can_change_its_dtype() -> None:
    for group in op_groups():
        for op in group.ops:
            overload = find_overload(op)
            assert overload is not None, op
            assert can_cast(overload), op


def test_no_op_type_is_in_two_groups() -> None:
    count = Counter(name for group in op_groups() for name in (*group.types, *group.backward))
    assert [name for name, number in count.items() if number > 1] == []


def test_groups_without_torch_ops_say_why_and_others_have_ops() -> None:
    for group in op_groups():
        assert bool(group.ops) != (group.kind in WITHOUT_EFFECT), group.types


def test_op_in_several_groups_has_a_primary_one_named_by_the_others() -> None:
    passed_on = {"matmul", "convolution", "_convolution", "_convolution.deprecated"}
    for op in {op for group in op_groups() for op in group.ops} - passed_on:
        groups = [group for group in op_groups() if op in group.ops]
        named = {name for group in groups for name in group.shares}
        assert len(groups) == 1 or any(group.types[0] in named for group in groups), op


def test_views_and_writing_ops_can_never_be_listed() -> None:
    for op in ("view", "slice.Tensor", "add_.Tensor", "copy_", "relu_", "add.out", "expand"):
        overload = find_overload(op)
        assert overload is not None, op
        assert not can_cast(overload), op


def test_every_op_type_of_the_reference_is_known(reference: str) -> None:
    main = _rows(reference, "## Main table", "### Names that occur in mixlists")
    appendix = _rows(reference, "## Appendix", "no such end")
    black = _names(reference.split("(`OpAICoreConfig` constructor")[1].split("Reading:")[0])[1:]
    plumbing = _names(_rows(reference, "### Names that occur", "**Consequence")[1][0])
    names = {name for row in (*main, *appendix) for name in _names(row[0])}
    assert len(names) > 400
    missing = (names | {*black} | {*plumbing}) - groups_by_type().keys()
    assert missing - {"precision_reduce.flag"} == set()


def test_published_typos_are_not_recognised() -> None:
    mistakes = {"MatMu1V2", "Loglp", "StrideSliceD", "LayerNormXbackpropV2", "matmulv2"}
    assert not mistakes & groups_by_type().keys()


def test_every_row_of_the_reference_covers_the_same_torch_ops(reference: str) -> None:
    checked = 0
    for cells in _rows(reference, "## Main table", "### Names that occur in mixlists"):
        if len(cells) != 6 or not _names(cells[0]):
            continue
        groups = [groups_by_type()[name] for name in _names(cells[0])]
        ours = {op for group in groups for op in group.ops}
        theirs = {op for op in _names(cells[3]) if "backward" not in op}
        missing = theirs - ours
        assert missing <= NOT_IN_A_LIST | {"embedding_dense_backward"}, cells[0]
        checked += 1
    assert checked > 60


def test_types_are_found_by_torch_op() -> None:
    assert types_of("softmax.int")[0] == "SoftmaxV2"
    assert types_of("no_such_op") == ()
