"""What `data.path` may be, and what is said where it fits nothing."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from jumar.data.images.digits import open_digits
from jumar.data.images.image_folder import ImageFolder
from jumar.data.images.image_shards import ImageShards
from jumar.data.images.image_zip import ImageZip
from jumar.data.images.sources import check_pair, open_source, register_source, splits_of
from jumar.data.images.tfrecord_writer import convert_to_tfrecords, write_tfrecords
from jumar.data.samples import ImageSource
from jumar.ground.errors import UserError
from tests.data.pictures import pets, picture, write_files, write_zip


def under(prefix: str, files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{prefix}/{name}": content for name, content in files.items()}


SPLITS = ("train", "eval")
TRAIN, HELD_OUT = pets(3), pets(1)
DIVIDED = {**under("train", TRAIN), **under("val", HELD_OUT)}


def folder_of_class_folders(root: Path) -> str:
    return str(write_files(root, TRAIN))


def zip_of_class_folders(root: Path) -> str:
    return str(write_zip(root / "pets.zip", TRAIN))


def zip_with_a_top_folder(root: Path) -> str:
    return str(write_zip(root / "pets.ZIP", {**under("pets", TRAIN), "pets/readme.txt": b"-"}))


def folder_with_a_top_folder(root: Path) -> str:
    return str(write_files(root, under("pets", TRAIN)))


def one_record_file(root: Path) -> str:
    convert_to_tfrecords(folder_of_class_folders(root / "from"), root / "to", shards=1)
    return str(root / "to" / "train-00000-of-00001")


def glob_of_shards(root: Path) -> str:
    convert_to_tfrecords(folder_of_class_folders(root / "from"), root / "to", shards=2)
    return str(root / "to" / "train-*")


def train_and_val_folders(root: Path) -> str:
    return str(write_files(root, DIVIDED))


def train_and_test_folders_in_capitals(root: Path) -> str:
    return str(write_files(root, {**under("TRAIN", TRAIN), **under("Test", HELD_OUT)}))


def train_and_validation_zips(root: Path) -> str:
    write_zip(root / "train.zip", TRAIN)
    write_zip(root / "validation.zip", HELD_OUT)
    return str(root)


def train_folder_and_eval_zip(root: Path) -> str:
    write_files(root, under("train", TRAIN))
    write_zip(root / "eval.zip", HELD_OUT)
    return str(root)


def zip_with_both_parts(root: Path) -> str:
    return str(write_zip(root / "all.zip", under("pets", DIVIDED)))


def folder_of_shards(root: Path) -> str:
    convert_to_tfrecords(train_and_val_folders(root / "from"), root / "to", shards=2)
    return str(root / "to")


def gzip_shards_in_part_folders(root: Path) -> str:
    divided = train_and_val_folders(root / "from")
    for part, split, prefix in (("train", "train", "train"), ("val", "eval", "validation")):
        write_tfrecords(
            open_source(divided, split),
            root / "to" / part,
            shards=2,
            split_prefix=prefix,
            compression="gzip",
        )
    return str(root / "to")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "cache"))


def content(source: ImageSource) -> list[tuple[int, bytes]]:
    records = [source.read(index) for index in range(len(source))]
    return sorted((record.label, record.encoded) for record in records)


def expected(files: dict[str, bytes]) -> list[tuple[int, bytes]]:
    return sorted((int(name.startswith("horse")), data) for name, data in files.items())


@pytest.mark.parametrize(
    "make",
    [
        folder_of_class_folders,
        zip_of_class_folders,
        zip_with_a_top_folder,
        folder_with_a_top_folder,
        one_record_file,
        glob_of_shards,
    ],
)
def test_an_undivided_set_serves_whichever_split_asks(
    tmp_path: Path, make: Callable[[Path], str]
) -> None:
    path = make(tmp_path / "data")
    assert splits_of(path) == ()
    for split in ("train", "eval"):
        source = open_source(path, split)
        assert content(source) == expected(TRAIN)
        assert list(source.classes) == ["cat", "horse"]


@pytest.mark.parametrize(
    "make",
    [
        train_and_val_folders,
        train_and_test_folders_in_capitals,
        train_and_validation_zips,
        train_folder_and_eval_zip,
        zip_with_both_parts,
        folder_of_shards,
        gzip_shards_in_part_folders,
    ],
)
def test_each_split_of_a_divided_set_has_its_own_images(
    tmp_path: Path, make: Callable[[Path], str]
) -> None:
    path = make(tmp_path / "data")
    assert splits_of(path) == ("train", "eval")
    train, held_out = open_source(path, "train"), open_source(path, "eval")
    check_pair(train, held_out)
    assert content(train) == expected(TRAIN)
    assert content(held_out) == expected(HELD_OUT)
    assert list(train.classes) == ["cat", "horse"]
    assert content(pickle.loads(pickle.dumps(train))) == expected(TRAIN)


@pytest.mark.parametrize(
    ("name", "counts"), [("sign-digits-100px", (1559, 300)), ("cifar10-subset", (10000, 2000))]
)
def test_the_real_data_sets_open_by_their_folder(
    shared: Path, name: str, counts: tuple[int, int]
) -> None:
    train, held_out = (open_source(str(shared / "data" / name), split) for split in SPLITS)
    check_pair(train, held_out)
    assert (len(train), len(held_out)) == counts
    assert len(train.classes) == 10


def test_the_folder_of_imagenet_shards_has_no_evaluation_part(parity: Path) -> None:
    path = str(parity / "formats" / "imagenet")
    assert len(open_source(path, "train")) == 13
    with pytest.raises(UserError, match=r"no images for evaluation.*\n.*data\.eval_path"):
        open_source(path, "eval")


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder_of_class_folders(tmp_path / "pets")
    assert len(open_source("~/pets", "train")) == 6


def test_one_class_alone_is_a_class_and_no_wrapping(tmp_path: Path) -> None:
    write_files(tmp_path, {"cat/0.jpg": picture(), "cat/more/1.jpg": picture("L")})
    assert list(open_source(str(tmp_path), "train").classes) == ["cat"]


def test_a_class_that_is_called_train_is_a_class(tmp_path: Path) -> None:
    write_files(tmp_path, {"train/0.jpg": picture(), "ship/0.jpg": picture()})
    assert list(open_source(str(tmp_path), "train").classes) == ["ship", "train"]


def test_parts_without_class_folders_are_not_taken_for_classes(tmp_path: Path) -> None:
    write_files(tmp_path, {"train/0.jpg": picture(), "val/0.jpg": picture()})
    with pytest.raises(UserError, match="are not in class folders") as caught:
        open_source(str(tmp_path), "train")
    assert caught.value.where == str(tmp_path / "train")


def test_parts_are_found_in_longer_names_of_shards(tmp_path: Path) -> None:
    made = Path(folder_of_shards(tmp_path / "made"))
    for path in made.glob("*-of-*"):
        number = path.name.partition("-")[2]
        kind = path.name.partition("-")[0]
        path.rename(made / f"pets2-{kind}.tfrecord-{number}")
    assert splits_of(str(made)) == ("train", "eval")
    assert len(open_source(str(made), "train")) == 6


def test_unnamed_sets_of_shards_are_not_mixed(tmp_path: Path) -> None:
    write_files(tmp_path, {"one-00000-of-00001": b"", "two-00000-of-00001": b""})
    with pytest.raises(UserError, match="shards of several sets are in it: one, two"):
        open_source(str(tmp_path), "train")


def test_a_part_that_holds_the_other_part_is_refused(tmp_path: Path) -> None:
    train_and_val_folders(tmp_path / "val")
    (tmp_path / "val" / "val").rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="named as a part other than eval"):
        open_source(str(tmp_path), "eval")


def test_files_that_are_left_out_are_said(tmp_path: Path) -> None:
    write_zip(tmp_path / "pets.zip", {**pets(), "cat/notes.txt": b"-", "readme": b"-"})
    said: list[str] = []
    open_source(str(tmp_path / "pets.zip"), "train", notice=said.append)
    assert said == [
        f"{tmp_path / 'pets.zip'}: skipped 2 files outside of the classes: 1 without ending, 1 .txt"
    ]


def test_classes_that_differ_in_case_alone_are_said(tmp_path: Path) -> None:
    write_files(tmp_path, {f"{name}/a.jpg": picture() for name in ("Cat", "cat", "dog")})
    said: list[str] = []
    open_source(str(tmp_path), "train", notice=said.append)
    assert said == [f"{tmp_path}: Cat and cat differ in case alone and are taken as classes"]


def test_what_lies_beside_shards_is_said(tmp_path: Path) -> None:
    write_tfrecords(open_digits("train"), tmp_path, shards=1, split_prefix="train")
    write_files(tmp_path, {"cat/a.jpg": picture(), "readme.md": b"-"})
    said: list[str] = []
    open_source(str(tmp_path), "train", notice=said.append)
    assert said == [f"{tmp_path}: contains shards, so cat beside them is ignored"]


def test_a_glob_that_leaves_shards_out_says_so_and_one_that_misses_a_shard_is_refused(
    tmp_path: Path,
) -> None:
    write_tfrecords(open_digits("train"), tmp_path, shards=4, split_prefix="train")
    (tmp_path / "train-00002-of-00004").unlink()
    with pytest.raises(UserError, match="; 'train-00002-of-00004' is missing"):
        open_source(f"{tmp_path}/train-*", "train")
    with pytest.raises(UserError, match="; 'train-00002-of-00004' is missing"):
        open_source(f"{tmp_path}/train-0000[123]-of-00004", "train")
    said: list[str] = []
    open_source(f"{tmp_path}/train-0000[01]-of-00004", "train", notice=said.append)
    open_source(f"{tmp_path}/train-00003-of-00004", "train", notice=said.append)
    assert ["2 of 4 shards" in said[0], "1 of 4 shards" in said[1]] == [True, True]


def test_a_zip_that_holds_a_picture_twice_is_refused(tmp_path: Path) -> None:
    write_zip(tmp_path / "pets.zip", {"cat/a.jpg": picture(), "cat\\a.jpg": picture("L")})
    with pytest.raises(UserError, match=r"'cat/a\.jpg' occurs twice"):
        open_source(str(tmp_path / "pets.zip"), "train")


@pytest.mark.parametrize(
    ("files", "name", "reason"),
    [
        ({}, "nowhere", "there is no such file or folder"),
        ({}, "https://host/images", "paths of this kind"),
        ({}, "", "no path given"),
        ({}, "none-*", "no file matches"),
        ({"a.txt": b"text"}, "a.txt", "neither a zip nor a TFRecord"),
        ({"a.jpg": picture()}, "a.jpg", "neither a zip nor a TFRecord"),
        ({"a.jpg": picture()}, ".", "are not in class folders"),
        ({"a.txt": b"text"}, ".", "neither class folders nor TFRecord"),
        ({"cat/a.txt": b"text"}, ".", "1 of 1 class folders holds no image: 'cat'"),
        ({"part-1": b"text"}, "part-*", "not a TFRecord file"),
        ({"train-00000-of-00002": b""}, ".", "1 of 2 shards exist"),
        ({"train/cat/a.jpg": b"-", "train.zip": b"-"}, ".", "both 'train' and 'train.zip'"),
        ({"a.zip": b"text"}, "a.zip", "not a zip, or damaged"),
    ],
)
def test_what_cannot_be_opened_is_an_error_that_says_why(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, bytes],
    name: str,
    reason: str,
) -> None:
    monkeypatch.chdir(write_files(tmp_path, files))
    with pytest.raises(UserError, match=reason) as caught:
        open_source(name, "train")
    assert caught.value.where


def test_a_misspelt_name_is_answered_with_the_known_one() -> None:
    with pytest.raises(UserError, match="Did you mean the source 'digits'"):
        open_source("digit", "train")


def test_a_source_of_ones_own_opens_by_its_name() -> None:
    register_source("held-back", lambda split: open_digits("eval"))
    assert len(open_source("held-back", "train")) == len(open_digits("eval"))
    assert splits_of("held-back") == ("train", "eval")


@pytest.mark.parametrize("name", ["digits", "", "a/b", "~", "x.zip"])
def test_a_name_that_is_taken_or_looks_like_a_path_cannot_be_registered(name: str) -> None:
    with pytest.raises(UserError):
        register_source(name, lambda _: open_digits("eval"))


def test_training_and_evaluation_with_other_classes_do_not_fit(tmp_path: Path) -> None:
    write_files(tmp_path, {**DIVIDED, "val/dog/0.jpg": picture()})
    train, held_out = (open_source(str(tmp_path), split) for split in SPLITS)
    with pytest.raises(UserError, match="only in training none, only in evaluation dog"):
        check_pair(train, held_out)


@pytest.mark.parametrize("make", [folder_of_class_folders, zip_of_class_folders, glob_of_shards])
def test_evaluating_on_the_training_images_is_refused(
    tmp_path: Path, make: Callable[[Path], str]
) -> None:
    path = make(tmp_path)
    with pytest.raises(UserError, match="the training images themselves"):
        check_pair(open_source(path, "train"), open_source(path, "eval"))


def test_the_kinds_of_source_are_told_apart(tmp_path: Path) -> None:
    assert isinstance(open_source(folder_of_class_folders(tmp_path / "1"), "train"), ImageFolder)
    assert isinstance(open_source(zip_of_class_folders(tmp_path / "2"), "train"), ImageZip)
    assert isinstance(open_source(folder_of_shards(tmp_path / "3"), "train"), ImageShards)
