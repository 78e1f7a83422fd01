"""A pair of precision modes becomes edits that a run accepts."""

from pathlib import Path
from typing import Any

import polars as pl

from jumar.cli.profile_lists import list_name
from jumar.precision.mixlist import lint_mixlist, load_mixlist
from jumar.profiling.comparison import as_mixlist, compare, propose
from jumar.profiling.profile import OPS_SCHEMA, Profile
from tests.profiling.generated import frame


def _profile(*ops: tuple[str, int, str, str]) -> Profile:
    """Ops by type, length, input and output dtype, of one shape."""
    rows: list[dict[str, Any]] = []
    now = 0
    for place, (kind, length, taken, given) in enumerate(ops):
        rows.append(
            {
                "rank": 0,
                "step": 1,
                "name": f"{kind}{place}",
                "type": kind,
                "core": "AI_CORE",
                "start_ns": now,
                "duration_ns": length,
                "input_shapes": "8,8",
                "input_types": taken,
                "output_shapes": "8,8",
                "output_types": given,
            }
        )
        now += length
    return Profile(source="x", producer="x", kind="npu", ops=frame(rows, OPS_SCHEMA))


_BEFORE = _profile(
    ("MatMulV2", 1000, "FLOAT", "FLOAT"),
    ("SoftmaxV2", 300, "FLOAT", "FLOAT"),
    ("Sigmoid", 200, "FLOAT", "FLOAT"),
    ("MatMulV2", 1000, "FLOAT", "FLOAT"),
)
_AFTER = _profile(
    ("Cast", 20, "FLOAT", "FLOAT16"),
    ("MatMulV2", 250, "FLOAT16", "FLOAT16"),
    ("Cast", 40, "FLOAT16", "FLOAT"),
    ("SoftmaxV2", 300, "FLOAT", "FLOAT"),
    ("Cast", 50, "FLOAT", "FLOAT16"),
    ("Sigmoid", 230, "FLOAT16", "FLOAT16"),
    ("MatMulV2", 250, "FLOAT16", "FLOAT16"),
)


def test_an_op_between_casts_goes_white_and_one_that_loses_goes_black() -> None:
    edits = {edit.name: edit for edit in propose(compare(_BEFORE, _AFTER), list_name)}
    assert (edits["SoftmaxV2"].to, edits["SoftmaxV2"].gain_ns) == ("white-list", 90)
    # Its cast goes with SoftmaxV2's edit, which wins more, and is not counted again.
    assert (edits["Sigmoid"].to, edits["Sigmoid"].gain_ns) == ("black-list", 30)
    assert "MatMulV2" not in edits


def test_no_edit_is_proposed_where_nothing_is_lost() -> None:
    assert propose(compare(_BEFORE, _BEFORE), list_name) == ()


def test_the_file_is_one_that_a_run_accepts(tmp_path: Path) -> None:
    edits = propose(compare(_BEFORE, _AFTER), list_name)
    path = tmp_path / "mixlist.json"
    path.write_text(as_mixlist(edits), encoding="utf-8")
    assert not [one for one in lint_mixlist(path, "allow_mix_precision") if one.severity == "error"]
    assert load_mixlist(path)["sigmoid"] == "black"
    assert load_mixlist(path)["softmax.int"] == "white"


def test_op_types_get_the_name_of_their_forward_op() -> None:
    assert list_name("MatMulV2") == "MatMulV2"
    assert list_name("Conv2DBackpropFilter") == "Conv2D"
    assert list_name("aten::convolution_backward") == "Conv2D"
    assert list_name("mkldnn_convolution") == "Conv2D"
    assert list_name("addmm") == list_name("mm") == "MatMul"
    assert list_name("add_") == "Add"
    assert list_name("_softmax") == list_name("_softmax_backward_data") == "SoftmaxV2"
    assert list_name("Cast") == list_name("TransData") == list_name("no such op") == ""


def test_every_name_that_comes_out_can_be_listed(tmp_path: Path) -> None:
    from jumar.precision.optypes import op_groups

    kinds = {kind for group in op_groups() for kind in (*group.types, *group.backward, *group.ops)}
    names = sorted({name for name in map(list_name, sorted(kinds)) if name})
    for to in ("black-list", "white-list"):
        for name in names:
            path = tmp_path / "one.json"
            path.write_text(f'{{"{to}": {{"to-add": ["{name}"]}}}}', encoding="utf-8")
            load_mixlist(path)


def test_changes_are_a_table_of_integers() -> None:
    changes = compare(_BEFORE, _AFTER).changes
    assert changes.schema["delta_ns"] == pl.Int64()
