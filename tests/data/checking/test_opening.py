"""The kind of data at a path, and its parts."""

import zipfile
from pathlib import Path

import pytest

from jumar.data.checking.opening import CheckedData, kind_of, open_parts
from jumar.ground.errors import UserError
from tests.data.pictures import pets, picture, write_files, write_zip
from tests.data.tones import tone

PICTURE = picture()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        (("low/a.wav", "low/b.jpg"), "clips"),
        (("low/a.WAVE",), "clips"),
        (("cat/a.jpg", "dog/b.png"), "images"),
        (("a.jpg", "cat/b.png"), "images"),
        (("a.jpg",), "pictures"),
        (("cat/a.jpg", "dog/notes.csv"), "pictures"),
        (("cat/a.jpg", "cow/a.jpg", "dog/notes.csv"), "images"),
        (("train-00000-of-00002",), "images"),
        (("a/b.tfrecord",), "images"),
        (("train-00000-of-00002.gz",), "images"),
        (("a.jpg", "b.jpg", "c.jpg", "d.jpg", "gt_a.txt", "poly_gt_b.mat"), "outlines"),
        (("a.jpg", "b.jpg", "c.jpg", "d.jpg", "label_A.JSON"), "pictures"),
        (("a.jpg", "b.jpg", "c.jpg", "d.jpg", "a.csv", "b.csv"), "pictures"),
        (("x/a.jpg", "y/A.json"), "outlines"),
        (("a.jpg", "other.txt"), "pictures"),
        (("a.tsv", "b.txt"), "sentences"),
        (("a.jsonl", "b.json"), "sentences"),
        (("a.json", "b.txt"), "questions"),
        (("a.txt",), "tagged"),
        (("a.bio",), "tagged"),
        ((".a/b.wav", ".c.wav", "__MACOSX/d.wav", "in/e.tsv"), "sentences"),
        (("a.raw", "b/readme"), None),
        (("README",), None),
        ((), None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_file_names_determine_the_kind(
    tmp_path: Path, files: tuple[str, ...], kind: str | None
) -> None:
    (tmp_path / "in").mkdir()
    path = str(write_files(tmp_path / "in", dict.fromkeys(files, PICTURE)))
    if kind is not None:
        assert kind_of(path) == kind
        return
    with pytest.raises(UserError) as caught:
        kind_of(path)
    assert (caught.value.what, caught.value.where, caught.value.todo) == (
        "has no data of a known kind",
        path,
        "Known: images, WAV files, TFRecord shards, .tsv, .jsonl and .json of texts, tagged "
        "tokens in .txt. Set the kind with --kind.",
    )


@pytest.mark.parametrize("path", ["digits", "s3://bucket/x", "obs://bucket/x", "a*", "a?", "[a]"])
def test_sources_globs_and_stores_are_opened_as_images(path: str) -> None:
    assert kind_of(path) == "images"


def test_zip_kind_follows_from_its_content_and_a_single_files_from_its_name(tmp_path: Path) -> None:
    assert kind_of(str(write_zip(tmp_path / "a.ZIP", {"low/a.wav": b"-"}))) == "clips"
    write_zip(tmp_path / "in" / "train.zip", {"low/a.wav": b"-"})
    assert kind_of(str(tmp_path / "in")) == "clips"
    write_files(tmp_path, {"b.tsv": b"-", "cut.zip": b"PK\x03\x04"})
    assert kind_of(str(tmp_path / "b.tsv")) == "sentences"
    with pytest.raises(
        UserError, match="not a zip file, or damaged: File is not a zip file"
    ) as caught:
        kind_of(str(tmp_path / "cut.zip"))
    assert caught.value.where == str(tmp_path / "cut.zip")
    with pytest.raises(UserError, match="there is no such file or folder"):
        kind_of(str(tmp_path / "nowhere"))
    with zipfile.ZipFile(tmp_path / "hidden.zip", "w") as archive:
        archive.writestr(".hidden.wav", b"-")
    with pytest.raises(UserError, match="no data of a known kind"):
        kind_of(str(tmp_path / "hidden.zip"))


def opened(path: Path | str, **changes: object) -> list[object]:
    """The kind, and the name, items and classes of each part."""
    data = CheckedData(path=str(path), **changes)  # type: ignore[arg-type]
    kind, parts = open_parts(data, lambda _: None)
    return [kind, *((part.name, len(part.reader), tuple(part.classes)) for part in parts)]


def test_images_have_a_second_part_if_present_or_named(tmp_path: Path) -> None:
    known = ("cat", "horse")
    whole = write_files(tmp_path / "whole", pets(3))
    assert opened(whole) == ["images", ("training", 6, known)]
    assert opened(whole, kind="pictures") == ["pictures", ("training", 6, ())]
    files = {f"train/{name}": data for name, data in pets(2).items()}
    files |= {f"val/{name}": data for name, data in pets(1).items()}
    divided = write_files(tmp_path / "divided", files)
    training = ("training", 4, known)
    assert opened(divided) == ["images", training, ("evaluation", 2, known)]
    assert opened(divided, eval_path="none") == ["images", training]
    assert opened(divided, eval_path=str(whole)) == ["images", training, ("evaluation", 6, known)]
    assert opened(whole, eval_path=str(divided))[2] == ("evaluation", 2, known)
    assert opened(divided, kind="pictures") == ["pictures", ("training", 4, ())]
    assert opened(divided, kind="pictures", eval_path=str(divided)) == [
        "pictures",
        ("training", 4, ()),
        ("evaluation", 2, ()),
    ]


@pytest.mark.parametrize("kind", ["", "images"])
def test_an_empty_class_folder_changes_neither_the_kind_nor_the_parts(
    tmp_path: Path, kind: str
) -> None:
    files = {f"train/{name}": data for name, data in pets(2).items()}
    files |= {f"val/{name}": data for name, data in pets(1).items()}
    (tmp_path / "train" / "dog").mkdir(parents=True)
    assert opened(write_files(tmp_path, files), kind=kind) == [
        "images",
        ("training", 4, ("cat", "dog", "horse")),
        ("evaluation", 2, ("cat", "horse")),
    ]
    for path in (tmp_path / "val").rglob("*.jpg"):
        path.unlink()
    with pytest.raises(UserError, match="2 of 2 class folders contain no image"):
        opened(tmp_path, kind=kind)


def test_images_in_one_of_several_folders_are_checked_without_classes_and_that_is_said(
    tmp_path: Path,
) -> None:
    path = str(write_files(tmp_path, {"cat/a.jpg": PICTURE, "dog/notes.csv": b"-"}))
    notices: list[str] = []
    assert open_parts(CheckedData(path=path), notices.append)[0] == "pictures"
    assert notices[0] == (
        f"checked without classes (--kind images): {path}: 1 of 2 class folders contains no "
        "image: 'dog' (with 1 .csv)"
    )


def test_image_labels_are_ignored_without_classes(tmp_path: Path) -> None:
    whole = str(write_files(tmp_path, pets(1)))
    labels = {}
    for kind in ("images", "pictures"):
        _, (part,) = open_parts(CheckedData(path=whole, kind=kind), lambda _: None)
        labels[kind] = [part.reader.item(index).label for index in range(2)]
    assert labels == {"images": ["cat", "horse"], "pictures": ["", ""]}


TEXTS = {
    "sentences": ("tsv", b"label\ttext_a\n0\tone\n1\ttwo\n"),
    "tagged": ("txt", b"a B-PER\n\nb O\n"),
    "questions": (
        "json",
        b'{"data": [{"paragraphs": [{"context": "the sky", "qas": ['
        b'{"id": "1", "question": "what?", "answers": [{"text": "sky", "answer_start": 4}]},'
        b'{"id": "2", "question": "which?", "answers": [{"text": "the", "answer_start": 0}]}]}]}]}',
    ),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_texts_have_the_existing_parts(tmp_path: Path, kind: str) -> None:
    suffix, content = TEXTS[kind]
    training, evaluation = ("training", 2, ()), ("evaluation", 2, ())
    (tmp_path / f"train.{suffix}").write_bytes(content)
    assert opened(tmp_path) == [kind, training]
    assert opened(tmp_path / f"train.{suffix}") == [kind, training]
    other = tmp_path / f"other.{suffix}"
    other.write_bytes(content)
    assert opened(tmp_path, eval_path=str(other)) == [kind, training, evaluation]
    assert opened(tmp_path, eval_path="none") == [kind, training]
    with pytest.raises(UserError, match="there is no such file"):
        opened(tmp_path, eval_path=str(tmp_path / "nowhere.tsv"))
    (tmp_path / f"train.{suffix}").rename(tmp_path / f"dev.{suffix}")
    assert opened(tmp_path) == [kind, evaluation]
    (tmp_path / f"dev.{suffix}").unlink()
    with pytest.raises(UserError, match=r"there is no file train\*"):
        opened(tmp_path)


def test_clips_have_the_existing_parts_and_missing_ones_are_reported(tmp_path: Path) -> None:
    files = {f"train/low/{n}_nohash_0.wav": tone("low", n) for n in range(3)}
    files |= {f"val/low/{n}_nohash_0.wav": tone("low", n) for n in range(4, 6)}
    messages: list[str] = []
    place = str(write_files(tmp_path / "a", files))
    kind, parts = open_parts(CheckedData(path=place), messages.append)
    assert kind == "clips"
    assert [(part.name, len(part.reader), tuple(part.classes)) for part in parts] == [
        ("training", 3, ("low",)),
        ("evaluation", 2, ("low",)),
    ]
    assert len(messages) == 1
    assert messages[0].startswith("testing: ")
    other = write_files(tmp_path / "b", {"high/1_nohash_0.wav": tone("high", 1)})
    assert opened(other, eval_path=place)[1:] == [
        ("training", 1, ("high",)),
        ("evaluation", 2, ("low",)),
    ]
