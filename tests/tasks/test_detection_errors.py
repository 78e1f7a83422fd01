"""Errors of a detector are of one kind each, and their cut-outs show them and what is around."""

import numpy as np
import pytest

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


def test_crops_show_the_error_with_labels_and_detections() -> None:
    sheets = ErrorSheets()
    pixels = np.zeros((120, 200, 3), np.uint8)
    pixels[50:60, 10:60] = 250
    pixels[90:110, 10:60] = 200
    sheets.add(pixels, WORDS, DETECTIONS, SCORE)
    shown = {each.name: each for each in sheets.illustrations("the first image")}
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
        "1 of 1 detections that merge several words in the first image; labels orange, "
        "detections green"
    )


def test_sheet_has_limited_room_and_states_the_total() -> None:
    sheets = ErrorSheets()
    words = [box(10, 12 * n, 60, 12 * n + 10) for n in range(9)]
    score = picture_score([Region(corners=word) for word in words], [])
    for _ in range(9):
        sheets.add(np.zeros((120, 200, 3), np.uint8), words, [], score)
    (sheet,) = sheets.illustrations("9 images")
    assert sheet.caption == ("32 of 81 missed words in 9 images; labels orange, detections green")
    # Four of each image, in rows of four with gaps of 2 px.
    assert sheet.image.shape == (8 * 98 - 2, 4 * 226 - 2, 3)
    few = ErrorSheets()
    few.add(np.zeros((120, 200, 3), np.uint8), words, [], score)
    (sheet,) = few.illustrations("1 image")
    assert sheet.caption.startswith("4 of 9 missed words")


def test_captions_name_the_kind_of_error() -> None:
    sheets = ErrorSheets()
    sheets.add(np.zeros((120, 200, 3), np.uint8), WORDS, DETECTIONS, SCORE)
    captions = [each.caption for each in sheets.illustrations("an image")]
    end = "in an image; labels orange, detections green"
    assert captions == [
        f"1 of 1 missed words {end}",
        f"1 of 1 false detections {end}",
        f"1 of 1 detections that merge several words {end}",
        f"1 of 1 words split into several detections {end}",
    ]


def test_words_at_and_beyond_the_border_are_cropped() -> None:
    sheets = ErrorSheets()
    words = [box(-30, -20, 5, 4), box(190, 110, 240, 150), box(300, 300, 340, 320)]
    score = picture_score([Region(corners=word) for word in words], [])
    sheets.add(np.full((120, 200, 3), 7, np.uint8), words, [], score)
    (sheet,) = sheets.illustrations("1 image")
    assert sheet.image.shape[0] == 96


def ramp(height: int, width: int) -> np.ndarray:
    """Red says how far to the right a pixel is, green how far down; blue is 255."""
    pixels = np.full((height, width, 3), 255, np.uint8)
    pixels[..., 0] = np.arange(width)
    pixels[..., 1] = np.arange(height)[:, None]
    return pixels


@pytest.mark.parametrize(
    ("word", "part", "shown"),
    [
        # Left, top, right and bottom of what is cut out, and its height and width in the tile.
        (box(60, 50, 120, 70), (48, 38, 132, 82), (96, 183)),  # 12 px around a low word
        (box(60, 40, 120, 90), (40, 20, 140, 110), (96, 107)),  # 0.4 of 50 px
        (box(20, 60, 220, 64), (8, 48, 232, 76), (28, 224)),  # a long word is not enlarged
        (box(3, 5, 43, 25), (0, 0, 55, 37), (96, 143)),  # at the upper left corner
        (box(200, 90, 250, 118), (188, 78, 240, 120), (96, 119)),  # beyond the lower right one
    ],
)
def test_crop_is_the_word_with_the_largest_margin_the_tile_allows(
    word: Corners, part: tuple[int, int, int, int], shown: tuple[int, int]
) -> None:
    sheets = ErrorSheets()
    score = picture_score([Region(corners=word)], [])
    sheets.add(ramp(120, 240), [word], [], score)
    (sheet,) = sheets.illustrations("1 image")
    tile = sheet.image.numpy().astype(int)
    assert tile.shape == (96, 224, 3)
    height, width = shown
    assert (tile[height:] == 96).all()
    assert (tile[:, width:] == 96).all()
    inside = tile[:height, :width]
    assert (inside[[0, 0, -1, -1], [0, -1, 0, -1], 2] == 255).all()
    left, top, right, bottom = part
    # Corners of the image are its outermost pixels, give or take what enlarging mixes.
    assert abs(inside[0, 0] - (left, top, 255)).max() <= 1
    assert abs(inside[-1, -1] - (right - 1, bottom - 1, 255)).max() <= 1
    assert sheet.caption == "1 of 1 missed words in 1 image; labels orange, detections green"
