"""Images and labels are paired in any layout, and every error is named."""

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
    messages: list[str] = []
    icdar = open_text_pictures(str(folder / "icdar15-samples.zip"), "train", notice=messages.append)
    assert len(icdar) == 11
    assert sum(map(len, icdar.regions)) > 60
    assert any(region.ignored for each in icdar.regions for region in each)
    assert icdar.pictures.key(0) == "img/img_1.jpg"
    receipts = open_text_pictures(str(folder / "sroie-val.zip"), "eval", notice=messages.append)
    assert len(receipts) == 25
    assert sum(map(len, receipts.regions)) > 900
    assert not [*icdar.faults, *receipts.faults]
    assert not messages


@pytest.mark.parametrize("packed", [False, True])
def test_official_layout_is_two_parts(packed: bool, tmp_path: Path) -> None:
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
    assert [path.rpartition("/")[2] for path in map(train.pictures.key, range(len(train)))] == [
        "img_1.jpg",
        "img_2.jpg",
        "img_10.jpg",
    ]
    assert [[region.text for region in each] for each in train.regions] == [["a,b"], ["###"], []]
    assert [region.ignored for each in train.regions for region in each] == [False, True]
    assert [region.text for region in open_text_pictures(str(place), "eval").regions[0]] == ["test"]
    assert train.read(0).encoded == JPEG


def test_labels_may_be_in_another_folder(tmp_path: Path) -> None:
    pictures = write_zip(tmp_path / "pictures.zip", {"img_1.jpg": JPEG})
    labels = write_zip(tmp_path / "gt.zip", {"gt_img_1.txt": f"{WORD}x".encode()})
    source = open_text_pictures(str(pictures), "train", labels=str(labels))
    assert source.regions[0][0].text == "x"


@pytest.mark.parametrize("each", [False, True])
def test_plain_json_is_one_file_or_one_per_image(each: bool, tmp_path: Path) -> None:
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
    messages: list[str] = []
    source = open_text_pictures(str(tmp_path), "train", notice=messages.append)
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
    (left_out, mended) = messages
    assert left_out.startswith("5 outlines left out: ")
    assert f"{tmp_path}/gt_img_1.txt, line 4: only 2 different corners" in left_out
    assert mended.startswith("3 outlines repaired: ")


def test_images_without_labels_and_labels_without_images_are_named(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "img_1.jpg": JPEG,
            "img_2.jpg": JPEG,
            "gt_img_1.txt": f"{WORD}x".encode(),
            "gt_img_3.txt": f"{WORD}x".encode(),
        },
    )
    messages: list[str] = []
    assert len(open_text_pictures(str(tmp_path), "train", notice=messages.append)) == 1
    assert messages == [
        "1 image without labels left out: img_2.jpg",
        f"1 label file without an image: {tmp_path}/gt_img_3.txt",
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "no images"),
        ({"img_1.jpg": JPEG}, "no label files"),
        ({"img_1.jpg": JPEG, "gt_img_2.txt": b"x"}, "no label file belongs to an image"),
        ({"img_1.jpg": JPEG, "gt_img_1.txt": b""}, "no word in the labels of 1 image"),
        ({"img_1.jpg": JPEG, "gt_img_1.txt": WORD.encode() + b"###"}, "no word"),
        ({"img_1.jpg": JPEG, "gt_img_1.txt": b"1,2,3"}, "1 outline cannot be used"),
        ({"img_1.jpg": JPEG, "gt_img_1.txt": WORD.encode() + b"\xff\xfe"}, "not UTF-8"),
        ({"img_1.jpg": JPEG, "a.json": b"{"}, "no labels in JSON"),
        ({"img_1.jpg": JPEG, "img_1.txt": b"1", "gt_img_1.txt": b"1"}, "labels of the same image"),
        ({"a/img_1.jpg": JPEG, "b/img_1.jpg": JPEG, "img_1.txt": b"1"}, "several images"),
        ({"test/a.jpg": JPEG, "test/a.txt": WORD.encode()}, "no images for training"),
    ],
)
def test_set_without_words_is_an_error(
    files: dict[str, bytes], message: str, tmp_path: Path
) -> None:
    tmp_path.joinpath("set").mkdir()
    write_files(tmp_path / "set", files)
    with pytest.raises(UserError, match=message):
        open_text_pictures(str(tmp_path / "set"), "train")


