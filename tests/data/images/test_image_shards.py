"""ImageNet-style shards: records, faults, names of classes and whole sets."""

import gzip
import pickle
from pathlib import Path

import pytest

from jumar.data.images.image_shards import ImageShards, is_shard_name, read_class_names
from jumar.data.records.example import (
    BytesFeature,
    Feature,
    FloatFeature,
    IntegerFeature,
    encode_example,
)
from jumar.data.records.record_shards import check_none_missing, check_one_set
from jumar.data.samples import CorruptRecord
from jumar.ground.errors import UserError
from tests.data.records.test_tfrecord import framed

BOX = "image/object/bbox/"


def features(label: int = 3, **changed: Feature | None) -> dict[str, Feature]:
    made: dict[str, Feature | None] = {
        "image/encoded": BytesFeature((b"image %d" % label,)),
        "image/class/label": IntegerFeature((label,)),
        "image/filename": BytesFeature((b"a.jpg",)),
        **{key.replace("__", "/"): value for key, value in changed.items()},
    }
    return {key: value for key, value in made.items() if value is not None}


def opened(folder: Path, *shards: list[dict[str, Feature]], pack=bytes) -> ImageShards:
    paths = []
    for number, records in enumerate(shards):
        paths.append(folder / f"train-{number:05}-of-{len(shards):05}")
        paths[-1].write_bytes(pack(framed([encode_example(record) for record in records])))
    return ImageShards(paths, lambda _: None)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_records_keep_shard_order_and_stored_labels(tmp_path: Path, pack) -> None:
    source = opened(
        tmp_path, [features(7), features(1)], [features(1000)], [features(0)], pack=pack
    )
    records = [source.read(index) for index in range(len(source))]
    assert [record.label for record in records] == [7, 1, 1000, 0]
    assert [record.encoded for record in records][2] == b"image 1000"
    assert records[1].origin.startswith(str(tmp_path / "train-00000-of-00003"))
    assert "byte " in records[1].origin


def test_boxes_are_ymin_xmin_ymax_xmax(tmp_path: Path) -> None:
    sides = {
        f"{BOX}{side}": FloatFeature(values)
        for side, values in {
            "xmin": (0.125, 0.25),
            "xmax": (0.5, 0.75),
            "ymin": (0.0, 0.375),
            "ymax": (1.0, 0.625),
        }.items()
    }
    record = opened(tmp_path, [features() | sides]).read(0)
    assert record.boxes == ((0.0, 0.125, 1.0, 0.5), (0.375, 0.25, 0.625, 0.75))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"image__class__label": None}, "'image/class/label' is not a single integer"),
        ({"image__class__label": IntegerFeature((1, 2))}, "not a single integer"),
        ({"image__class__label": BytesFeature((b"cat",))}, "not a single integer"),
        ({"image__encoded": None}, "'image/encoded' is not a single byte string"),
        ({"image__encoded": BytesFeature((b"",))}, "'image/encoded' is empty"),
        ({"image__object__bbox__xmin": FloatFeature((0.5,))}, "differ in length: 0, 1, 0, 0"),
        ({"image__object__bbox__xmin": IntegerFeature((1,))}, "not a list of floats"),
        (
            {
                f"image__object__bbox__{side}": FloatFeature((float("nan"),))
                for side in ("xmin", "xmax", "ymin", "ymax")
            },
            "not a finite number",
        ),
    ],
)
def test_incomplete_record_is_a_fault_and_the_next_is_read(
    tmp_path: Path, changed: dict[str, Feature | None], reason: str
) -> None:
    source = opened(tmp_path, [features(**changed), features(5)])
    with pytest.raises(CorruptRecord, match=reason) as caught:
        source.read(0)
    assert caught.value.fault.origin == f"{tmp_path / 'train-00000-of-00001'}, byte 0"
    assert source.read(1).label == 5


def test_damaged_payload_affects_only_its_record(tmp_path: Path) -> None:
    opened(tmp_path, [features(1), features(2), features(3)])
    (path,) = tmp_path.glob("train-*")
    content = bytearray(path.read_bytes())
    content[content.index(b"image 2")] ^= 8
    path.write_bytes(content)
    source = ImageShards([path], lambda _: None)
    assert source.read(0).label == 1
    assert source.read(2).label == 3
    with pytest.raises(CorruptRecord, match="checksum of its"):
        source.read(1)


def test_damaged_frame_is_an_error_on_opening_the_shards(tmp_path: Path) -> None:
    opened(tmp_path, [features(1)], [features(2)])
    path = tmp_path / "train-00001-of-00002"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(UserError, match="ends inside a record") as caught:
        ImageShards(sorted(tmp_path.glob("train-*")), lambda _: None)
    assert caught.value.where == f"{path}, byte 0"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_shards_without_a_record_are_an_error_that_names_them(tmp_path: Path, pack) -> None:
    with pytest.raises(UserError, match=r"1 of 3 shards contains no record: 'train-00001-of-00003"):
        opened(tmp_path, [features()], [], [features()], pack=pack)
    with pytest.raises(UserError, match=r"7 of 7 shards contain no record.* and 2 more"):
        opened(tmp_path, *[[]] * 7, pack=pack)


