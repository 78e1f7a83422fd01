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
def test_label_formats_are_recognised(
    text: str, form: str, words: list[str], corners: list[int]
) -> None:
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


def test_four_numbers_instead_of_eight_are_a_bad_line() -> None:
    bad = read(ICDAR + "1,2,3,4,word\n")[-1]
    assert bad == BadLine(3, "4 numbers instead of 8 (left, top, right, bottom?)")


def test_numeric_text_does_not_change_the_format() -> None:
    numeric = "1,1,9,1,9,9,1,9,2019\n1,1,9,1,9,9,1,9,12,50\n"
    assert form_of([numeric]) == "quadrilaterals"
    named = "1,1,9,1,9,9,1,9,Latin,America\n1,1,9,1,9,9,1,9,Chinatown, east\n"
    assert form_of([named]) == "quadrilaterals"
    outlines = read(numeric)
    assert [each.text for each in outlines if isinstance(each, Outline)] == ["2019", "12,50"]


@pytest.mark.parametrize(
    ("text", "form", "reason"),
    [
        ("a,b,c", "quadrilaterals", "0 numbers instead of 8"),
        ("1,1,9,1,9,9,1,9", "languages", "language"),
        ("1,2,3", "rectangles", "3 numbers instead of 4"),
        ("1,2,3,4,5,6,7,####x", "polygons", "7 numbers"),
        ("1,2,3,x,5,6,####x", "polygons", "'x' is not a coordinate"),
        ("x: [[1 2 3]], y: [[1 2]]", "total-text", "3 x but 2 y"),
        ("x: [[1 2 oops]], y: [[1 2 3]]", "total-text", "'oops' is not a coordinate"),
    ],
)
def test_bad_lines_are_explained(text: str, form: str, reason: str) -> None:
    (bad,) = read(text, form)
    assert isinstance(bad, BadLine)
    assert reason in bad.reason


@given(st.text(max_size=80))
def test_empty_text_raises(text: str) -> None:
    for form in ("quadrilaterals", "languages", "rectangles", "polygons", "total-text"):
        read(text, form)
    form_of([text])


EIGHT, SIX, FOUR = "1,1,9,1,9,9,1,9", "1,1,9,1,9,9", "1,2,3,4"
X, Y = "x: [[1 9 9 1]]", "y: [[1 1 9 9]]"


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        ([], "quadrilaterals"),
        (["", "\n \n"], "quadrilaterals"),
        # More than half of the lines decide for Total-Text.
        ([f"{X}, {Y}", f"{EIGHT},a"], "quadrilaterals"),
        ([f"{X}, {Y}", f"{EIGHT},a", f"{X}, {Y}"], "total-text"),
        # Every line is marked, or every line is numbers alone that are not always eight.
        ([f"{EIGHT},####a\n{SIX},####b"], "polygons"),
        ([f"{EIGHT},#######\n{EIGHT},a"], "quadrilaterals"),
        ([f"{EIGHT}\n{EIGHT}"], "quadrilaterals"),
        ([f"{EIGHT}\n{SIX}"], "polygons"),
        ([SIX], "polygons"),
        ([f"{EIGHT},5,5"], "polygons"),
        ([f"{SIX},1\n{SIX},2"], "rectangles"),
        ([f"{EIGHT},1\n{EIGHT},2"], "quadrilaterals"),
        ([f"{SIX}\n{SIX},word"], "rectangles"),
        # Four to seven numbers in most of the lines.
        ([f"{FOUR},a"], "rectangles"),
        ([f"{FOUR},5,6,7"], "rectangles"),
        ([f"{FOUR},a\n{EIGHT},b"], "quadrilaterals"),
        ([f"{FOUR},a\n{FOUR},b\n{EIGHT},c"], "rectangles"),
        (["1,2,3,a\n4,5,6,b"], "quadrilaterals"),
        (["1 2 3 4 a b"], "rectangles"),
        (["1 2 3 a b"], "quadrilaterals"),
        # A language in every line that is long enough, and a text behind it.
        ([f"{EIGHT},Latin,a\n{EIGHT}, Hindi ,b"], "languages"),
        ([f"{EIGHT},Latin"], "quadrilaterals"),
        ([f"{EIGHT},Latin,a\n{EIGHT},Klingon,b"], "quadrilaterals"),
        ([f"{EIGHT},Latin,a\n{FOUR},b"], "languages"),
    ],
)
def test_format_is_inferred_from_all_lines_together(texts: list[str], form: str) -> None:
    assert form_of(texts) == form


