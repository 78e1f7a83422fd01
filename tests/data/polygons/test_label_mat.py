"""Total-Text's MATLAB files, written by scipy in the format of the set's own description."""

import contextlib
import io
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat

from jumar.data.polygons.label_lines import BadLine, Outline
from jumar.data.polygons.label_mat import MAX_BYTES, outlines_of
from jumar.data.polygons.text_pictures import open_text_pictures
from jumar.ground.errors import UserError
from tests.data.pictures import picture, write_files

ROWS = [
    ([10, 30, 50, 50, 30, 10], [10, 8, 10, 20, 18, 20], "CAFE", "c"),
    ([60, 90, 90, 60], [30, 30, 40, 40], "blurred", "#"),
    ([5, 40, 40, 5], [50, 50, 58, 58], "#12", "h"),
]


def mat(rows: list[tuple[list[int], list[int], str, str]], name: str = "polygt") -> bytes:
    """A file with these words."""
    array = np.empty((len(rows), 6), object)
    for place, (x, y, text, orientation) in enumerate(rows):
        array[place] = ["x:", np.array([x], np.int16), "y:", np.array([y], np.int16), text, ""]
        array[place, 5] = orientation
    file = io.BytesIO()
    savemat(file, {name: array}, do_compression=True)
    return file.getvalue()


@pytest.mark.parametrize("name", ["polygt", "gt"])
def test_corners_texts_and_ignored_words_are_read(name: str) -> None:
    first, second, third = outlines_of(mat(ROWS, name))
    assert isinstance(first, Outline)
    np.testing.assert_array_equal(first.corners, np.transpose(ROWS[0][:2]))
    assert [each.text for each in (first, second, third)] == ["CAFE", "###", "#12"]  # pyright: ignore[reportAttributeAccessIssue]
    assert third.line == 3


def test_row_with_more_x_than_y_is_named() -> None:
    bad, good = outlines_of(mat([([1, 2, 3], [1, 2], "a", "h"), ROWS[0]]))
    assert bad == BadLine(1, "3 x and 2 y")
    assert isinstance(good, Outline)


def test_set_with_mat_files_is_opened(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "Images/Train/img11.jpg": picture(size=(100, 60)),
            "gt/Train/poly_gt_img11.mat": mat(ROWS),
        },
    )
    pictures = open_text_pictures(str(tmp_path), "train", notice=lambda _: None)
    (words,) = pictures.regions
    assert [(word.text, word.ignored, len(word.corners)) for word in words] == [
        ("CAFE", False, 6),
        ("###", True, 4),
        ("#12", False, 4),
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"nonsense", "not a MATLAB file"),
        (mat(ROWS)[:200], "not a MATLAB file"),
        (mat(ROWS, "rectgt"), "has no array 'polygt', but rectgt"),
        (bytes(MAX_BYTES + 1), "are too many for the words of an image"),
    ],
)
def test_other_files_are_errors_with_the_reason(
    content: bytes, reason: str, tmp_path: Path
) -> None:
    write_files(tmp_path, {"img1.jpg": picture(size=(100, 60)), "poly_gt_img1.mat": content})
    with pytest.raises(UserError, match="no labels in MATLAB") as caught:
        open_text_pictures(str(tmp_path), "train", notice=lambda _: None)
    assert reason in str(caught.value)


@given(place=st.integers(0, 10_000), value=st.integers(0, 255))
def test_damage_is_an_error_or_changes_words_but_never_an_exception(place: int, value: int) -> None:
    content = bytearray(mat(ROWS))
    content[place % len(content)] = value
    with contextlib.suppress(ValueError):
        outlines_of(bytes(content))


def saved(array: np.ndarray, name: str = "polygt") -> bytes:
    file = io.BytesIO()
    savemat(file, {name: array})
    return file.getvalue()


def row(*cells: object) -> np.ndarray:
    array = np.empty((1, len(cells)), object)
    array[0] = cells
    return array


def test_row_needs_five_cells_and_a_sixth_marks_ignored_words() -> None:
    x, y = np.array([[1, 5, 5]]), np.array([[2, 2, 9]])
    (five,) = outlines_of(saved(row("x:", x, "y:", y, "#")))
    assert isinstance(five, Outline)
    assert (five.line, five.corners.tolist(), five.text) == (1, [[1, 2], [5, 2], [5, 9]], "#")
    (seven,) = outlines_of(saved(row("x:", x, "y:", y, "a", "#", "more")))
    assert isinstance(seven, Outline)
    assert seven.text == "###"
    (empty,) = outlines_of(saved(row("x:", x, "y:", y, "", "c")))
    assert isinstance(empty, Outline)
    assert empty.text == ""


@pytest.mark.parametrize(
    ("array", "name", "reason"),
    [
        (
            row("x:", 1, "y:", 2),
            "polygt",
            "'polygt' does not have a row of x, y and text for each word",
        ),
        (row("x:", 1, "y:", 2), "gt", "'gt' does not have a row of x, y and text for each word"),
        (np.zeros((2, 6)), "gt", "'gt' does not have a row of x, y and text for each word"),
        (
            np.full((2, 5, 2), "a", object),
            "gt",
            "'gt' does not have a row of x, y and text for each word",
        ),
        (np.zeros((2, 6)), "words", "has no array 'polygt', but words"),
    ],
)
def test_arrays_of_another_shape_are_reported(array: np.ndarray, name: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        outlines_of(saved(array, name))
    assert str(caught.value) == reason


def test_file_without_arrays_or_in_another_format_is_reported() -> None:
    file = io.BytesIO()
    savemat(file, {})
    with pytest.raises(ValueError, match=r"^has no array 'polygt', but nothing$"):
        outlines_of(file.getvalue())
    newer = b"MATLAB 7.3 MAT-file".ljust(124, b" ") + b"\x00\x02IM" + bytes(400)
    with pytest.raises(
        ValueError, match=r"^MATLAB 7\.3 files are not supported; save it with -v7$"
    ):
        outlines_of(newer)
    assert MAX_BYTES == 262_144
    with pytest.raises(ValueError, match=r"^262145 bytes are too many for the words of an image$"):
        outlines_of(bytes(MAX_BYTES + 1))
    with pytest.raises(ValueError, match=r"^not a MATLAB file: "):
        outlines_of(bytes(MAX_BYTES))


def test_non_numeric_coordinates_are_reported_and_the_next_row_is_read() -> None:
    both = np.concatenate([row("x:", "a", "y:", 2, "b", "c"), row("x:", 1, "y:", 2, "b", "c")])
    bad, good = outlines_of(saved(both))
    assert bad == BadLine(1, "its coordinates are not numbers")
    assert isinstance(good, Outline)
    assert (good.line, good.corners.tolist()) == (2, [[1, 2]])


def test_array_given_twice_is_read_without_a_warning() -> None:
    content = mat(ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(outlines_of(content + content[128:])) == 3
