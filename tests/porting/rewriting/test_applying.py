"""Replacements, and where characters go."""

import ast
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.porting.edits import Text
from jumar.porting.rewriting.applying import (
    OffsetMap,
    applied,
    compatible,
    emptied_blocks,
    ordered,
)
from jumar.porting.rewriting.changes import Replacement, Rewrite

NODE = ast.parse("x").body[0]
REASON = Text(en="", zh="")


@st.composite
def disjoint(draw: st.DrawFn) -> tuple[str, list[Replacement]]:
    text = draw(st.text(alphabet="abcdef", min_size=0, max_size=30))
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    return text, [
        Replacement(start=start, end=end, text=draw(st.text(alphabet="XYZ", max_size=5)))
        for start, end in pairs
    ]


@given(disjoint())
def test_characters_outside_replacements_are_preserved(
    case: tuple[str, list[Replacement]],
) -> None:
    text, replacements = case
    result = applied(text, ordered(replacements))
    moved = OffsetMap(ordered(replacements))
    for offset, character in enumerate(text):
        if not any(change.start <= offset < change.end for change in replacements):
            assert result[moved.forward(offset)] == character
            assert moved.backward(moved.forward(offset)) == offset


@given(disjoint())
def test_new_text_maps_to_its_insertion_point(case: tuple[str, list[Replacement]]) -> None:
    text, replacements = case
    moved = OffsetMap(ordered(replacements))
    result = applied(text, ordered(replacements))
    starts = {change.start for change in replacements}
    for offset, character in enumerate(result):
        old = moved.backward(offset)
        assert old in starts if character in "XYZ" else text[old] == character


def rewrite(*spans: tuple[int, int, str]) -> Rewrite:
    return Rewrite(
        node=NODE,
        replacements=tuple(Replacement(start=a, end=b, text=text) for a, b, text in spans),
        reason=REASON,
    )


def test_first_of_two_overlapping_rewrites_wins() -> None:
    first, second, third = (
        rewrite((2, 5, "a")),
        rewrite((4, 6, "b"), (9, 9, "c")),
        rewrite((6, 8, "")),
    )
    assert compatible([first, second, third]) == [first, third]


def test_insertion_inside_removed_text_is_dropped() -> None:
    assert len(compatible([rewrite((2, 8, "")), rewrite((4, 4, "x"))])) == 1
    assert len(compatible([rewrite((2, 8, "")), rewrite((8, 8, "x")), rewrite((2, 2, "y"))])) == 3


def change(
    start: int,
    end: int,
    text: str = "",
    side: Literal["close", "plain", "open"] = "plain",
    width: int = 0,
) -> Replacement:
    return Replacement(start=start, end=end, text=text, side=side, width=width)


def test_insertions_at_one_position_nest_before_existing_text() -> None:
    expected = [
        change(1, 2, "r"),
        change(4, 4, "inner close", "close", 1),
        change(4, 4, "outer close", "close", 5),
        change(4, 4, "plain"),
        change(4, 4, "outer open", "open", 5),
        change(4, 4, "inner open", "open", 1),
        change(4, 6, "changed"),
    ]
    for turn in range(len(expected)):
        assert ordered(reversed(expected[turn:] + expected[:turn])) == expected


