"""Pictures and labels are paired whatever their layout, and nothing wrong passes unnamed."""

import json
from pathlib import Path

import numpy as np
import pytest

from jumar.data.polygons.text_pictures import open_text_pictures, stem_of
from jumar.ground.errors import UserError
from tests.data.pictures import picture, write_files, write_zip

JPEG = picture(size=(100, 60))
WORD = "10,10,50,10,50,30,10,30,"


def test_real_sets_are_read_whole(shared: Path) -> None:
    folder = shared / "data" / "text-det"
    said: list[str] = []
    icdar = open_text_pictures(str(folder / "icdar15-samples.zip"), "train", notice=said.append)
    assert len(icdar) == 11
    assert sum(map(len, icdar.regions)) > 60
    assert any(region.ignored for each in icdar.regions for region in each)
    assert icdar.paths[0] == "img/img_1.jpg"
    receipts = open_text_pictures(str(folder / "sroie-val.zip"), "eval", notice=said.append)
    assert len(receipts) == 25
    assert sum(map(len, receipts.regions)) > 900
    assert not [*icdar.faults, *receipts.faults]
    assert not said


@pytest.mark.parametrize("packed", [False, True])
def test_the_official_layout_is_two_parts(packed: bool, tmp_path: Path) -> None:
    mark = "\N{BYTE ORDER MARK}"
    files = {
        "ch4_training_images/img_1.jpg": JPEG,
        "ch4_training_images/img_10.jpg": JPEG,
        "ch4_training_images/img_2.jpg": JPEG,
        "ch4_training_localization_transcription_gt/gt_img_1.txt": f"{mark}{WORD}a,b\r\n".encode(),
        "ch4_training_localization_transcription_gt/gt_img_2.txt": f"{mark}{WORD}###".encode(),
        "ch4_training_localization_transcription_gt/gt_img_10.txt": b"",
        "ch4_test_images/img_1.jpg": JPEG,
        "Challenge4_Test_Task1_GT/gt_img_1.txt": f"{mark}{WORD}test".encode(),
    }
    place = write_zip(tmp_path / "a.zip", files) if packed else write_files(tmp_path, files)
    train = open_text_pictures(str(place), "train")
    assert [path.rpartition("/")[2] for path in train.paths] == [
        "img_1.jpg",
        "img_2.jpg",
        "img_10.jpg",
    ]
    assert [[region.text for region in each] for each in train.regions] == [["a,b"], ["###"], []]
    assert [region.ignored for each in train.regions for region in each] == [False, True]
    assert [region.text for region in open_text_pictures(str(place), "eval").regions[0]] == ["test"]
    assert train.read(0).encoded == JPEG


def test_labels_may_be_elsewhere(tmp_path: Path) -> None:
    pictures = write_zip(tmp_path / "pictures.zip", {"img_1.jpg": JPEG})
    labels = write_zip(tmp_path / "gt.zip", {"gt_img_1.txt": f"{WORD}x".encode()})
    source = open_text_pictures(str(pictures), "train", labels=str(labels))
    assert source.regions[0][0].text == "x"


@pytest.mark.parametrize("each", [False, True])
def test_plain_json_is_one_file_or_one_for_each_picture(each: bool, tmp_path: Path) -> None:
    words = [
        {"points": [[1, 1], [30, 1], [40, 20], [20, 30], [1, 20]], "transcription": "five"},
        {"points": [[50, 1], [80, 1], [80, 20]], "illegibility": True},
        {"points": [[1, 2, 3]]},
        "nothing",
    ]
    name = "img_1.json" if each else "labels.json"
    content = json.dumps(words if each else {"img_1": words}).encode()
    write_files(tmp_path, {"img_1.jpg": JPEG, name: content})
    source = open_text_pictures(str(tmp_path), "train")
    assert [(len(region.corners), region.ignored) for region in source.regions[0]] == [
        (5, False),
        (3, True),
    ]
    assert [fault.origin.rpartition(", ")[2] for fault in source.faults] == ["word 3", "word 4"]


