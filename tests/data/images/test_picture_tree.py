"""Images without classes: where they may lie, and in which order they come."""

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.images.picture_tree import (
    Pictures,
    by_numbers,
    open_all_pictures,
    open_pictures,
)
from jumar.data.images.sources import Split, open_source
from jumar.data.images.tfrecord_writer import write_tfrecords
from jumar.data.records.example import BytesFeature, encode_example
from jumar.data.samples import CorruptRecord, Record, fingerprint_of
from jumar.ground.errors import UserError
from tests.data.pictures import picture, write_files, write_zip
from tests.data.records.test_tfrecord import framed
from tests.data.scenes import MemorySource

SPLITS: tuple[Split, Split] = ("train", "eval")
TREE = {
    "10.png": picture("RGB", "PNG", (4, 4)),
    "2.png": picture("RGB", "PNG", (5, 4)),
    "clips/b/frame9.JPG": picture(size=(6, 4)),
    "clips/b/frame10.jpg": picture(size=(7, 4)),
    "notes.txt": b"-",
    "clips/b/frame9.jpg.cat": b"9 points",
    ".hidden.png": b"-",
    "__MACOSX/._2.png": b"-",
}
IN_ORDER = ["2.png", "10.png", "clips/b/frame9.JPG", "clips/b/frame10.jpg"]
PARTS = {f"train/{name}": content for name, content in TREE.items()} | {
    "val/1.png": picture("L", "PNG")
}


def paths_of(path: Path, split: Split = "train") -> list[str]:
    pictures = open_pictures(str(path), split)
    return [pictures.path(index) for index in range(len(pictures))]


@pytest.mark.parametrize("split", SPLITS)
def test_folder_tree_and_its_zip_give_the_same_images_by_path(tmp_path: Path, split: Split) -> None:
    folder, zipped = write_files(tmp_path / "tree", TREE), write_zip(tmp_path / "tree.zip", TREE)
    messages: list[str] = []
    for place in (folder, zipped):
        pictures = open_pictures(str(place), split, notice=messages.append)
        assert [pictures.path(index) for index in range(len(pictures))] == IN_ORDER
        records = [pictures.read(index) for index in range(len(pictures))]
        assert [record.encoded for record in records] == [TREE[name] for name in IN_ORDER]
        assert {record.label for record in records} == {0}
        assert tuple(pictures.classes) == ()
    assert [line.partition(": ")[2] for line in messages] == [
        "skipped 2 non-image files: 1 .txt, 1 .cat"
    ] * 2


@pytest.mark.parametrize("wrapping", ["", "BSR/", "BSR/BSDS500/data/images/"])
def test_parts_are_found_below_wrapping_folders_on_the_disk_and_in_a_zip(
    tmp_path: Path, wrapping: str
) -> None:
    files = {f"{wrapping}{name}": content for name, content in PARTS.items()}
    for place in (write_files(tmp_path / "set", files), write_zip(tmp_path / "set.zip", files)):
        assert paths_of(place, "train") == [f"{wrapping}train/{name}" for name in IN_ORDER]
        assert paths_of(place, "eval") == [f"{wrapping}val/1.png"]


def test_parts_may_be_separate_zips(tmp_path: Path) -> None:
    write_zip(tmp_path / "train.zip", TREE)
    write_zip(tmp_path / "test.zip", {"1.png": picture("L", "PNG")})
    assert paths_of(tmp_path, "train") == IN_ORDER
    assert paths_of(tmp_path, "eval") == ["1.png"]


def test_single_image_is_a_set_of_one(tmp_path: Path) -> None:
    write_files(tmp_path, TREE)
    assert paths_of(tmp_path / "10.png") == ["10.png"]


def test_records_without_labels_are_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "cache"))
    images = [picture(size=(side, 4)) for side in (3, 4, 5)]
    payloads = [encode_example({"image/encoded": BytesFeature((image,))}) for image in images]
    shard = tmp_path / "shard.tfrecord"
    shard.write_bytes(framed([*payloads, encode_example({})]))
    pictures = open_pictures(str(shard), "train")
    assert [pictures.read(index).encoded for index in range(3)] == images
    with pytest.raises(CorruptRecord, match="image/encoded"):
        pictures.read(3)


def test_registered_source_is_used_without_labels() -> None:
    digits = open_pictures("digits", "eval")
    assert {digits.read(index).label for index in range(20)} == {0}
    assert digits.path(7) == "7"