def test_offsets_follow_insertions_removals_and_replacements() -> None:
    # 0123456789 becomes 01AA2(B)45C68D9.
    changes = [
        change(2, 2, "AA"), change(3, 4, "(B)"), change(6, 6, "C", "close"),
        change(7, 8), change(9, 9, "D", "open"),
    ]  # fmt: skip
    assert applied("0123456789", changes) == "01AA2(B)45C68D9"
    moved = OffsetMap(changes)
    assert [moved.forward(offset) for offset in range(11)] == [
        *(0, 1, 4, 5, 8, 9, 11, 12, 12, 13, 15),
    ]
    ends = [moved.forward(offset, end=True) for offset in (0, 1, 2, 4, 5, 6, 7, 8, 9, 10)]
    assert ends == [0, 1, 2, 8, 9, 11, 12, 12, 13, 15]
    ahead = [moved.forward(offset, ahead=True) for offset in range(11)]
    assert ahead == [0, 1, 2, 5, 8, 9, 11, 12, 12, 13, 15]
    back = [moved.backward(offset) for offset in range(16)]
    assert back == [0, 1, 2, 2, 2, 3, 3, 3, 4, 5, 6, 6, 8, 9, 9, 10]
    wide = OffsetMap([change(2, 8, "xy")])
    assert [wide.forward(offset) for offset in (1, 2, 3, 7, 8, 9)] == [1, 2, 2, 2, 4, 5]
    assert [wide.forward(offset, end=True) for offset in (2, 3, 8)] == [4, 4, 4]
    assert [wide.backward(offset) for offset in (1, 2, 3, 4, 5)] == [1, 2, 2, 8, 9]


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (change(2, 5), change(5, 7), True),
        (change(2, 5), change(4, 7), False),
        (change(2, 5), change(0, 2), True),
        (change(2, 5), change(0, 3), False),
        (change(2, 5), change(2, 2, "x"), True),
        (change(2, 5), change(3, 3, "x"), False),
        (change(2, 5), change(5, 5, "x"), True),
        (change(3, 3, "x"), change(2, 5), False),
        (change(2, 2, "x"), change(2, 5), True),
        (change(5, 5, "x"), change(2, 5), True),
        (change(2, 2, "x"), change(2, 2, "y"), True),
        (change(2, 2, "x"), change(2, 2, "x", "open"), True),
        (change(2, 2, "x"), change(2, 2, "x"), False),
        (change(2, 2, "x"), change(3, 3, "x"), True),
    ],
)
def test_independent_changes_are_both_kept(
    first: Replacement, second: Replacement, both: bool
) -> None:
    rewrites = [Rewrite(node=NODE, replacements=(one,), reason=REASON) for one in (first, second)]
    assert compatible(rewrites) == rewrites[: 2 if both else 1]


@pytest.mark.parametrize(
    ("text", "gone", "expected"),
    [
        ("if a:\n    b\n    c\n", "bc", "if a:\n    pass\n"),
        ("if a:\n    b\n    c\nelse:\n    d\n    e\n", "de", None),
        ("if a:\n    b\n    c\n", "b", "if a:\n    c\n"),
        ("try:\n    b\n    c\nfinally:\n    d\n    e\n", "bcde", None),
        ("b\nc\n", "bc", ""),
        ("for a in x:\n    b\n    c\nelse:\n    d\n    e\n", "bcde", None),
    ],
)
def test_fully_removed_block_gets_a_pass(text: str, gone: str, expected: str | None) -> None:
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:place])) for place in range(len(lines) + 1)]
    spans: dict[ast.stmt, tuple[int, int]] = {}
    removals: list[Replacement] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            spans[node] = start, end
            if text[start:end] in tuple(gone):
                removals.append(change(starts[node.lineno - 1], starts[node.lineno]))
    found = ordered(emptied_blocks(tree, spans, removals))
    if expected is None:
        written = applied(text, found)
        ast.parse(written)
        assert written.count("pass") == len(gone) // 2
        assert not set(gone) & {line.strip() for line in written.splitlines()}
    else:
        assert applied(text, found) == expected


def test_replaced_text_is_not_removed() -> None:
    tree = ast.parse("if a:\n    b\n    c\n")
    branch = tree.body[0]
    assert isinstance(branch, ast.If)
    spans: dict[ast.stmt, tuple[int, int]] = dict(
        zip([branch, *branch.body], [(0, 17), (10, 11), (16, 17)], strict=True)
    )
    changes = [change(6, 12), change(16, 17, "d")]
    assert emptied_blocks(tree, spans, changes) == changes
    assert emptied_blocks(tree, spans, [change(3, 3, "")]) == [change(3, 3, "")]
    both = [change(6, 12), change(12, 18)]
    assert emptied_blocks(tree, spans, both) == [change(10, 11, "pass"), change(12, 18)]
    # One removal of the whole branch leaves nothing to fill.
    whole = [change(0, 18)]
    assert emptied_blocks(tree, spans, whole) == [change(10, 11, "pass")]
