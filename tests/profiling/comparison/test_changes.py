"""The groups of ops of two profiles, each with its own times before and after."""

from typing import Any

from jumar.profiling.comparison import compare
from jumar.profiling.comparison.changes import changes_of
from jumar.profiling.comparison.own_times import prepare
from jumar.profiling.profile import Profile
from tests.profiling.generated import profile_of


def _profile(*told: tuple[str, int, dict[str, Any]], steps: int = 1, gap: int = 0) -> Profile:
    """Ops one after the other, with `gap` before those named `Late`."""
    rows: list[dict[str, Any]] = []
    now = 0
    for step in range(steps):
        for kind, length, more in told:
            now += gap if kind == "Late" else 0
            row = {"rank": 0, "step": step, "name": kind, "type": kind, "core": "AI_CORE"}
            row |= {"start_ns": now, "duration_ns": length, "module": "m", "input_shapes": "8"}
            rows.append(row | {"input_types": "FLOAT", "output_types": "FLOAT"} | more)
            now += length
    return profile_of(rows)


_F16 = {"input_types": "FLOAT16", "output_types": "FLOAT16"}
_BEFORE = (
    ("MatMulV2", 100, {}),
    ("Add", 50, {}),
    ("Add", 30, {}),
    ("Late", 10, {}),
    ("Cast", 10, {"output_types": "FLOAT16"}),
    ("Cast", 4, {"output_types": None}),
    ("TransData", 20, {"input_formats": "ND", "output_formats": "NZ"}),
    ("TransData", 7, {}),
    ("hcom", 30, {"core": "COMMUNICATION"}),
    ("Memcpy", 5, {"core": "CUDA_MEMCPY"}),
    ("Anchor", 1, {}),
    ("Old", 40, {}),
    ("Older", 41, {}),
    ("Older", 2, {}),
    ("Anchor", 1, {"input_shapes": "9"}),
    ("Reshaped", 60, {}),
    ("Anchor", 1, {"input_shapes": "10"}),
    ("Gone", 8, _F16),
    ("Anchor", 1, {"input_shapes": "11"}),
)
_AFTER = (
    ("MatMulV2", 60, _F16),
    ("Add", 55, {}),
    ("Add", 30, {}),
    ("Late", 10, {}),
    ("Cast", 10, {"output_types": "FLOAT16"}),
    ("Cast", 10, {"output_types": "FLOAT16"}),
    ("Cast", 4, {"output_types": None}),
    ("TransData", 20, {"input_formats": "ND", "output_formats": "NZ"}),
    ("TransData", 8, {}),
    ("hcom", 45, {"core": "COMMUNICATION"}),
    ("Memcpy", 6, {"core": "CUDA_MEMCPY"}),
    ("Anchor", 1, {}),
    ("New", 13, {}),
    ("Anchor", 1, {"input_shapes": "9"}),
    ("Reshaped", 63, {"input_shapes": "7"}),
    ("Anchor", 1, {"input_shapes": "10"}),
    ("Anchor", 1, {"input_shapes": "11"}),
    ("Added", 9, {"output_types": "BF16"}),
)


def test_every_op_is_in_one_group_with_its_times_on_both_sides() -> None:
    before, after = prepare(_profile(*_BEFORE, gap=6)), prepare(_profile(*_AFTER, gap=17))
    both, half = "FLOAT|FLOAT", "FLOAT16|FLOAT16"
    assert changes_of(before, after).rows() == [
        ("replaced", "2 x Older + Old → New", "", "", "", "", 3, 1, 83, 13, -70),
        ("dtype", "MatMulV2", "m", "8", both, half, 1, 1, 100, 60, -40),
        ("communication", "hcom", "", "", "", "", 1, 1, 30, 45, 15),
        ("waiting", "before Late", "", "", "", "", 1, 1, 6, 17, 11),
        ("casts", "Cast FLOAT to FLOAT16", "m", "8", "", "", 1, 2, 10, 20, 10),
        ("count", "Added", "m", "8", "", "FLOAT|BF16", 0, 1, 0, 9, 9),
        ("count", "Gone", "m", "8", half, "", 1, 0, 8, 0, -8),
        ("kernel", "Add", "m", "8", both, both, 2, 2, 80, 85, 5),
        ("shape", "Reshaped", "m", "8 → 7", both, both, 1, 1, 60, 63, 3),
        ("copies", "Memcpy", "", "", "", "", 1, 1, 5, 6, 1),
        ("formats", "TransData", "m", "8", "", "", 1, 1, 7, 8, 1),
        ("casts", "Cast of FLOAT", "m", "8", "", "", 1, 1, 4, 4, 0),
        ("formats", "TransData ND to NZ", "m", "8", "", "", 1, 1, 20, 20, 0),
        ("kernel", "Anchor", "m", "10", both, both, 1, 1, 1, 1, 0),
        ("kernel", "Anchor", "m", "11", both, both, 1, 1, 1, 1, 0),
        ("kernel", "Anchor", "m", "8", both, both, 1, 1, 1, 1, 0),
        ("kernel", "Anchor", "m", "9", both, both, 1, 1, 1, 1, 0),
        ("kernel", "Late", "m", "8", both, both, 1, 1, 10, 10, 0),
    ]