@pytest.mark.parametrize(
    ("files", "split", "message"),
    [
        ({"a/notes.txt": b"-"}, "train", "no images in it"),
        ({"train/1.png": b"-"}, "eval", "no images for evaluation"),
        ({"val/1.png": b"-"}, "train", "no images for training"),
        ({"train/1.png": b"-", "train.zip": b"-"}, "train", "both 'train' and 'train.zip'"),
    ],
)
def test_missing_parts_are_named(
    tmp_path: Path, files: dict[str, bytes], split: Split, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        open_pictures(str(write_files(tmp_path, files)), split)


@pytest.mark.parametrize("path", ["", "nowhere", "notes.txt", "~nobody-of-that-name/x"])
def test_path_without_images_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(write_files(tmp_path, TREE))
    with pytest.raises(UserError):
        open_pictures(path, "train")


def test_pickled_source_is_small_and_reads_the_same(tmp_path: Path) -> None:
    files = {f"{number}.png": b"x" for number in range(1000)}
    pictures = open_pictures(str(write_zip(tmp_path / "many.zip", files)), "train")
    packed = pickle.dumps(pictures)
    assert len(packed) < 100 * len(pictures)
    assert pickle.loads(packed).path(999) == "999.png"
    assert pickle.loads(packed).read(999) == pictures.read(999)


NAMES = st.text("a0129./", max_size=8)


@given(st.lists(NAMES, max_size=6))
def test_any_names_have_a_total_order(names: list[str]) -> None:
    backwards = names[::-1]
    assert sorted(names, key=by_numbers) == sorted(backwards, key=by_numbers)


@given(st.integers(0, 10**30), st.integers(0, 10**30))
def test_numbers_in_names_sort_by_value(one: int, other: int) -> None:
    first, second = f"frame{one}.png", f"frame{other}.png"
    assert (by_numbers(first) < by_numbers(second)) == (one < other)


@pytest.mark.parametrize(
    "names",
    [
        ["02.png", "2.png", "010.png", "10.png"],
        ["a", "a0", "a001", "a01", "a1", "a1b", "a2", "a10", "b"],
        ["9/1", "10/1", "a/2", "a/10", "a1/1"],
        ["frame", "frame7", "frame7.png", "frame12.png"],
    ],
)
def test_names_sort_by_text_then_value_then_leading_zeros(names: list[str]) -> None:
    for rotated in (names[2:] + names[:2], names[3:] + names[:3]):
        assert sorted(rotated, key=by_numbers) == names


def all_paths(path: Path) -> list[str]:
    messages: list[str] = []
    pictures = open_all_pictures(path, notice=messages.append)
    return [pictures.path(index) for index in range(len(pictures))] + messages


def test_all_images_are_used_for_any_folder_names(tmp_path: Path) -> None:
    folder, zipped = write_files(tmp_path / "a", PARTS), write_zip(tmp_path / "a.ZIP", PARTS)
    names = [f"train/{name}" for name in IN_ORDER] + ["val/1.png"]
    for place in (folder, zipped):
        assert all_paths(place) == [
            *names,
            f"{place}: skipped 2 non-image files: 1 .txt, 1 .cat",
        ]
    assert all_paths(folder / "val" / "1.png") == ["1.png"]
    write_files(tmp_path, {"notes.txt": b"-"})
    with pytest.raises(UserError) as caught:
        all_paths(tmp_path / "notes.txt")
    assert (caught.value.what, caught.value.where, caught.value.todo) == (
        "not a folder, a zip or an image",
        str(tmp_path / "notes.txt"),
        "Specify a folder or zip with images (.jpg, .jpeg, .png, .bmp, .webp, .tif, .tiff, .gif), "
        "or one of them.",
    )
    with pytest.raises(UserError, match="there is no such file or folder"):
        all_paths(tmp_path / "nowhere.zip")


def test_images_keep_fingerprint_and_read_ahead_of_their_source() -> None:
    class Store(MemorySource):
        fingerprint = "of the store"
        wanted: tuple[int, ...] = ()

        def read_ahead(self, items: list[int]) -> None:
            self.wanted += tuple(items)

    store = Store([b"-", b"+"], [3, 4])
    pictures = Pictures(store)
    pictures.read_ahead([1, 0])
    assert store.wanted == (1, 0)
    assert pictures.fingerprint == "of the store"
    assert pictures.read(1) == Record(encoded=b"+", label=0, origin="memory, entry 1")
    assert (len(pictures), pictures.path(1)) == (2, "1")


def test_labelled_shards_anywhere_in_a_tree_are_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "cache"))
    images = [picture(size=(side, 4)) for side in (3, 4)]
    write_tfrecords(MemorySource(images, [5, 6]), tmp_path / "to", shards=1, split_prefix="train")
    write_files(tmp_path / "to", {"a.jpg": images[0]})
    pictures = open_pictures(str(tmp_path / "to"), "train")
    records = [pictures.read(index) for index in range(len(pictures))]
    assert sorted(record.encoded for record in records) == sorted(images)
    assert {record.label for record in records} == {0}
    shards = open_source(str(tmp_path / "to"), "train")
    assert pictures.fingerprint == fingerprint_of(shards) != ""
    assert pictures.path(1) == "1"


