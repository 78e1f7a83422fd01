"""The tables of a comparison, row by row, for terminal and page."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from jumar.ground.text import Text
from jumar.profiling.comparison import Edit, compare, edit_table, tables
from jumar.profiling.comparison.parts import ChangePart
from jumar.profiling.listing import Listing
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import Options
from tests.profiling.generated import profile_of

_MS = 1_000_000


def _profile(*told: tuple[str, int, str, str], steps: int = 2, **more: Any) -> Profile:
    rows: list[dict[str, Any]] = []
    now = 0
    for step in range(steps):
        for kind, length, taken, given in told:
            row = {"rank": 0, "step": step, "name": kind, "type": kind, "core": "AI_CORE"}
            row |= {"start_ns": now, "duration_ns": length * _MS, "input_shapes": "8"}
            row |= {"output_shapes": "8", "input_types": taken, "output_types": given}
            rows.append(row | {"module": "" if kind == "Add" else "m"})
            now += length * _MS
    return profile_of(rows, **more)


_F, _H = "FLOAT", "FLOAT16"
_BEFORE = _profile(
    ("MatMul", 20, _F, _F), ("Conv2D", 6, _F, _F), ("Relu", 4, _F, _F), ("Add", 3, _F, _F)
)
_AFTER = _profile(
    *(("Cast", 2, _F, _H), ("Cast", 1, _H, _F), ("MatMul", 5, _H, _H), ("Conv2D", 4, _H, _H)),
    *(("Relu", 9, _H, _H), ("Add", 6, _F, _F)),
)


def _told(listing: Listing) -> tuple[str, list[str], list[tuple[Any, ...]]]:
    known = [one.name for one in listing.columns]
    return listing.title.en, known, listing.table.select(known).rows()


def test_precision_mode_comparison_has_five_tables_and_chains() -> None:
    compared = compare(_BEFORE, _AFTER)
    parts, ops, faster, slower, casts, chains = map(_told, tables(compared, Options()))
    times = ["before", "after", "change"]
    assert parts == (
        "Where the difference comes from (ms per step)",
        ["part", *times, "faster", "slower"],
        [
            ("kernels, same dtypes and shapes", 3.0, 6.0, 3.0, 0.0, 3.0),
            ("changed dtypes", 30.0, 18.0, -12.0, -17.0, 5.0),
            ("casts", 0.0, 3.0, 3.0, 0.0, 3.0),
            ("total", 33.0, 27.0, -6.0, None, None),
        ],
    )
    of_types = ["dtypes before", "dtypes after"]
    counts = ["count before", "count after"]
    f, h = "FLOAT → FLOAT", "FLOAT16 → FLOAT16"
    changed = "changed dtypes"
    assert ops == (
        "Ops by change (ms per step)",
        ["part", "type", "module", "shapes", *of_types, *counts, *times],
        [
            (changed, "MatMul", "m", "8", f, h, 1.0, 1.0, 20.0, 5.0, -15.0),
            (changed, "Relu", "m", "8", f, h, 1.0, 1.0, 4.0, 9.0, 5.0),
            ("kernels, same dtypes and shapes", "Add", None, "8", f, f, 1.0, 1.0, 3.0, 6.0, 3.0),
            ("casts", "Cast FLOAT to FLOAT16", "m", "8", None, None, 0.0, 1.0, 0.0, 2.0, 2.0),
            (changed, "Conv2D", "m", "8", f, h, 1.0, 1.0, 6.0, 4.0, -2.0),
            ("casts", "Cast FLOAT16 to FLOAT", "m", "8", None, None, 0.0, 1.0, 0.0, 1.0, 1.0),
        ],
    )
    by_dtype = ["type", "dtypes before", "dtypes after", *times]
    raw, low = "FLOAT|FLOAT", "FLOAT16|FLOAT16"
    assert faster == (
        "Ops made faster by their dtype (ms per step)",
        by_dtype,
        [("MatMul", raw, low, 20.0, 5.0, -15.0), ("Conv2D", raw, low, 6.0, 4.0, -2.0)],
    )
    assert slower == (
        "Ops made slower by their dtype (ms per step)",
        by_dtype,
        [("Relu", raw, low, 4.0, 9.0, 5.0)],
    )
    assert casts == (
        "Casts that take more time (ms per step)",
        ["type", *counts, *times],
        [
            ("Cast FLOAT to FLOAT16", 0.0, 1.0, 0.0, 2.0, 2.0),
            ("Cast FLOAT16 to FLOAT", 0.0, 1.0, 0.0, 1.0, 1.0),
        ],
    )
    assert chains == (
        "Casts and format changes that cancel out, second profile (ms per step)",
        ["what", "shape", "of", "by_way_of", "module", "count", "saved_ms"],
        [("Cast + Cast", "8", "FLOAT", "FLOAT16", "m", 1.0, 3.0)],
    )
    assert len(list(tables(compared, Options(), chains=False))) == 5
    assert len(list(tables(compare(_BEFORE, _BEFORE), Options()))) == 2


def test_op_as_fast_in_the_other_dtype_is_neither_faster_nor_slower() -> None:
    compared = compare(_profile(("Relu", 4, _F, _F)), _profile(("Relu", 4, _H, _H)))
    rows = {listing.title.en: listing.table.height for listing in tables(compared, Options())}
    by_dtype = [height for title, height in rows.items() if "by their dtype" in title]
    assert by_dtype == [0, 0]


def test_tables_are_truncated_to_the_requested_rows_and_say_so() -> None:
    compared = compare(_BEFORE, _AFTER)

    def heights(top: int) -> list[int]:
        return [one.table.height for one in tables(compared, Options(top=top))]

    assert heights(0) == [4, 6, 2, 1, 2, 1]
    assert heights(1) == [4, 1, 1, 1, 1, 1]

    def note(top: int) -> Text | None:
        _, ops, *_ = tables(compared, Options(top=top))
        return ops.note

    assert note(5) == Text(
        en="1 groups with smaller changes are not shown.",
        zh="此处省略变化较小的 1 组。",
    )
    assert (note(6), note(7), note(0)) == (None, None, None)


def test_parts_are_named_in_chinese() -> None:
    parts, ops, *_ = tables(compare(_BEFORE, _AFTER), Options(language="zh"))
    names = ["算子本身（类型和形状相同）", "数据类型变化", "类型转换"]
    assert parts.table["part"].to_list() == [*names, "合计"]
    assert set(ops.table["part"]) == set(names)


def test_edits_show_gain_and_reason() -> None:
    compared = compare(_BEFORE, _AFTER)
    edits = [
        Edit(name="A", target_list="black-list", own_ns=3 * _MS, casts_ns=_MS),
        Edit(name="B", target_list="black-list", own_ns=-_MS, casts_ns=3 * _MS),
        Edit(name="C", target_list="white-list", own_ns=0, casts_ns=_MS // 2),
    ]
    listing = edit_table(compared, edits, "en")
    assert _told(listing) == (
        "Edits of modify_mixlist (estimates, ms per step)",
        ["gain_ms", "name", "to", "why"],
        [
            (
                *(2.0, "A", "black-list"),
                "in 16 bits it is 1.500 ms per step slower, and its casts take 0.500 ms",
            ),
            (
                1.0,
                "B",
                "black-list",
                "in 16 bits it is 0.500 ms per step faster, and its casts take 1.500 ms",
            ),
            (0.25, "C", "white-list", "it stays in 32 bits between casts of 0.250 ms per step"),
        ],
    )
    assert edit_table(compared, edits, "zh").table["why"].to_list() == [
        "改为 16 位后每迭代多用 1.500 ms，类型转换耗时 0.500 ms",
        "改为 16 位后每迭代少用 0.500 ms，类型转换耗时 1.500 ms",
        "它保持 32 位，前后的类型转换每迭代耗时 0.250 ms",
    ]
    even = replace(edits[0], own_ns=0)
    assert (
        even.reason(1).en
        == "in 16 bits it is 0.000 ms per step faster, and its casts take 1.000 ms"
    )


def test_limitations_of_a_comparison_are_noted() -> None:
    def notes(before: Profile, after: Profile) -> list[str]:
        return [note.en for note in compare(before, after).notes]

    def later(profile: Profile) -> Profile:
        return replace(profile, ops=profile.ops.with_columns(pl.col("start_ns") + 1))

    row = ("Add", 3, _F, _F)
    short = replace(_profile(row), source="short")
    long = replace(_profile(row, steps=5), source="long")
    same = "both are the same capture: the same ops at the same times"
    assert notes(short, short) == notes(short, replace(short, source="copy")) == [same]
    longer = replace(short, ops=short.ops.with_columns(pl.col("duration_ns") + 1))
    assert notes(short, longer) == notes(short, later(short)) == []
    assert notes(short, long) == ["long has 5 steady steps; 2 are compared"]
    assert notes(long, short) == ["long has 5 steady steps; 2 are compared"]
    bare = profile_of([{"rank": 0, "step": 0, "name": "x", "start_ns": 0, "duration_ns": 5}])
    assert notes(bare, replace(_profile(row, steps=1), source="one")) == [
        "made has no op types (Level 0): ops are distinguished by their names",
        "made has no dtypes: changed dtypes cannot be detected",
    ]
    npu, other = replace(short, chip="A"), replace(later(short), chip="B")
    assert notes(npu, other) == ["different chips: A and B"]
    assert notes(npu, replace(other, kind="cuda")) == ["different devices: npu and cuda"]
    assert notes(npu, later(short)) == notes(npu, later(npu)) == []


def test_comparison_totals_match_its_steps() -> None:
    compared = compare(_BEFORE, _AFTER)
    assert (compared.steps, compared.before_ns, compared.after_ns) == (2, 66 * _MS, 54 * _MS)
    assert compared.delta_ns == -12 * _MS
    assert compared.changes_dtypes
    assert not compare(_BEFORE, _BEFORE).changes_dtypes
    assert compared.parts[1] == ChangePart(
        name="dtype",
        before_ns=60 * _MS,
        after_ns=36 * _MS,
        faster_ns=-34 * _MS,
        slower_ns=10 * _MS,
    )
    assert compared.parts[1].delta_ns == -24 * _MS
    assert "changes" not in repr(compared)
    for made, name in ((compared, "notes"), (compared.parts[0], "before_ns")):
        with pytest.raises(AttributeError):
            setattr(made, name, ())
