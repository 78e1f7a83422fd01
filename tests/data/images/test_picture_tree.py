"""Pictures without classes: where they may lie, and in which order they come."""

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.images.picture_tree import by_numbers, open_pictures
from jumar.data.images.sources import Split
from jumar.data.records.example import BytesFeature, encode_example
from jumar.data.samples import CorruptRecord
from jumar.ground.errors import UserError
from tests.data.pictures import picture, write_files, write_zip
from tests.data.records.test_tfrecord import framed

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
def test_a_folder_tree_and_its_zip_give_the_same_pictures_by_path(
    tmp_path: Path, split: Split
) -> None:
    folder, zipped = write_files(tmp_path / "tree", TREE), write_zip(tmp_path / "tree.zip", TREE)
    said: list[str] = []
    for place in (folder, zipped):
        pictures = open_pictures(str(place), split, notice=said.append)
        assert [pictures.path(index) for index in range(len(pictures))] == IN_ORDER
        records = [pictures.read(index) for index in range(len(pictures))]
        assert [record.encoded for record in records] == [TREE[name] for name in IN_ORDER]
        assert {record.label for record in records} == {0}
        assert tuple(pictures.classes) == ()
    assert [line.partition(": ")[2] for line in said] == [
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


def test_parts_may_be_zips_of_their_own(tmp_path: Path) -> None:
    write_zip(tmp_path / "train.zip", TREE)
    write_zip(tmp_path / "test.zip", {"1.png": picture("L", "PNG")})
    assert paths_of(tmp_path, "train") == IN_ORDER
    assert paths_of(tmp_path, "eval") == ["1.png"]


def test_one_picture_is_a_set_of_one(tmp_path: Path) -> None:
    write_files(tmp_path, TREE)
    assert paths_of(tmp_path / "10.png") == ["10.png"]


def test_records_without_labels_are_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "cache"))
    images = [picture(size=(side, 4)) for side in (3, 4, 5)]
    payloads = [encode_example({"image/encoded": BytesFeature((image,))}) for image in images]
    shard = tmp_path / "shard.tfrecord"
    shard.write_bytes(framed([*payloads, encode_example({})]))
    pictures = open_pictures(str(shard), "train")
    assert [pictures.read(index).encoded for index in range(3)] == images
    with pytest.raises(CorruptRecord, match="image/encoded"):
        pictures.read(3)


def test_a_registered_name_loses_its_labels() -> None:
    digits = open_pictures("digits", "eval")
    assert {digits.read(index).label for index in range(20)} == {0}
    assert digits.path(7) == "7"


@pytest.mark.parametrize(
    ("files", "split", "message"),
    [
        ({"a/notes.txt": b"-"}, "train", "no pictures in it"),
        ({"train/1.png": b"-"}, "eval", "no pictures for evaluation"),
        ({"val/1.png": b"-"}, "train", "no pictures for training"),
        ({"train/1.png": b"-", "train.zip": b"-"}, "train", "both 'train' and 'train.zip'"),
    ],
)
def test_what_is_missing_is_said(
    tmp_path: Path, files: dict[str, bytes], split: Split, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        open_pictures(str(write_files(tmp_path, files)), split)


@pytest.mark.parametrize("path", ["", "nowhere", "notes.txt", "~nobody-of-that-name/x"])
def test_a_path_that_is_no_pictures_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(write_files(tmp_path, TREE))
    with pytest.raises(UserError):
        open_pictures(path, "train")


def test_a_pickled_source_is_small_and_reads_the_same(tmp_path: Path) -> None:
    files = {f"{number}.png": b"x" for number in range(1000)}
    pictures = open_pictures(str(write_zip(tmp_path / "many.zip", files)), "train")
    packed = pickle.dumps(pictures)
    assert len(packed) < 100 * len(pictures)
    assert pickle.loads(packed).path(999) == "999.png"
    assert pickle.loads(packed).read(999) == pictures.read(999)


NAMES = st.text("a0129./", max_size=8)


@given(st.lists(NAMES, max_size=6))
def test_any_names_have_one_order(names: list[str]) -> None:
    backwards = names[::-1]
    assert sorted(names, key=by_numbers) == sorted(backwards, key=by_numbers)


@given(st.integers(0, 10**30), st.integers(0, 10**30))
def test_numbers_in_names_go_by_value(one: int, other: int) -> None:
    first, second = f"frame{one}.png", f"frame{other}.png"
    assert (by_numbers(first) < by_numbers(second)) == (one < other)
