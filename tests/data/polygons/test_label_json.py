"""Words in JSON: what is read, and the message for each invalid one."""

from typing import Any

import pytest

from jumar.data.polygons.label_json import outlines_of, parse
from jumar.data.polygons.label_lines import BadLine, Outline

POINTS = [[1, 2], [3, 4], [5, 6.5]]


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ({"points": POINTS}, ""),
        ({"points": POINTS, "transcription": "a", "illegibility": False}, "a"),
        ({"points": POINTS, "transcription": 12}, "12"),
        ({"points": POINTS, "transcription": "a", "illegibility": True}, "###"),
        ({"points": POINTS, "transcription": "a", "illegibility": "yes"}, "a"),
    ],
)
def test_word_has_points_and_a_text_unless_it_is_illegible(word: Any, text: str) -> None:
    outline = list(outlines_of([0, word]))[1]
    assert isinstance(outline, Outline)
    assert (outline.line, outline.corners.tolist(), outline.text) == (2, POINTS, text)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("points", "has no points"),
        (None, "has no points"),
        ({"transcription": "a"}, "has no points"),
        ({"points": [1, 2, 3, 4]}, "its points are not pairs of x and y"),
        ({"points": [[1, 2, 3]]}, "its points are not pairs of x and y"),
        ({"points": [[[1, 2]]]}, "its points are not pairs of x and y"),
    ],
)
def test_invalid_word_is_reported_with_its_position(word: Any, reason: str) -> None:
    assert list(outlines_of([word, word])) == [BadLine(1, reason), BadLine(2, reason)]


def test_non_numeric_points_are_not_words() -> None:
    words = [{"points": [["a", "b"]]}, {"points": [[1, 2], [3]]}, {"points": {}}]
    assert [each.line for each in outlines_of(words) if isinstance(each, BadLine)] == [1, 2, 3]


def test_file_has_one_list_or_lists_by_image() -> None:
    assert parse("[1, {}]") == [1, {}]
    assert parse('{"a": [1], "b": []}') == {"a": [1], "b": []}
    with pytest.raises(ValueError, match=r"^neither a list of words nor lists by image$"):
        parse('"a"')
    name = "0123456789" * 5
    with pytest.raises(ValueError, match=rf"^'{name[:40]}' has no list of words$"):
        parse(f'{{"a": [], "{name}": {{}}, "c": 1}}')