@pytest.mark.parametrize(
    ("form", "line", "corners", "text"),
    [
        ("quadrilaterals", EIGHT, [[1, 1], [9, 1], [9, 9], [1, 9]], ""),
        ("quadrilaterals", f"{EIGHT}, a, b ", [[1, 1], [9, 1], [9, 9], [1, 9]], "a, b"),
        (
            "quadrilaterals",
            " 1.5,-2,+3.,.5,1e1,2E-1,7,8,9",
            [[1.5, -2], [3, 0.5], [10, 0.2], [7, 8]],
            "9",
        ),
        ("languages", f"{EIGHT},Latin", [[1, 1], [9, 1], [9, 9], [1, 9]], ""),
        ("languages", f"{EIGHT},Latin,a,b", [[1, 1], [9, 1], [9, 9], [1, 9]], "a,b"),
        ("rectangles", FOUR, [[1, 2], [3, 2], [3, 4], [1, 4]], ""),
        ("rectangles", '1 2 3 4 "a, b"', [[1, 2], [3, 2], [3, 4], [1, 4]], "a, b"),
        ("rectangles", '1,2,3,4,"', [[1, 2], [3, 2], [3, 4], [1, 4]], '"'),
        ("rectangles", '1,2,3,4,""', [[1, 2], [3, 2], [3, 4], [1, 4]], ""),
        ("rectangles", '1,2,3,4,"a', [[1, 2], [3, 2], [3, 4], [1, 4]], '"a'),
        ("rectangles", "1,2,3,4,'a'", [[1, 2], [3, 2], [3, 4], [1, 4]], "'a'"),
        ("polygons", f"{SIX},####", [[1, 1], [9, 1], [9, 9]], ""),
        ("polygons", f" {SIX} #### a####b ", [[1, 1], [9, 1], [9, 9]], "a####b"),
        ("total-text", f"{X}, {Y}", [[1, 1], [9, 1], [9, 9], [1, 9]], ""),
        (
            "total-text",
            f"{X}, {Y}, transcriptions: [u'a]b']",
            [[1, 1], [9, 1], [9, 9], [1, 9]],
            "a]b",
        ),
        ("total-text", f'{X}, {Y}, transcriptions: ["a"]', [[1, 1], [9, 1], [9, 9], [1, 9]], "a"),
        (
            "total-text",
            f"{X}, {Y}, transcriptions: ['a\"]",
            [[1, 1], [9, 1], [9, 9], [1, 9]],
            "'a\"",
        ),
        ("total-text", f"{X}, {Y}, transcriptions: [']", [[1, 1], [9, 1], [9, 9], [1, 9]], "'"),
        ("total-text", f"{X}, {Y}, transcriptions: [aba]", [[1, 1], [9, 1], [9, 9], [1, 9]], "aba"),
        (
            "total-text",
            "y: [[5,6.5]], x: [[1, 2]], transcriptions: [u'#']",
            [[1, 5], [2, 6.5]],
            "###",
        ),
    ],
)
def test_lines_parse_into_corners_and_text(
    form: str, line: str, corners: list[list[float]], text: str
) -> None:
    (outline,) = read(line, form)
    assert isinstance(outline, Outline)
    assert outline.corners.tolist() == corners
    assert (outline.line, outline.text) == (1, text)


@pytest.mark.parametrize(
    ("form", "line", "reason"),
    [
        ("quadrilaterals", "1,1,9,1,9,9,1", "7 numbers instead of 8"),
        ("quadrilaterals", "1,a", "1 number instead of 8"),
        ("quadrilaterals", FOUR, "4 numbers instead of 8 (left, top, right, bottom?)"),
        ("quadrilaterals", "1,2,3,4,5,x,6,7,8", "5 numbers instead of 8"),
        ("languages", EIGHT, "the language and the text are missing"),
        ("languages", "1,1,9,1,9,9,1,x,Latin", "7 numbers instead of 8"),
        ("rectangles", "1,a", "1 number instead of 4"),
        ("rectangles", "1 2 3", "3 numbers instead of 4"),
        ("polygons", "1,2,3,4,####a", "4 numbers instead of 6, 8, 10, ... for the corners"),
        ("polygons", f"{SIX},7", "7 numbers instead of 6, 8, 10, ... for the corners"),
        (
            "polygons",
            "1,2,3,4,5, a coordinate with a long name,7",
            "'a coordinate with a ' is not a coordinate",
        ),
        ("total-text", X, "not of the form x: [[...]], y: [[...]]"),
        ("total-text", f"{X}, y: [[1 1 9]]", "4 x but 3 y"),
        (
            "total-text",
            "x: [[1 abcdefghijklmnopqrstuvwxyz]], y: [[1 2]]",
            "'abcdefghijklmnopqrst' is not a coordinate",
        ),
        ("total-text", "x: [[1 2]], y: [[1 b]]", "'b' is not a coordinate"),
    ],
)
def test_bad_line_has_the_full_message(form: str, line: str, reason: str) -> None:
    assert read(line, form) == [BadLine(1, reason)]


def test_line_numbers_include_empty_lines() -> None:
    text = f"\n{EIGHT},a\r\n \r\n{EIGHT},b\nbad\n"
    assert [(each.line, getattr(each, "text", "")) for each in read(text, "quadrilaterals")] == [
        (2, "a"),
        (4, "b"),
        (5, ""),
    ]
    assert [each.line for each in read(TOTAL_TEXT)] == [1, 2, 4]
    first, second = read(f"{X},\n\n{Y}, transcriptions: [u'a']\r\n{X}, {Y}\r\n", "total-text")
    assert (first.line, second.line) == (1, 4)
    assert isinstance(first, Outline)
    assert first.text == "a"


def test_polygon_has_at_most_two_hundred_corners() -> None:
    (most,) = read(",".join(["1", "2"] * 200), "polygons")
    assert isinstance(most, Outline)
    assert most.corners.shape == (200, 2)
    (more,) = read(",".join(["1", "2"] * 200 + ["3", "4"]), "polygons")
    assert more == BadLine(1, "'3' is not a coordinate")
