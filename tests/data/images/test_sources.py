"""What `data.path` may be, and what is said where it fits nothing."""

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from jumar.data.images import sources
from jumar.data.images.digits import open_digits
from jumar.data.images.image_folder import ImageFolder
from jumar.data.images.image_shards import ImageShards
from jumar.data.images.image_zip import ImageZip
from jumar.data.images.sources import (
    Split,
    check_pair,
    is_registered,
    open_source,
    register_source,
    splits_of,
)
from jumar.data.images.tfrecord_writer import convert_to_tfrecords, write_tfrecords
from jumar.data.samples import CorruptRecord, ImageSource, Record
from jumar.ground.errors import UserError
from tests.data.pictures import pets, picture, write_files, write_zip
from tests.data.scenes import MemorySource


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
def test_undivided_set_serves_every_split(tmp_path: Path, make: Callable[[Path], str]) -> None:
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
def test_real_data_sets_open_by_their_folder(
    shared: Path, name: str, counts: tuple[int, int]
) -> None:
    train, held_out = (open_source(str(shared / "data" / name), split) for split in SPLITS)
    check_pair(train, held_out)
    assert (len(train), len(held_out)) == counts
    assert len(train.classes) == 10


def test_folder_of_imagenet_shards_has_no_evaluation_part(parity: Path) -> None:
    path = str(parity / "formats" / "imagenet")
    assert len(open_source(path, "train")) == 13
    with pytest.raises(UserError, match=r"no images for evaluation.*\n.*data\.eval_path"):
        open_source(path, "eval")


def test_home_directory_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder_of_class_folders(tmp_path / "pets")
    assert len(open_source("~/pets", "train")) == 6


def test_single_class_folder_is_a_class_not_a_wrapper(tmp_path: Path) -> None:
    write_files(tmp_path, {"cat/0.jpg": picture(), "cat/more/1.jpg": picture("L")})
    assert list(open_source(str(tmp_path), "train").classes) == ["cat"]


def test_class_named_train_is_a_class(tmp_path: Path) -> None:
    write_files(tmp_path, {"train/0.jpg": picture(), "ship/0.jpg": picture()})
    assert list(open_source(str(tmp_path), "train").classes) == ["ship", "train"]


def test_parts_without_class_folders_are_not_classes(tmp_path: Path) -> None:
    write_files(tmp_path, {"train/0.jpg": picture(), "val/0.jpg": picture()})
    with pytest.raises(UserError, match="are not in class folders") as caught:
        open_source(str(tmp_path), "train")
    assert caught.value.where == str(tmp_path / "train")


def test_part_names_are_found_in_longer_shard_names(tmp_path: Path) -> None:
    made = Path(folder_of_shards(tmp_path / "made"))
    for path in made.glob("*-of-*"):
        number = path.name.partition("-")[2]
        kind = path.name.partition("-")[0]
        path.rename(made / f"pets2-{kind}.tfrecord-{number}")
    assert splits_of(str(made)) == ("train", "eval")
    assert len(open_source(str(made), "train")) == 6


def test_unnamed_sets_of_shards_are_not_mixed(tmp_path: Path) -> None:
    write_files(tmp_path, {"one-00000-of-00001": b"", "two-00000-of-00001": b""})
    with pytest.raises(UserError, match="contains shards of several sets: one, two"):
        open_source(str(tmp_path), "train")


def test_part_inside_another_part_is_refused(tmp_path: Path) -> None:
    train_and_val_folders(tmp_path / "val")
    (tmp_path / "val" / "val").rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="the name of a part other than eval"):
        open_source(str(tmp_path), "eval")


def test_skipped_files_are_reported(tmp_path: Path) -> None:
    files = {"cat/notes.txt": b"-", "cat/more/b.txt": b"-", "readme": b"-", "a.jpg": b"-"}
    write_zip(tmp_path / "pets.zip", {**pets(), **files})
    messages: list[str] = []
    open_source(str(tmp_path / "pets.zip"), "train", notice=messages.append)
    assert messages == [
        f"{tmp_path / 'pets.zip'}: skipped 2 non-image files: 2 .txt",
        f"{tmp_path / 'pets.zip'}: skipped 2 files outside the classes: 1 .jpg, 1 without a suffix",
    ]


def test_classes_that_differ_only_in_case_are_reported(tmp_path: Path) -> None:
    write_files(tmp_path, {f"{name}/a.jpg": picture() for name in ("Cat", "cat", "dog")})
    messages: list[str] = []
    open_source(str(tmp_path), "train", notice=messages.append)
    assert messages == [f"{tmp_path}: Cat and cat differ only in case; treated as separate classes"]