def test_pickled_source_reads_the_same(tmp_path: Path) -> None:
    source = opened(tmp_path, [features(1)], [features(2)])
    source.read(0)
    copy = pickle.loads(pickle.dumps(source))
    assert [copy.read(index) for index in range(2)] == [source.read(index) for index in range(2)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("cat\ndog\n", ("cat", "dog")),
        ("0:cat\n1:dog: large\n\n", ("cat", "dog: large")),
        ("3: a book\ncat\n", ("3: a book", "cat")),
        ("", ()),
    ],
)
def test_class_names_are_one_per_line_with_or_without_label(
    tmp_path: Path, text: str, names: tuple[str, ...]
) -> None:
    (tmp_path / "labels.txt").write_text(text)
    assert read_class_names(tmp_path / "labels.txt") == names
    assert tuple(opened(tmp_path, [features()]).classes) == names


def test_class_names_that_skip_a_label_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("0:cat\n2:dog\n")
    with pytest.raises(UserError, match="the label is 2, expected 1") as caught:
        read_class_names(tmp_path / "labels.txt")
    assert caught.value.where.endswith("labels.txt, line 2")


def test_classes_are_unknown_without_a_file_of_names(tmp_path: Path) -> None:
    assert tuple(opened(tmp_path, [features()]).classes) == ()


def test_missing_shard_is_named() -> None:
    paths = [Path(f"/data/train-{number:05}-of-00004") for number in (0, 1, 3)]
    with pytest.raises(UserError, match=r"3 of 4 shards exist.*'train-00002-of-00004'"):
        check_none_missing(paths)
    check_none_missing([*paths, Path("/data/train-00002-of-00004"), Path("/data/other")])


def test_every_missing_shard_is_counted_and_the_first_five_are_named() -> None:
    with pytest.raises(UserError) as caught:
        check_none_missing([Path("a-00003-of-00009.gz")])
    assert "1 of 9 shards exist; 'a-00000-of-00009.gz', " in str(caught.value)
    assert "'a-00005-of-00009.gz' and 3 more are missing" in str(caught.value)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["train-00000-of-00001", "train-00007-of-00001"], "shard 7 of 1"),
        (["train-00000-of-00001", "train-000000-of-00001"], "shard 0 exists twice"),
    ],
)
def test_impossible_shard_number_is_an_error(names: list[str], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        check_none_missing([Path(name) for name in names])


def test_absurd_shard_total_costs_no_time() -> None:
    with pytest.raises(UserError, match="1 of 999999999 shards"):
        check_none_missing([Path("train-00000-of-999999999")])


@pytest.mark.parametrize("other", ["train-00000-of-00002", "train-00000-of-00001.gz"])
def test_shards_of_two_sets_are_not_mixed(other: str) -> None:
    with pytest.raises(UserError, match="different sets are mixed"):
        check_one_set([Path("train-00000-of-00001"), Path(other)])
    check_one_set([Path("train-00000-of-00001"), Path("validation-00000-of-00002")])


@pytest.mark.parametrize(
    ("name", "is_shard"),
    [
        ("train-00000-of-00002", True),
        ("train-00000-of-00002.gz", True),
        ("a.tfrecord", True),
        ("A.TFRecords.GZ", True),
        ("a.tfrecord.zlib", True),
        (".train-00000-of-00002", False),
        ("train-00000-of-00002.jpg", False),
        ("train-00000-of-00002.zip", False),
        ("a.gz", False),
        ("notes", False),
    ],
)
def test_shards_are_recognised_by_name(name: str, is_shard: bool) -> None:
    assert is_shard_name(name) is is_shard


def test_unreadable_class_names_are_an_error_and_an_absent_file_gives_none(
    tmp_path: Path,
) -> None:
    (tmp_path / "labels.txt").mkdir()
    with pytest.raises(UserError, match="cannot be read: Is a directory") as caught:
        read_class_names(tmp_path / "labels.txt")
    assert caught.value.where == str(tmp_path / "labels.txt")
    (tmp_path / "file").write_text("")
    assert read_class_names(tmp_path / "file" / "labels.txt") == ()
    (tmp_path / "names").write_text("0:a\n1:b\n3:c\n")
    with pytest.raises(UserError) as caught:
        read_class_names(tmp_path / "names")
    assert (caught.value.what, caught.value.where) == (
        "the label is 3, expected 2",
        f"{tmp_path / 'names'}, line 3",
    )