def test_names_are_compared_without_folder_prefix_and_suffix() -> None:
    names = ["a/img_1.jpg", "gt/gt_img_1.txt", "poly_gt_img_1.txt", "img_1", "img_1.json"]
    assert {stem_of(name) for name in names} == {"img_1"}
    assert stem_of("X5.1.jpg") == stem_of("gt_X5.1.txt") == "X5.1"


def test_fingerprint_depends_on_the_outlines(tmp_path: Path) -> None:
    prints: set[str] = set()
    for text in ("x", "x", "y"):
        write_files(tmp_path, {"a.jpg": JPEG, "a.txt": f"{WORD}{text}".encode()})
        prints.add(open_text_pictures(str(tmp_path), "train").fingerprint)
    assert len(prints) == 2


GIVE = "Specify a folder or a zip of images and label files."
FOUND = (
    "Expected gt_NAME.txt for each image NAME.jpg, or a JSON file; set data.labels if they are "
    "in another folder or zip."
)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.txt": b"x"}, "{set}: there are no images in it"),
        (
            {"b.zip": b"", "a.ZIP": b""},
            "{set}: there are no images in it\n  Unpack a.ZIP, or specify a zip of images and one "
            "of labels.",
        ),
        ({"img_1.jpg": JPEG}, f"{{set}}: there are no label files in it\n  {FOUND}"),
        (
            {"b/img_1.jpg": JPEG, "img_20.jpg": JPEG, "gt_img_3.txt": b"x"},
            "{set}: no label file belongs to an image\n  The image b/img_1.jpg needs a file "
            "gt_img_1.txt, but there is gt_img_3.txt.",
        ),
        (
            {"img_1.jpg": JPEG, "img_1.txt": b"1", "gt_img_1.txt": b"1"},
            "'{set}/gt_img_1.txt' and '{set}/img_1.txt' are labels of the same image\n  Keep one "
            "of them, or specify the path of the intended folder (data.labels).",
        ),
        (
            {"a/img_1.jpg": JPEG, "b/img_1.jpg": JPEG, "img_1.txt": b"1"},
            "several images are named img_1\n  Their labels are ambiguous: specify the "
            "path of the intended folder.",
        ),
        (
            {"test/a.jpg": JPEG, "test/a.txt": WORD.encode()},
            "{set}: there are no images for training in it\n  Specify the path of the intended "
            "folder.",
        ),
        (
            {"a.jpg": JPEG, "a.txt": WORD.encode() + b"###", "b.jpg": JPEG, "b.txt": b""},
            "{set}: no word in the labels of 2 images",
        ),
        (
            {"a.jpg": JPEG, "a.txt": b"1,2,3\nx"},
            "{set}: no word in the labels of 1 image; 2 outlines cannot be used: {set}/a.txt, "
            "line 1: 3 numbers instead of 8",
        ),
    ],
)
def test_unusable_set_has_the_full_message(
    files: dict[str, bytes], message: str, tmp_path: Path
) -> None:
    place = tmp_path / "set"
    place.mkdir()
    write_files(place, files)
    with pytest.raises(UserError) as caught:
        open_text_pictures(str(place), "train")
    assert str(caught.value) == message.format(set=place)


def test_missing_path_and_evaluation_part_are_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        open_text_pictures(str(tmp_path / "gone"), "train")
    assert str(caught.value) == f"{tmp_path}/gone: there is no such file or folder\n  {GIVE}"
    write_files(tmp_path, {"Train_1/a.jpg": JPEG, "a.txt": WORD.encode()})
    with pytest.raises(UserError, match="there are no images for evaluation in it"):
        open_text_pictures(str(tmp_path), "eval")
    assert len(open_text_pictures(str(tmp_path), "train")) == 1