def test_other_files_next_to_shards_are_reported(tmp_path: Path) -> None:
    write_tfrecords(open_digits("train"), tmp_path, shards=1, split_prefix="train")
    write_files(tmp_path, {"cat/a.jpg": picture(), "readme.md": b"-"})
    messages: list[str] = []
    open_source(str(tmp_path), "train", notice=messages.append)
    assert messages == [f"{tmp_path}: contains shards; ignoring cat next to them"]


def test_glob_without_some_shards_says_so_and_with_a_gap_is_refused(
    tmp_path: Path,
) -> None:
    write_tfrecords(open_digits("train"), tmp_path, shards=4, split_prefix="train")
    (tmp_path / "train-00002-of-00004").unlink()
    with pytest.raises(UserError, match="; 'train-00002-of-00004' is missing"):
        open_source(f"{tmp_path}/train-*", "train")
    with pytest.raises(UserError, match="; 'train-00002-of-00004' is missing"):
        open_source(f"{tmp_path}/train-0000[123]-of-00004", "train")
    messages: list[str] = []
    open_source(f"{tmp_path}/train-0000[01]-of-00004", "train", notice=messages.append)
    open_source(f"{tmp_path}/train-00003-of-00004", "train", notice=messages.append)
    assert ["2 of 4 shards" in messages[0], "1 of 4 shards" in messages[1]] == [True, True]


def test_zip_with_a_duplicate_image_is_refused(tmp_path: Path) -> None:
    write_zip(tmp_path / "pets.zip", {"cat/a.jpg": picture(), "cat\\a.jpg": picture("L")})
    with pytest.raises(UserError, match=r"'cat/a\.jpg' occurs twice"):
        open_source(str(tmp_path / "pets.zip"), "train")


@pytest.mark.parametrize(
    ("files", "name", "reason"),
    [
        ({}, "nowhere", "there is no such file or folder"),
        ({}, "https://host/images", "paths of this kind"),
        ({}, "", "no path set"),
        ({}, "none-*", "no file matches"),
        ({"a.txt": b"text"}, "a.txt", "neither a zip nor a TFRecord"),
        ({"a.jpg": picture()}, "a.jpg", "neither a zip nor a TFRecord"),
        ({"a.jpg": picture()}, ".", "are not in class folders"),
        ({"a.txt": b"text"}, ".", "neither class folders nor TFRecord"),
        ({"cat/a.txt": b"text"}, ".", "1 of 1 class folders contains no image: 'cat'"),
        ({"part-1": b"text"}, "part-*", "not a TFRecord file"),
        ({"train-00000-of-00002": b""}, ".", "1 of 2 shards exist"),
        ({"train/cat/a.jpg": b"-", "train.zip": b"-"}, ".", "both 'train' and 'train.zip'"),
        ({"a.zip": b"text"}, "a.zip", "not a zip file, or damaged"),
    ],
)
def test_unopenable_data_is_an_error_with_the_reason(
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


def test_misspelt_name_suggests_the_known_one() -> None:
    with pytest.raises(UserError, match="Did you mean the source 'digits'"):
        open_source("digit", "train")


def test_custom_source_opens_by_name() -> None:
    register_source("held-back", lambda split: open_digits("eval"))
    assert len(open_source("held-back", "train")) == len(open_digits("eval"))
    assert splits_of("held-back") == ("train", "eval")


@pytest.mark.parametrize("name", ["digits", "", "a/b", "~", "x.zip"])
def test_taken_or_path_like_name_cannot_be_registered(name: str) -> None:
    with pytest.raises(UserError):
        register_source(name, lambda _: open_digits("eval"))


def test_different_training_and_evaluation_classes_are_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {**DIVIDED, "val/dog/0.jpg": picture()})
    train, held_out = (open_source(str(tmp_path), split) for split in SPLITS)
    with pytest.raises(UserError, match="only in training none, only in evaluation dog"):
        check_pair(train, held_out)


@pytest.mark.parametrize("make", [folder_of_class_folders, zip_of_class_folders, glob_of_shards])
def test_evaluating_on_the_training_images_is_refused(
    tmp_path: Path, make: Callable[[Path], str]
) -> None:
    path = make(tmp_path)
    with pytest.raises(UserError, match="would use the training images"):
        check_pair(open_source(path, "train"), open_source(path, "eval"))


def test_kinds_of_source_are_distinguished(tmp_path: Path) -> None:
    assert isinstance(open_source(folder_of_class_folders(tmp_path / "1"), "train"), ImageFolder)
    assert isinstance(open_source(zip_of_class_folders(tmp_path / "2"), "train"), ImageZip)
    assert isinstance(open_source(folder_of_shards(tmp_path / "3"), "train"), ImageShards)


