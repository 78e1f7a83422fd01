"""Groups of ops as the page lists them."""

from typing import Any

import pytest

from jumar.profiling.page import op_groups as module
from jumar.profiling.page.op_groups import group_ops
from tests.profiling.generated import profile_of


def _op(kind: str | None, length: int, **more: Any) -> dict[str, Any]:
    row = {"name": "named_12", "type": kind, "core": "AI_CORE", "start_ns": 0}
    return row | {"duration_ns": length, "input_shapes": "8", "input_types": "BF16"} | more


_OPS = [
    _op("Add", 5, output_types="FLOAT", module="m"),
    _op("Cast", 30, output_types="FLOAT"),
    _op("Add", 9, output_types="FLOAT", module="m"),
    _op(None, 7, core="AI_CPU", input_types=None, input_shapes=None),
    _op("Add", 2, input_shapes="9"),
    _op("Add", 3, input_shapes="7"),
    _op("Cast", 1, output_types="INT8"),
]


def test_ops_are_grouped_by_all_shown_columns_longest_first() -> None:
    found = group_ops(profile_of(_OPS).ops)
    assert found.rows == {
        "type": ["Cast", "Add", "named", "Add", "Add", "Cast"],
        "core": ["AI_CORE", "AI_CORE", "AI_CPU", "AI_CORE", "AI_CORE", "AI_CORE"],
        "dtypes": ["BF16 → FLOAT", "BF16 → FLOAT", "", "BF16", "BF16", "BF16 → INT8"],
        "shapes": ["8", "8", "", "7", "9", "8"],
        "module": ["", "m", "", "", "", ""],
        "kind": ["cast", "compute", "aicpu", "compute", "compute", "cast"],
        "count": [1, 2, 1, 1, 1, 1],
        "total": [30, 14, 7, 3, 2, 1],
        "min": [30, 5, 7, 3, 2, 1],
        "max": [30, 9, 7, 3, 2, 1],
    }
    assert found.group_of_op.to_list() == [1, 0, 1, 2, 4, 3, 5]
    assert found.merged_count == 0
    assert "of_op" not in repr(found)
    with pytest.raises(AttributeError):
        found.merged_count = 3  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("most", "types", "together"),
    [
        (6, ["Cast", "Add", "named", "Add", "Add", "Cast"], 0),
        (5, ["Cast", "Add", "named", "Add", "Add", "Cast"], 1),
        (3, ["Cast", "Add", "named", "Add", "Cast"], 3),
    ],
)
def test_smallest_excess_groups_are_merged_by_type(
    most: int, types: list[str], together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert module.MAX_GROUPS == 4000
    monkeypatch.setattr(module, "MAX_GROUPS", most)
    found = group_ops(profile_of(_OPS).ops)
    assert (found.rows["type"], found.merged_count) == (types, together)
    merged = [place for place, shape in enumerate(found.rows["shapes"]) if not shape]
    # The op without shapes is a separate group.
    assert merged == [2, *range(len(types) - (together > 0) - (together > 1), len(types))]
    assert found.rows["count"][-1] == 1


def test_equally_long_groups_are_sorted_by_key() -> None:
    ops = [
        _op(
            kind,
            5,
            core=core,
            input_shapes=shape,
            input_types=dtype,
            output_types=given,
            module=part,
        )
        for kind in "BA"
        for core in ("MIX_AIC", "AI_CORE")
        for shape in "98"
        for dtype in ("INT8", "BF16")
        for given in ("INT8", "BF16")
        for part in "nm"
    ]
    rows = group_ops(profile_of(ops).ops).rows
    keys = list(
        zip(rows["type"], rows["core"], rows["shapes"], rows["dtypes"], rows["module"], strict=True)
    )
    assert len(keys) == 64
    assert keys == sorted(keys)


def test_long_texts_are_truncated_to_fit_a_table() -> None:
    long = "x" * 199 + "!"
    texts = dict.fromkeys(("core", "input_shapes", "input_types", "output_types", "module"), long)
    rows = group_ops(profile_of([_op(long, 5, **texts)]).ops).rows
    assert {
        name: len(rows[name][0]) for name in ("type", "core", "dtypes", "shapes", "module")
    } == {
        "type": 80,
        "core": 40,
        "dtypes": 80,
        "shapes": 120,
        "module": 120,
    }
    # The end of a layer's path distinguishes it from the others.
    assert [name for name, values in rows.items() if str(values[0]).endswith("!")] == ["module"]


def test_group_without_a_core_is_communication_if_its_type_says_so() -> None:
    rows = group_ops(
        profile_of([_op("hcom_allReduce", 5, core=None), _op("x", 4, core=None)]).ops
    ).rows
    assert (rows["kind"], rows["core"]) == (["communication", "compute"], ["", ""])
