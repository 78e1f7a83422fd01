"""Every form of label file is recognised by its lines, and bad lines are named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.polygons.label_lines import BadLine, Outline, form_of, outlines_of

ICDAR = "377,117,463,117,465,130,378,130,Genaxis Theatre\n493,115,519,115,519,131,493,131,[06]\n"
MLT = "10,20,90,20,90,44,10,44,Latin,Rue, 12\n5,60,80,62,80,80,5,78,Chinese,中文\n"
ICDAR13 = '158 128 411 181 "Footpath"\n443 128 501 169 "To"\n'
SROIE_BOXES = "72,25,326,64,TAN WOON YANN\n50,82,440,121,12,50\n"
CTW = "10,10,50,5,90,10,90,30,50,25,10,30,####CURVED\n1,1,9,1,9,9,1,9,#######\n"
TOTAL_TEXT = (
    "x: [[115 503 494 115]], y: [[322 346 426 404]], ornt: [u'm'], transcriptions: [u'nauGHTY']\n"
    "x: [[ 734  1058 1061\n  744]], y: [[360 369 449 430]], ornt: [u'm'], "
    "transcriptions: [u'NURIS']\n"
    "x: [[1 9 9 1 0]], y: [[1 1 9 9 5]], ornt: [u'#'], transcriptions: [u'#']\n"
)


def read(text: str, form: str | None = None) -> list[Outline | BadLine]:
    return list(outlines_of(text, form or form_of([text])))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("text", "form", "words", "corners"),
    [
        (ICDAR, "quadrilaterals", ["Genaxis Theatre", "[06]"], [4, 4]),
        (MLT, "languages", ["Rue, 12", "中文"], [4, 4]),
        (ICDAR13, "rectangles", ["Footpath", "To"], [4, 4]),
        (SROIE_BOXES, "rectangles", ["TAN WOON YANN", "12,50"], [4, 4]),
        (CTW, "polygons", ["CURVED", "###"], [6, 4]),
        (TOTAL_TEXT, "total-text", ["nauGHTY", "NURIS", "###"], [4, 4, 5]),
    ],
)
def test_forms_are_recognised(text: str, form: str, words: list[str], corners: list[int]) -> None:
    assert form_of([text]) == form
    outlines = read(text)
    assert all(isinstance(each, Outline) for each in outlines), outlines
    assert [each.text for each in outlines if isinstance(each, Outline)] == words
    assert [len(each.corners) for each in outlines if isinstance(each, Outline)] == corners


def test_total_text_takes_its_corners_from_x_and_y() -> None:
    first = read(TOTAL_TEXT)[0]
    assert isinstance(first, Outline)
    np.testing.assert_array_equal(first.corners, [[115, 322], [503, 346], [494, 426], [115, 404]])


def test_rectangles_run_clockwise() -> None:
    first = read(ICDAR13)[0]
    assert isinstance(first, Outline)
    np.testing.assert_array_equal(first.corners, [[158, 128], [411, 128], [411, 181], [158, 181]])


def test_four_numbers_where_eight_belong_are_a_bad_line() -> None:
    bad = read(ICDAR + "1,2,3,4,word\n")[-1]
    assert bad == BadLine(3, "4 numbers where 8 belong (left, top, right, bottom?)")


def test_numbers_as_text_do_not_change_the_form() -> None:
    numeric = "1,1,9,1,9,9,1,9,2019\n1,1,9,1,9,9,1,9,12,50\n"
    assert form_of([numeric]) == "quadrilaterals"
    named = "1,1,9,1,9,9,1,9,Latin,America\n1,1,9,1,9,9,1,9,Chinatown, east\n"
    assert form_of([named]) == "quadrilaterals"
    outlines = read(numeric)
    assert [each.text for each in outlines if isinstance(each, Outline)] == ["2019", "12,50"]


@pytest.mark.parametrize(
    ("text", "form", "reason"),
    [
        ("a,b,c", "quadrilaterals", "0 numbers where 8 belong"),
        ("1,1,9,1,9,9,1,9", "languages", "language"),
        ("1,2,3", "rectangles", "3 numbers where 4 belong"),
        ("1,2,3,4,5,6,7,####x", "polygons", "7 numbers"),
        ("1,2,3,x,5,6,####x", "polygons", "'x' is not a coordinate"),
        ("x: [[1 2 3]], y: [[1 2]]", "total-text", "3 x but 2 y"),
        ("x: [[1 2 oops]], y: [[1 2 3]]", "total-text", "'oops' is not a coordinate"),
    ],
)
def test_bad_lines_say_what_is_wrong(text: str, form: str, reason: str) -> None:
    (bad,) = read(text, form)
    assert isinstance(bad, BadLine)
    assert reason in bad.reason


@given(st.text(max_size=80))
def test_no_text_at_all_raises(text: str) -> None:
    for form in ("quadrilaterals", "languages", "rectangles", "polygons", "total-text"):
        read(text, form)
    form_of([text])
