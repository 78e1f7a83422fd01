"""Errors of a detector are of one kind each, and their cut-outs show them and what is around."""

import numpy as np

from jumar.data.pixels.outlines import FOUND, LABELLED
from jumar.data.polygons.protocol import picture_score
from jumar.data.polygons.regions import Corners, Region
from jumar.tasks.detection_errors import ErrorSheets, errors_of


def box(left: float, top: float, right: float, bottom: float) -> Corners:
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]], float)


WORDS = [
    box(10, 10, 40, 20),  # merged with the next
    box(48, 10, 80, 20),
    box(100, 10, 180, 20),  # split in two
    box(10, 50, 60, 60),  # missed
    box(100, 50, 150, 60),  # found
]
DETECTIONS = [
    box(10, 10, 80, 20),
    box(100, 10, 138, 20),
    box(142, 10, 180, 20),
    box(100, 50, 150, 60),
    box(10, 90, 60, 110),  # false
]
SCORE = picture_score([Region(corners=word) for word in WORDS], DETECTIONS)


def has(sheet: np.ndarray, colour: tuple[int, int, int]) -> bool:
    return bool((sheet == colour).all(axis=2).any())


def test_each_error_is_of_one_kind() -> None:
    assert errors_of(SCORE) == {
        "missed": [([3], [])],
        "false": [([], [4])],
        "merged": [([0, 1], [0])],
        "split": [([2], [1, 2])],
    }


def test_cut_outs_show_the_error_with_labels_and_detections() -> None:
    sheets = ErrorSheets()
    pixels = np.zeros((120, 200, 3), np.uint8)
    pixels[50:60, 10:60] = 250
    pixels[90:110, 10:60] = 200
    sheets.add(pixels, WORDS, DETECTIONS, SCORE)
    shown = {each.name: each for each in sheets.illustrations("the first picture")}
    assert list(shown) == ["errors-missed", "errors-false", "errors-merged", "errors-split"]
    missed, false, merged, split = (each.image.numpy() for each in shown.values())
    assert has(missed, LABELLED)
    assert not has(missed, FOUND)
    assert missed.max() == 255
    assert (missed == 250).all(axis=2).mean() > 0.1
    assert has(false, FOUND)
    assert not has(false, LABELLED)
    assert (false == 200).all(axis=2).mean() > 0.1
    assert all(has(each, FOUND) for each in (merged, split))
    assert shown["errors-merged"].caption == (
        "1 of 1 detections that merge several words in the first picture; labels orange, "
        "detections green"
    )


def test_a_sheet_has_room_for_some_and_says_how_many_there_are() -> None:
    sheets = ErrorSheets()
    words = [box(10, 12 * n, 60, 12 * n + 10) for n in range(9)]
    score = picture_score([Region(corners=word) for word in words], [])
    for _ in range(9):
        sheets.add(np.zeros((120, 200, 3), np.uint8), words, [], score)
    (sheet,) = sheets.illustrations("9 pictures")
    assert sheet.caption.startswith("32 of 81 missed words in 9 pictures")


def test_words_at_the_border_and_beyond_are_cut_out_too() -> None:
    sheets = ErrorSheets()
    words = [box(-30, -20, 5, 4), box(190, 110, 240, 150), box(300, 300, 340, 320)]
    score = picture_score([Region(corners=word) for word in words], [])
    sheets.add(np.full((120, 200, 3), 7, np.uint8), words, [], score)
    (sheet,) = sheets.illustrations("1 picture")
    assert sheet.image.shape[0] == 96
