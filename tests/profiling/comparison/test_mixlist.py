"""A pair of precision modes becomes edits that a run accepts."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jumar.cli.profile_lists import list_name
from jumar.precision.mixlist import lint_mixlist, load_mixlist
from jumar.profiling.comparison import as_mixlist, compare, propose
from jumar.profiling.comparison.mixlist import Edit
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


def test_op_between_casts_becomes_white_and_a_slower_one_black() -> None:
    edits = {edit.name: edit for edit in propose(compare(_BEFORE, _AFTER), list_name)}
    assert (edits["SoftmaxV2"].target_list, edits["SoftmaxV2"].gain_ns) == ("white-list", 90)
    # Its cast goes with SoftmaxV2's edit, which wins more, and is not counted again.
    assert (edits["Sigmoid"].target_list, edits["Sigmoid"].gain_ns) == ("black-list", 30)
    assert "MatMulV2" not in edits


def test_no_edit_is_proposed_without_a_loss() -> None:
    assert propose(compare(_BEFORE, _BEFORE), list_name) == ()


def test_written_mixlist_is_accepted_by_a_run(tmp_path: Path) -> None:
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


def test_every_resulting_name_is_listable(tmp_path: Path) -> None:
    from jumar.precision.optypes import op_groups

    kinds = {kind for group in op_groups() for kind in (*group.types, *group.backward, *group.ops)}
    names = sorted({name for name in map(list_name, sorted(kinds)) if name})
    for to in ("black-list", "white-list"):
        for name in names:
            path = tmp_path / "one.json"
            path.write_text(f'{{"{to}": {{"to-add": ["{name}"]}}}}', encoding="utf-8")
            load_mixlist(path)


def test_changes_table_has_integers() -> None:
    changes = compare(_BEFORE, _AFTER).changes
    assert changes.schema["delta_ns"] == pl.Int64()


def _named(kind: str) -> str:
    return "" if kind in ("Cast", "Reshape") else kind


def _edits(before: Profile, after: Profile, **more: Any) -> list[tuple[str, str, int, int]]:
    found = propose(compare(before, after), _named, **more)
    return [(edit.name, edit.target_list, edit.own_ns, edit.casts_ns) for edit in found]


def test_edits_show_their_own_times_and_those_of_their_casts() -> None:
    assert _edits(_BEFORE, _AFTER) == [
        ("SoftmaxV2", "white-list", 0, 90),
        ("Sigmoid", "black-list", 30, 0),
    ]
    lower, raise_ = ("FLOAT", "FLOAT16"), ("FLOAT16", "FLOAT")
    before = _profile(("Mul", 100, "FLOAT", "FLOAT"), ("Tanh", 100, "FLOAT", "FLOAT"))
    after = _profile(
        *(("Cast", 7, *lower), ("Mul", 90, "FLOAT16", "FLOAT16"), ("Cast", 8, *raise_)),
        ("Tanh", 100, "FLOAT", "FLOAT"),
    )
    # It wins 10 but needs casts of 15.
    assert _edits(before, after, min_gain=0.0) == [("Mul", "black-list", -10, 15)]


@pytest.mark.parametrize(("least", "found"), [(0.1, True), (0.1001, False)])
def test_gain_below_a_share_of_the_steps_counts_as_noise(least: float, found: bool) -> None:
    before = _profile(("Mul", 900, "FLOAT", "FLOAT"), ("Add", 900, "FLOAT", "FLOAT"))
    after = _profile(("Mul", 1000, "FLOAT16", "FLOAT16"), ("Add", 0, "FLOAT", "FLOAT"))
    assert _edits(before, after, min_gain=least) == (
        [("Mul", "black-list", 100, 0)] if found else []
    )
    # Without a limit a nanosecond must be gained at least.
    same = _profile(("Mul", 900, "FLOAT16", "FLOAT16"), ("Add", 900, "FLOAT", "FLOAT"))
    assert _edits(before, same, min_gain=0.0) == []
    slower = _profile(("Mul", 901, "FLOAT16", "FLOAT16"), ("Add", 900, "FLOAT", "FLOAT"))
    assert _edits(before, slower, min_gain=0.0) == [("Mul", "black-list", 1, 0)]
    for length, gain in ((901, 0), (902, 2)):
        usual = _profile(("Mul", length, "FLOAT16", "FLOAT16"), ("Add", 98, "FLOAT", "FLOAT"))
        assert sum(own_ns for _, _, own_ns, _ in _edits(before, usual)) == gain


@pytest.mark.parametrize(("between", "linked"), [(400, True), (401, False)])
def test_cast_belongs_to_ops_within_a_distance_of_four_hundred(between: int, linked: bool) -> None:
    def far(*ends: tuple[str, int, str, str]) -> Profile:
        first, *rest = ends
        filled = [("Reshape", 0, "INT8", "INT8")] * (between - 1)
        return _profile(first, *filled, *rest)

    softmax = ("SoftmaxV2", 300, "FLOAT", "FLOAT")
    after = far(("Cast", 40, "FLOAT16", "FLOAT"), softmax, ("Cast", 50, "FLOAT", "FLOAT16"))
    white = [("SoftmaxV2", "white-list", 0, 90)]
    assert _edits(after, after) == (white if linked else [])
    rows = [("Cast", 40, "FLOAT16", "FLOAT"), softmax]
    rows += [("Reshape", 0, "INT8", "INT8")] * (between - 1)
    behind = _profile(*rows, ("Cast", 50, "FLOAT", "FLOAT16"))
    assert _edits(behind, behind) == (white if linked else [])


def test_without_outputs_the_preceding_op_is_the_casts_producer() -> None:
    def told(taken: str, given: str | None) -> Profile:
        rows = [("Cast", 40, "FLOAT16", "FLOAT"), ("SoftmaxV2", 300, taken, given)]
        return _profile(*rows, ("Cast", 50, "FLOAT", "FLOAT16"))  # pyright: ignore

    for taken, given, found in (
        ("FLOAT", None, True),
        ("INT8", None, False),
        ("FLOAT", "INT8", False),
        ("FLOAT", "FLOAT", True),
    ):
        profile = told(taken, given)
        assert bool(_edits(profile, profile)) == found


def test_op_with_casts_on_one_side_or_between_other_dtypes_is_unchanged() -> None:
    softmax = ("SoftmaxV2", 300, "FLOAT", "FLOAT")
    raised, lowered = ("Cast", 40, "FLOAT16", "FLOAT"), ("Cast", 50, "FLOAT", "FLOAT16")
    for rows in ((raised, softmax), (softmax, lowered)):
        assert _edits(_profile(*rows), _profile(*rows)) == []
    ints = _profile(("Cast", 40, "INT8", "FLOAT"), softmax, ("Cast", 50, "FLOAT", "INT8"))
    assert _edits(ints, ints) == []
    both = _profile(raised, softmax, lowered)
    assert _edits(both, both) == [("SoftmaxV2", "white-list", 0, 90)]
    twice = _profile(raised, softmax, lowered, raised, softmax, lowered)
    assert _edits(twice, twice) == [("SoftmaxV2", "white-list", 0, 180)]


def test_written_file_has_the_ops_of_each_list() -> None:
    edits = [
        Edit(name=name, target_list=to, own_ns=1, casts_ns=2)  # pyright: ignore[reportArgumentType]
        for name, to in (("B", "black-list"), ("A", "black-list"), ("C", "white-list"))
    ]
    assert json.loads(as_mixlist(edits)) == {
        "black-list": {"to-add": ["B", "A"]},
        "white-list": {"to-add": ["C"]},
    }
    assert as_mixlist(edits[2:]) == (
        '{\n  "white-list": {\n    "to-add": [\n      "C"\n    ]\n  }\n}\n'
    )
    assert edits[0].gain_ns == 3
    with pytest.raises(AttributeError):
        edits[0].own_ns = 3  # pyright: ignore[reportAttributeAccessIssue]