def refused(path: Path | str, split: Split = "train") -> tuple[str, str, str]:
    """What is said of a path that cannot be opened: what is wrong, where, and what to do."""
    with pytest.raises(UserError) as caught:
        open_source(str(path), split)
    return caught.value.what, caught.value.where, caught.value.todo


def test_missing_content_is_reported_with_what_was_expected(tmp_path: Path) -> None:
    write_files(tmp_path / "a", under("train", TRAIN))
    assert refused(tmp_path / "a", "eval") == (
        "there are no images for evaluation in it",
        str(tmp_path / "a"),
        "Expected val or validation or eval or test in it as a folder, zip or shards, or set "
        "data.eval_path to where they are.",
    )
    write_files(tmp_path / "b", under("Eval", HELD_OUT))
    assert refused(tmp_path / "b") == (
        "there are no images for training in it",
        str(tmp_path / "b"),
        "Expected train in it as a folder, zip or shards.",
    )
    assert splits_of(str(tmp_path / "b")) == ("eval",)
    assert splits_of("digits") == ("train", "eval")


def test_missing_path_error_lists_the_accepted_forms(tmp_path: Path) -> None:
    what, where, todo = refused(tmp_path / "nowhere")
    assert (what, where) == ("there is no such file or folder", str(tmp_path / "nowhere"))
    assert todo.startswith("Specify a folder, a zip, TFRecord shards, or one of: digits")
    assert refused("digitz")[2].startswith("Did you mean the source 'digits'? Specify a folder, a")
    assert refused("")[2].startswith("Specify images, or one of: digits")
    (tmp_path / "[x]").mkdir()
    write_files(tmp_path / "[x]", TRAIN)
    assert len(open_source(str(tmp_path / "[x]"), "train")) == 6


def test_glob_of_other_files_is_refused_naming_the_first(tmp_path: Path) -> None:
    one_record_file(tmp_path)
    write_files(tmp_path / "to", {"train-b.txt": b"-", "train-c.txt": b"-"})
    assert refused(tmp_path / "to" / "train-*") == (
        f"matches '{tmp_path / 'to' / 'train-b.txt'}', which is not a TFRecord file",
        str(tmp_path / "to" / "train-*"),
        "Globs are for TFRecord shards only; specify a folder or a zip without one.",
    )
    (tmp_path / "to" / "train-a").mkdir()
    assert "train-a', which is not a TFRecord file" in refused(tmp_path / "to" / "train-*")[0]
    write_zip(tmp_path / "pets.zip", TRAIN)
    assert "pets.zip', which is not a TFRecord file" in refused(tmp_path / "pets.*")[0]


@pytest.mark.parametrize("extra", [(), ("lion",), ("lion", "newt")])
def test_at_most_three_differing_classes_are_named(extra: tuple[str, ...]) -> None:
    def source(*classes: str) -> MemorySource:
        return MemorySource([b"-"] * len(classes), classes=classes)

    with pytest.raises(UserError) as caught:
        check_pair(source("ant", "bee", "cow", "dog", *extra), source("ant", "eel", "fox"))
    only = "bee, cow, dog" + (", ..." if extra else "")
    assert (caught.value.what, caught.value.where, caught.value.todo) == (
        f"the classes of training ({4 + len(extra)}) and evaluation (3) differ: only in training "
        f"{only}, only in evaluation eel, fox",
        "data.path and data.eval_path",
        "Labels are positions in the sorted class names, so both need the same classes.",
    )


def test_sources_are_equal_if_count_and_first_and_last_image_match(tmp_path: Path) -> None:
    class Named(MemorySource):
        def __init__(self, *names: str, classes: Sequence[str] = ()) -> None:
            super().__init__([b"-"] * len(names), classes=classes)
            self.names = names

        def read(self, index: int) -> Record:
            if self.names[index] == "broken":
                raise CorruptRecord("broken", "is damaged")
            return Record(encoded=b"-", label=0, origin=self.names[index])

    check_pair(Named(), Named())
    check_pair(Named("a", "b"), Named("a", "c"))
    check_pair(Named("a", "b"), Named("c", "b"))
    check_pair(Named("a", "b", "c"), Named("a", "c"))
    check_pair(Named("a", classes=["x"]), Named("b"))
    for one, other in ((("a", "b", "c"), ("./a", "d", "x/../c")), (("broken",), ("broken",))):
        with pytest.raises(UserError) as caught:
            check_pair(Named(*one), Named(*other))
        assert (caught.value.what, caught.value.where, caught.value.todo) == (
            "evaluation would use the training images",
            "data.eval_path",
            "Set it to other images, or put train and val folders into data.path.",
        )