def test_groups_of_several_steps_are_summed() -> None:
    before = prepare(_profile(*_BEFORE[:3], steps=3))
    after = prepare(_profile(*_AFTER[:3], steps=3))
    both = "FLOAT|FLOAT"
    assert changes_of(before, after).rows() == [
        ("dtype", "MatMulV2", "m", "8", both, "FLOAT16|FLOAT16", 3, 3, 300, 180, -120),
        ("kernel", "Add", "m", "8", both, both, 6, 6, 240, 255, 15),
    ]


def test_ops_pair_despite_a_new_version_module_or_unknown_dtype() -> None:
    before = _profile(("MatMul", 5, {}), ("Add", 5, {"module": "a"}), ("Mul", 5, {}))
    after = _profile(
        ("MatMulV2", 6, {}),
        ("Add", 7, {"module": "b"}),
        ("Mul", 8, {"input_types": None, "output_types": None}),
    )
    both = "FLOAT|FLOAT"
    assert compare(before, after).changes.rows() == [
        ("kernel", "Mul", "m", "8", both, "", 1, 1, 5, 8, 3),
        ("kernel", "Add", "a → b", "8", both, both, 1, 1, 5, 7, 2),
        ("kernel", "MatMul → MatMulV2", "m", "8", both, both, 1, 1, 5, 6, 1),
    ]


def test_layers_that_only_one_side_names_part_no_ops() -> None:
    before = _profile(("Add", 5, {"module": "a"}), ("Mul", 9, {}), ("Exp", 9, {}))
    for layer in (None, "renamed"):
        after = _profile(("Mul", 9, {}), ("Exp", 9, {}), ("Add", 5, {"module": layer}))
        changes = compare(before, after).changes
        assert changes["part"].to_list() == ["kernel"] * 3


def test_at_most_six_replaced_types_are_named() -> None:
    names = "ABCDEFGH"
    anchor = ("Anchor", 1, {})

    def replaced(count: int) -> str:
        before = _profile(anchor, *((names[place], 2, {}) for place in range(count)), anchor)
        after = _profile(anchor, ("New", 3, {}), anchor)
        (row,) = compare(before, after).changes.filter(part="replaced").to_dicts()
        return row["type"]

    assert replaced(6) == "A + B + C + D + E + F → New"
    assert replaced(8) == "A + B + C + D + E + F + 2 more → New"


def test_trailing_time_of_a_step_is_waiting() -> None:
    def told(end: int) -> Profile:
        row = {"rank": 0, "name": "A", "type": "A", "core": "CPU", "start_ns": 0, "duration_ns": 5}
        mark = {"rank": 0, "step": 0, "start_ns": 0, "end_ns": end}
        return profile_of([row], kind="cpu", steps=[mark])

    rows = compare(told(9), told(20)).changes.select("part", "type", "before_ns", "after_ns").rows()
    assert rows == [("waiting", "before the end of the step", 4, 15), ("kernel", "A", 5, 5)]


def test_groups_with_equal_changes_are_sorted_by_key() -> None:
    told = [
        (kind, 5, {"module": module, "input_shapes": shape, "input_types": dtype})
        for kind in ("B", "A")
        for module in ("m", "l")
        for shape in ("9", "8")
        for dtype in ("INT8", "FLOAT")
    ]
    table = compare(_profile(*told), _profile(*told)).changes
    keys = table.select("part", "type", "before", "after", "shapes", "module").rows()
    assert len(keys) == 16
    assert keys == sorted(keys)