@pytest.mark.parametrize(
    ("files", "split", "error"),
    [
        (
            {"a/b.txt": b"-", "a/c.TXT": b"-", "d": b"-"},
            "train",
            (
                "there are no images in it, only 2 .txt, 1 without a suffix",
                "",
                "Specify a folder or a zip with images (.jpg, .jpeg, .png, .bmp, .webp, .tif, "
                ".tiff, .gif) anywhere in it, or TFRecord shards.",
            ),
        ),
        (
            {"train/x/.hidden": b"-"},
            "train",
            ("there are no images in it, and no other files", "/train", None),
        ),
        (
            {"train/1.png": b"-"},
            "eval",
            (
                "there are no images for evaluation in it",
                "",
                "Expected val or validation or eval or test in it as a folder or zip; or specify "
                "the path of the intended folder.",
            ),
        ),
        (
            {"val.zip": b"-"},
            "train",
            (
                "there are no images for training in it",
                "",
                "Expected train in it as a folder or zip; or specify the path of the intended "
                "folder.",
            ),
        ),
        (
            {"w/val/1.png": b"-", "w/TEST.zip": b"-", "w/Val.ZIP": b"-"},
            "eval",
            (
                "both 'w/val' and 'w/Val.ZIP' are in it",
                "",
                "Remove one of them, or name the intended one.",
            ),
        ),
    ],
)
def test_missing_parts_have_the_full_message(
    tmp_path: Path, files: dict[str, bytes], split: Split, error: tuple[str, str, str | None]
) -> None:
    place = write_files(tmp_path, files)
    with pytest.raises(UserError) as caught:
        open_pictures(str(place), split)
    what, where, todo = error
    assert (caught.value.what, caught.value.where) == (what, f"{place}{where}")
    assert todo is None or caught.value.todo == todo


def test_first_existing_name_of_a_part_is_used(tmp_path: Path) -> None:
    names = ("test", "eval", "validation", "VAL")
    for name in names:
        write_files(tmp_path, {f"{name}/{name}.png": b"-"})
        assert paths_of(tmp_path, "eval") == [f"{name}/{name}.png"]
    with pytest.raises(UserError, match="no images for training"):
        paths_of(tmp_path, "train")


def test_wrapping_folder_holds_only_the_parts(tmp_path: Path) -> None:
    write_files(tmp_path / "a", {"w/train/1.png": b"-", "w/val/2.png": b"-", "notes.txt": b"-"})
    assert paths_of(tmp_path / "a", "eval") == ["w/val/2.png"]
    write_files(tmp_path / "a", {"0.png": b"-"})
    for split in SPLITS:
        assert paths_of(tmp_path / "a", split) == ["0.png", "w/train/1.png", "w/val/2.png"]
    write_files(tmp_path / "b", {"w/train/1.png": b"-", "v/val/2.png": b"-"})
    assert paths_of(tmp_path / "b", "eval") == ["v/val/2.png", "w/train/1.png"]


@pytest.mark.parametrize("depth", [33, 34])
def test_parts_are_found_below_33_folders_and_more_are_blamed_on_a_link(
    tmp_path: Path, depth: int
) -> None:
    wrapping = "d/" * depth
    write_files(tmp_path, {f"{wrapping}train/1.png": b"-", f"{wrapping}val/2.png": b"-"})
    if depth == 33:
        assert paths_of(tmp_path, "eval") == [f"{wrapping}val/2.png"]
        return
    with pytest.raises(UserError, match="nested more than 32 deep"):
        paths_of(tmp_path, "eval")
