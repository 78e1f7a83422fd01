"""Replacements, and where characters go."""

import ast

from hypothesis import given
from hypothesis import strategies as st

from jumar.porting.edits import Text
from jumar.porting.rewriting.applying import Moved, applied, compatible, ordered
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
def test_every_character_outside_of_replacements_is_found_again(
    case: tuple[str, list[Replacement]],
) -> None:
    text, replacements = case
    result = applied(text, ordered(replacements))
    moved = Moved(ordered(replacements))
    for offset, character in enumerate(text):
        if not any(change.start <= offset < change.end for change in replacements):
            assert result[moved.forward(offset)] == character
            assert moved.backward(moved.forward(offset)) == offset


@given(disjoint())
def test_new_text_comes_from_where_it_was_put(case: tuple[str, list[Replacement]]) -> None:
    text, replacements = case
    moved = Moved(ordered(replacements))
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


def test_of_two_rewrites_of_one_place_the_first_wins() -> None:
    first, second, third = (
        rewrite((2, 5, "a")),
        rewrite((4, 6, "b"), (9, 9, "c")),
        rewrite((6, 8, "")),
    )
    assert compatible([first, second, third]) == [first, third]


def test_an_insertion_within_something_removed_is_left_out() -> None:
    assert len(compatible([rewrite((2, 8, "")), rewrite((4, 4, "x"))])) == 1
    assert len(compatible([rewrite((2, 8, "")), rewrite((8, 8, "x")), rewrite((2, 2, "y"))])) == 3
