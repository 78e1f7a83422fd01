"""Which files are images of which class."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.images.class_folders import (
    DiskTree,
    EmptyClasses,
    PackedNames,
    by_ending,
    ending_of,
    files_below,
    is_hidden,
    is_image,
    list_classes,
)
from jumar.data.images.sources import open_source
from jumar.ground.errors import UserError
from tests.data.pictures import write_files

TREE = {
    "10/a.jpg": b"-",
    "2/B.PNG": b"-",
    "2/a.jpeg": b"-",
    "2/more/z.webp": b"-",
    "2/notes.txt": b"-",
    "2/.hidden.jpg": b"-",
    "readme.md": b"-",
    "loose.jpg": b"-",
    "__MACOSX/2/a.jpg": b"-",
    ".git/2/a.jpg": b"-",
}


def test_classes_are_sorted_as_text_and_labelled_in_that_order(tmp_path: Path) -> None:
    listing = list_classes(DiskTree(write_files(tmp_path, TREE)))
    assert listing.classes == ("10", "2")
    assert list(listing.paths) == ["10/a.jpg", "2/B.PNG", "2/a.jpeg", "2/more/z.webp"]
    assert listing.labels.tolist() == [0, 1, 1, 1]


def test_other_files_are_counted_unless_hidden(tmp_path: Path) -> None:
    listing = list_classes(DiskTree(write_files(tmp_path, TREE)))
    assert listing.ignored == {".txt": 1}
    assert listing.outside == {".md": 1, ".jpg": 1}


def test_empty_class_folders_are_named(tmp_path: Path) -> None:
    write_files(tmp_path, {"cat/a.jpg": b"-", "dog/notes.txt": b"-"})
    (tmp_path / "horse").mkdir()
    with pytest.raises(EmptyClasses) as caught:
        open_source(str(tmp_path), "train")
    assert "2 of 3 class folders contain no image: 'dog' (with 1 .txt), 'horse'" in str(
        caught.value
    )
    assert [caught.value.source.read(index).label for index in range(1)] == [0]
    assert list(caught.value.source.classes) == ["cat", "dog", "horse"]
    assert caught.value.where == str(tmp_path)


@pytest.mark.parametrize(
    ("files", "reason"),
    [({"a.jpg": b"-"}, "are not in class folders"), ({"a.txt": b"-"}, "neither class folders nor")],
)
def test_folder_without_class_folders_is_an_error(
    tmp_path: Path, files: dict[str, bytes], reason: str
) -> None:
    with pytest.raises(UserError, match=reason):
        list_classes(DiskTree(write_files(tmp_path, files)))


def test_folder_without_image_suffixes_lists_the_suffixes_found(tmp_path: Path) -> None:
    files = dict.fromkeys(("a.raw", "b.RAW", "c.txt", "readme"), b"-")
    with pytest.raises(UserError, match=r"only 2 \.raw, 1 \.txt, 1 without a suffix"):
        list_classes(DiskTree(write_files(tmp_path, files)))


def test_broken_link_to_a_class_is_an_error_and_to_an_image_a_file(
    tmp_path: Path,
) -> None:
    write_files(tmp_path, {"cat/a.jpg": b"-"})
    (tmp_path / "cat" / "lost.jpg").symlink_to("nowhere.jpg")
    assert list(list_classes(DiskTree(tmp_path)).paths) == ["cat/a.jpg", "cat/lost.jpg"]
    (tmp_path / "dog").symlink_to("/nowhere/dog")
    with pytest.raises(UserError, match="links to '/nowhere/dog', which does not exist") as caught:
        list_classes(DiskTree(tmp_path))
    assert caught.value.where == str(tmp_path / "dog")


def test_links_to_folders_are_followed_and_a_loop_is_an_error(tmp_path: Path) -> None:
    write_files(tmp_path, {"elsewhere/a.jpg": b"-", "data/cat/b.jpg": b"-"})
    (tmp_path / "data" / "dog").symlink_to(tmp_path / "elsewhere")
    listing = list_classes(DiskTree(tmp_path / "data"))
    assert list(listing.paths) == ["cat/b.jpg", "dog/a.jpg"]
    for name in ("one", "two"):
        (tmp_path / "elsewhere" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="symbolic link point to a parent"):
        list_classes(DiskTree(tmp_path / "data"))


def test_non_utf8_name_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "cat"
    folder.mkdir()
    (folder / os.fsdecode(b"\xff\xfe.jpg")).write_bytes(b"-")
    (path,) = list_classes(DiskTree(tmp_path)).paths
    assert (tmp_path / path).exists()


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20)))
def test_packing_preserves_names(names: list[str]) -> None:
    packed = PackedNames(names)
    assert list(packed) == names
    assert len(packed) == len(names)
    for index in (-1, len(names)):
        with pytest.raises(IndexError):
            packed[index]


@pytest.mark.parametrize("depth", [32, 33])
def test_thirty_two_nested_folders_are_read_and_more_are_blamed_on_a_link(
    tmp_path: Path, depth: int
) -> None:
    name = "d/" * depth + "a.jpg"
    tree = DiskTree(write_files(tmp_path, {name: b"-"}))
    if depth == 32:
        assert list(files_below(tree, "")) == [name]
        return
    with pytest.raises(UserError, match="nested more than 32 deep; does a symbolic link"):
        list(files_below(tree, ""))


def test_link_to_a_parent_is_an_error_instead_of_an_endless_loop(tmp_path: Path) -> None:
    root = write_files(tmp_path, {"cat/a.jpg": b"-"})
    (root / "cat/again").symlink_to(root / "cat", target_is_directory=True)
    with pytest.raises(UserError, match="nested more than 32 deep"):
        list(files_below(DiskTree(root), "cat"))


@pytest.mark.parametrize(("count", "more"), [(1, ""), (5, ""), (6, " and 1 more")])
def test_first_five_empty_class_folders_are_named(tmp_path: Path, count: int, more: str) -> None:
    names = "abcdef"[:count]
    for name in names:
        (tmp_path / name).mkdir()
    with pytest.raises(UserError) as caught:
        open_source(str(write_files(tmp_path, {"z/a.jpg": b"-"})), "train")
    named = ", ".join(f"'{name}'" for name in names[:5])
    verb = "contains" if count == 1 else "contain"
    assert caught.value.what == (
        f"{count} of {count + 1} class folders {verb} no image: {named}{more}"
    )
    assert caught.value.todo == (
        "Add images (.jpg, .jpeg, .png, .bmp, .webp, .tif, .tiff, .gif), "
        "or remove each empty folder."
    )


def test_suffixes_are_counted_and_the_five_most_frequent_named() -> None:
    counts = Counter({".a": 1, ".b": 3, ".c": 2, ".d": 1, ".e": 1})
    assert by_ending(counts) == "3 .b, 2 .c, 1 .a, 1 .d, 1 .e"
    assert by_ending(counts + Counter({".f": 1})) == "3 .b, 2 .c, 1 .a, 1 .d, 1 .e, ..."
    assert [ending_of(name) for name in ("a/b.JPG", "a.b/c", "x.tar.gz", ".x")] == [
        ".jpg",
        "without a suffix",
        ".gz",
        "without a suffix",
    ]


def test_paths_and_labels_below_a_root_match_those_of_the_root_alone(tmp_path: Path) -> None:
    write_files(tmp_path, {f"in/{name}": data for name, data in TREE.items()})
    whole, part = list_classes(DiskTree(tmp_path / "in")), list_classes(DiskTree(tmp_path), "in")
    assert list(part.paths) == [f"in/{path}" for path in whole.paths]
    assert [part.key(index) for index in range(4)] == list(whole.paths)
    assert [whole.key(index) for index in range(4)] == list(whole.paths)
    assert part.fingerprint == whole.fingerprint
    assert part.labels.tolist() == whole.labels.tolist()
    assert part.labels.dtype == np.int32
    (tmp_path / "in" / "readme.md").unlink()
    (tmp_path / "in" / "2" / "a.jpeg").rename(tmp_path / "in" / "10" / "z.jpeg")
    assert list_classes(DiskTree(tmp_path / "in")).fingerprint != whole.fingerprint


def test_files_precede_those_of_subfolders_and_all_are_sorted(tmp_path: Path) -> None:
    names = ["b.x", "z", "a/c", "a/d/e", "a/f/g", "c/a"]
    write_files(tmp_path, dict.fromkeys(names, b"-"))
    assert list(files_below(DiskTree(tmp_path), "")) == names
    assert DiskTree(tmp_path).entries("a") == (["d", "f"], ["c"])


def test_without_class_folders_the_content_is_reported(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError) as caught:
        list_classes(DiskTree(tmp_path), "empty")
    assert (caught.value.what, caught.value.where) == (
        "contains neither class folders nor TFRecord shards",
        str(tmp_path / "empty"),
    )
    with pytest.raises(UserError, match="there is no such file"):
        list_classes(DiskTree(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("name", "hidden", "image"),
    [
        (".a.jpg", True, True),
        ("__MACOSX", True, False),
        ("a.TIFF", False, True),
        ("jpg", False, False),
    ],
)
def test_names_are_classified_as_hidden_image_or_other(
    name: str, hidden: bool, image: bool
) -> None:
    assert (is_hidden(name), is_image(name)) == (hidden, image)