def test_every_broken_outline_is_counted_and_named_with_file_and_line(tmp_path: Path) -> None:
    lines = [
        WORD + "good",
        "10,10,10,30,50,30,50,10,backwards",
        "10,10,50,10,10,30,50,30,reading order",
        "5,5,5,5,9,9,9,9,two corners",
        "0,0,9,9,20,20,30,30,a line",
        "300,10,350,10,350,30,300,30,outside",
        "80,10,150,10,150,30,80,30,partly outside",
        "10,10,50,30,four numbers",
        "no numbers",
    ]
    write_files(tmp_path, {"img_1.jpg": JPEG, "gt_img_1.txt": "\n".join(lines).encode()})
    said: list[str] = []
    source = open_text_pictures(str(tmp_path), "train", notice=said.append)
    assert [region.text for region in source.regions[0]] == [
        "good",
        "backwards",
        "reading order",
        "partly outside",
    ]
    for region in source.regions[0][:3]:
        np.testing.assert_array_equal(region.corners, [[10, 10], [50, 10], [50, 30], [10, 30]])
    lines_of = [fault.origin.rpartition(" ")[2] for fault in source.faults]
    assert sorted(lines_of) == ["4", "5", "6", "8", "9"]
    assert [fault.origin.rpartition(" ")[2] for fault in source.mended] == ["2", "3", "7"]
    (left_out, mended) = said
    assert left_out.startswith("5 outlines left out: ")
    assert f"{tmp_path}/gt_img_1.txt, line 4: only 2 different corners" in left_out
    assert mended.startswith("3 outlines mended: ")


def test_pictures_without_labels_and_labels_without_pictures_are_named(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "img_1.jpg": JPEG,
            "img_2.jpg": JPEG,
            "gt_img_1.txt": f"{WORD}x".encode(),
            "gt_img_3.txt": f"{WORD}x".encode(),
        },
    )
    said: list[str] = []
    assert len(open_text_pictures(str(tmp_path), "train", notice=said.append)) == 1
    assert said == [
        "1 picture without labels left out: img_2.jpg",
        f"1 label file without a picture: {tmp_path}/gt_img_3.txt",
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "no pictures"),
        ({"img_1.jpg": JPEG}, "no label files"),
        ({"img_1.jpg": JPEG, "gt_img_2.txt": b"x"}, "no label file belongs to a picture"),
        ({"img_1.jpg": JPEG, "gt_img_1.txt": b""}, "no word in the labels of 1 picture"),
        ({"img_1.jpg": JPEG, "gt_img_1.txt": WORD.encode() + b"###"}, "no word"),
        ({"img_1.jpg": JPEG, "gt_img_1.txt": b"1,2,3"}, "1 outline cannot be used"),
        ({"img_1.jpg": JPEG, "gt_img_1.txt": WORD.encode() + b"\xff\xfe"}, "not UTF-8"),
        ({"img_1.jpg": JPEG, "a.json": b"{"}, "no labels in JSON"),
        ({"img_1.jpg": JPEG, "img_1.txt": b"1", "gt_img_1.txt": b"1"}, "labels of one picture"),
        ({"a/img_1.jpg": JPEG, "b/img_1.jpg": JPEG, "img_1.txt": b"1"}, "several pictures"),
        ({"test/a.jpg": JPEG, "test/a.txt": WORD.encode()}, "no pictures for training"),
    ],
)
def test_a_set_without_words_is_an_error(
    files: dict[str, bytes], message: str, tmp_path: Path
) -> None:
    tmp_path.joinpath("set").mkdir()
    write_files(tmp_path / "set", files)
    with pytest.raises(UserError, match=message):
        open_text_pictures(str(tmp_path / "set"), "train")


def test_names_are_compared_without_folder_prefix_and_ending() -> None:
    names = ["a/img_1.jpg", "gt/gt_img_1.txt", "poly_gt_img_1.txt", "img_1", "img_1.json"]
    assert {stem_of(name) for name in names} == {"img_1"}
    assert stem_of("X5.1.jpg") == stem_of("gt_X5.1.txt") == "X5.1"


def test_the_fingerprint_follows_the_outlines(tmp_path: Path) -> None:
    prints: set[str] = set()
    for text in ("x", "x", "y"):
        write_files(tmp_path, {"a.jpg": JPEG, "a.txt": f"{WORD}{text}".encode()})
        prints.add(open_text_pictures(str(tmp_path), "train").fingerprint)
    assert len(prints) == 2