@pytest.mark.parametrize(
    ("folder", "part"),
    [
        *(("training", "train"), ("x_TRAIN-2", "train"), ("set/train/deep", "train")),
        *(("val", "eval"), ("validation", "eval"), ("My Eval", "eval"), ("test2", "eval")),
        *(("trains", ""), ("contest", ""), ("traintest", ""), ("latest/x", "")),
    ],
)
def test_folder_is_a_part_if_a_whole_word_of_its_name_matches(
    folder: str, part: str, tmp_path: Path
) -> None:
    """Beside a folder that is the other part, what is named as neither belongs to both."""
    other = "train" if part == "eval" else "val"
    files = {f"{folder}/a.jpg": JPEG, f"{folder}/a.txt": WORD.encode()}
    files |= {f"{other}/b.jpg": JPEG, f"{other}/b.txt": WORD.encode()}
    write_files(tmp_path, files)
    splits = {"train": {"train", ""}, "eval": {"eval", ""}}
    for split, parts in splits.items():
        if part or split == "eval":
            opened = open_text_pictures(str(tmp_path), split)  # pyright: ignore[reportArgumentType]
            assert (f"{folder}/a.jpg" in map(opened.pictures.key, range(len(opened)))) is (
                part in parts
            )


def test_six_names_are_listed_as_five_and_one_more(tmp_path: Path) -> None:
    bare = {f"img_{number}.jpg": JPEG for number in (10, 2, 3, 4, 5, 6)}
    write_files(tmp_path, {**bare, "img_1.jpg": JPEG, "img_1.txt": WORD.encode()})
    messages: list[str] = []
    open_text_pictures(str(tmp_path), "train", notice=messages.append)
    assert messages == [
        "6 images without labels left out: img_2.jpg; img_3.jpg; img_4.jpg; img_5.jpg; "
        "img_6.jpg; and 1 more"
    ]
    (tmp_path / "img_10.jpg").unlink()
    open_text_pictures(str(tmp_path), "train", notice=messages.append)
    assert messages[1] == (
        "5 images without labels left out: img_2.jpg; img_3.jpg; img_4.jpg; img_5.jpg; img_6.jpg"
    )


def test_skipped_and_repaired_outlines_are_reported_per_line(tmp_path: Path) -> None:
    lines = ["bad", "10,10,10,30,50,30,50,10,a", "90,50,120,50,120,70,90,70,b", f"{WORD}c"]
    write_files(tmp_path, {"img_1.jpg": JPEG, "img_1.txt": "\n".join(lines).encode()})
    messages: list[str] = []
    source = open_text_pictures(str(tmp_path), "train", notice=messages.append)
    place = f"{tmp_path}/img_1.txt"
    assert messages == [
        f"1 outline left out: {place}, line 1: 0 numbers instead of 8",
        f"2 outlines repaired: {place}, line 2: the corners are in counter-clockwise order; "
        f"{place}, line 3: "
        "it extends beyond the image",
    ]
    # The image is 100 wide and 60 high.
    assert sorted(source.regions[0][1].corners.tolist()) == [
        [90, 50],
        [90, 60],
        [100, 50],
        [100, 60],
    ]


def test_labels_of_an_unreadable_image_are_unchanged(tmp_path: Path) -> None:
    write_files(tmp_path, {"img_1.jpg": b"broken", "img_1.txt": b"90,50,190,50,190,70,90,70,b"})
    messages: list[str] = []
    source = open_text_pictures(str(tmp_path), "train", notice=messages.append)
    assert source.regions[0][0].corners.max() == 190
    assert not messages


def test_only_image_and_label_suffixes_are_stripped_from_names() -> None:
    assert stem_of("a/gt_label_x.TXT") == "label_x"
    assert stem_of("label_x.Mat") == stem_of("poly_label_x.jpeg") == stem_of("x") == "x"
    assert stem_of("x.v2") == "x.v2"
    assert stem_of("gt_gt_x") == "gt_x"


def test_fingerprint_depends_on_names_corners_and_the_image_of_a_word(tmp_path: Path) -> None:
    def printed(name: str, **labels: str) -> str:
        place = tmp_path / name
        files = {f"{stem}.jpg": JPEG for stem in labels}
        write_files(place, files | {f"{stem}.txt": text.encode() for stem, text in labels.items()})
        return open_text_pictures(str(place), "train").fingerprint

    moved = WORD.replace("50", "51")
    prints = [
        printed("1", a=f"{WORD}x", b=""),
        printed("2", a=f"{WORD}x", b=""),
        printed("3", a="", b=f"{WORD}x"),
        printed("4", a=f"{moved}x", b=""),
        printed("5", a=f"{WORD}x\n{WORD}y", b=""),
        printed("6", a=f"{WORD}x", b=f"{WORD}y"),
    ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 5