def test_name_is_registered_for_one_opener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_registered", {"digits": open_digits})

    def opener(split: Split) -> ImageSource:
        return open_digits(split)

    for _ in range(2):
        register_source("mine", opener)
    assert is_registered("mine")
    assert not is_registered("yours")
    with pytest.raises(UserError, match="a source named 'mine' already exists") as caught:
        register_source("mine", open_digits)
    assert caught.value.todo == "Choose another name."
    for name in ("", *(f"a{mark}b" for mark in "/\\*?[~.")):
        with pytest.raises(UserError) as caught:
            register_source(name, opener)
        assert caught.value.what == f"'{name}' is not a valid source name"


def test_duplicate_or_unknown_parts_are_refused(tmp_path: Path) -> None:
    write_files(tmp_path / "a", {**under("Train", TRAIN), "TRAIN.zip": b"-"})
    assert refused(tmp_path / "a") == (
        "both 'Train' and 'TRAIN.zip' are in it",
        str(tmp_path / "a"),
        "Remove one of them, or name the intended one in data.path or data.eval_path.",
    )
    write_files(tmp_path / "b", under("val/train", TRAIN))
    assert refused(tmp_path / "b", "eval") == (
        "its content has the name of a part other than eval",
        str(tmp_path / "b" / "val"),
        "Move or rename it, so that the names of folder and content match.",
    )


def test_wrapping_folder_of_classes_holds_only_folders(tmp_path: Path) -> None:
    def classes(files: dict[str, bytes]) -> tuple[str, ...]:
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        return tuple(open_source(str(write_files(place, files)), "train").classes)

    assert classes(under("pets", {**TRAIN, "readme.txt": b"-"})) == ("cat", "horse")
    assert classes(under("pets", {**TRAIN, "a.jpg": picture()})) == ("pets",)
    assert classes({**under("pets", TRAIN), "bird/a.jpg": picture()}) == ("bird", "pets")
    assert classes(under("x/pets", TRAIN)) == ("pets",)
    assert classes(under("pets", DIVIDED)) == ("cat", "horse")
    # A single folder of images is a class, whatever its name.
    assert classes({"train/a.jpg": picture()}) == ("train",)
    assert classes(under("train", TRAIN)) == ("cat", "horse")


def test_files_next_to_shards_are_counted_and_three_named(tmp_path: Path) -> None:
    write_tfrecords(MemorySource([picture()]), tmp_path, shards=1, split_prefix="train")
    write_files(tmp_path, dict.fromkeys(("cat/a.jpg", "b.jpg", "c.zip", "d.txt"), b"-"))
    messages: list[str] = []
    open_source(str(tmp_path), "train", notice=messages.append)
    write_files(tmp_path, {"e.png": b"-"})
    open_source(str(tmp_path), "train", notice=messages.append)
    assert messages == [
        f"{tmp_path}: contains shards; ignoring cat, b.jpg, c.zip{more} next to them"
        for more in ("", ", ...")
    ]


def test_shards_that_a_glob_leaves_out_are_counted(tmp_path: Path) -> None:
    write_tfrecords(MemorySource([picture()] * 8), tmp_path, shards=4, split_prefix="train")
    messages: list[str] = []
    source = open_source(f"{tmp_path}/train-0000[013]-of-00004", "train", notice=messages.append)
    assert messages == [f"{tmp_path}: using only the specified 3 of 4 shards"]
    assert len(source) == 6


def test_shard_sets_that_are_not_parts_are_named(tmp_path: Path) -> None:
    names = [f"{stem}-00000-of-00001" for stem in ("d", "c", "b", "a")]
    write_files(tmp_path, dict.fromkeys(names, b""))
    assert refused(tmp_path) == (
        "contains shards of several sets: a, b, c, ...",
        str(tmp_path),
        "Specify a glob that matches one of them, for instance 'a-*'.",
    )


def test_files_next_to_the_classes_are_counted_per_folder(tmp_path: Path) -> None:
    write_files(tmp_path, {**under("w/train", TRAIN), "w/train/cat/x.txt": b"-"})
    write_files(tmp_path, under("w/val", HELD_OUT))
    messages: list[str] = []
    open_source(str(tmp_path), "train", notice=messages.append)
    open_source(str(tmp_path), "eval", notice=messages.append)
    assert messages == [
        f"{tmp_path}/w/train: skipped 1 non-image file: 1 .txt",
    ]
