"""Shards from images: the same images come back, in whole sets or not at all."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jumar.data.images import tfrecord_writer
from jumar.data.images.sources import open_source
from jumar.data.images.tfrecord_writer import convert_to_tfrecords, write_tfrecords
from jumar.data.pixels.decode import DecodeError, decode_image
from jumar.data.records.example import Feature, decode_example
from jumar.data.records.offset_files import OffsetFiles
from jumar.data.records.tfrecord import index_records, read_payload
from jumar.data.samples import Record
from jumar.ground.errors import UserError
from tests.data.pictures import MIXED, pets, picture, write_files, write_zip
from tests.tensorflow115 import run_tensorflow, tensorflow_python


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "cache"))


def examples(path: Path) -> list[dict[str, Feature]]:
    index, files = index_records(path), OffsetFiles([path])
    return [
        decode_example(read_payload(files, 0, int(offset), int(length), "here"))
        for offset, length in zip(index.offsets, index.lengths, strict=True)
    ]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


class Listed:
    """A source of given records."""

    def __init__(self, records: Sequence[Record], classes: Sequence[str] = ()) -> None:
        self.records = records
        self.classes = classes

    def __len__(self) -> int:
        return len(self.records)

    def read(self, index: int) -> Record:
        return self.records[index]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_every_image_round_trips_with_label_and_class(tmp_path: Path, compression) -> None:
    origin = str(write_zip(tmp_path / "pets.zip", pets(20)))
    (summary,) = convert_to_tfrecords(
        origin, tmp_path / "to", shards=3, workers=2, compression=compression
    )
    before, after = open_source(origin, "train"), open_source(str(tmp_path / "to"), "train")
    assert sorted(
        (record.label, record.encoded) for record in map(after.read, range(len(after)))
    ) == sorted((record.label, record.encoded) for record in map(before.read, range(len(before))))
    assert list(after.classes) == list(before.classes) == list(summary.classes) == ["cat", "horse"]
    assert (summary.prefix, summary.images, len(summary.files)) == ("train", 40, 3)
    assert summary.bytes == sum(path.stat().st_size for path in summary.files)


def test_fields_match_the_imagenet_scripts(tmp_path: Path) -> None:
    write_files(tmp_path / "from", {f"all/{name}": data for name, data in MIXED.items()})
    convert_to_tfrecords(str(tmp_path / "from"), tmp_path / "to", shards=1)
    result = {
        example["image/filename"].values[0]: {key: part.values for key, part in example.items()}
        for example in examples(tmp_path / "to" / "train-00000-of-00001")
    }
    facts = {
        name.decode(): tuple(
            example[f"image/{key}"][0] for key in ("colorspace", "channels", "format")
        )
        for name, example in result.items()
    }
    assert facts == {
        "grey.jpg": (b"Grayscale", 1, b"JPEG"),
        "cmyk.jpeg": (b"CMYK", 4, b"JPEG"),
        "turned.JPG": (b"RGB", 3, b"JPEG"),
        "transparent.png": (b"RGB", 4, b"PNG"),
        "palette.PNG": (b"RGB", 3, b"PNG"),
        "bitmap.bmp": (b"RGB", 3, b"BMP"),
        "web.webp": (b"RGB", 3, b"WEBP"),
    }
    for name, example in result.items():
        assert example["image/encoded"] == (MIXED[name.decode()],)
        assert (example["image/width"], example["image/height"]) == ((12,), (8,))
        assert example["image/class/text"] == (b"all",)
        assert example["image/class/synset"] == (b"",)
        assert example["image/class/label"] == (0,)
        assert example["image/object/bbox/xmin"] == ()


def test_boxes_are_written_with_the_label(tmp_path: Path) -> None:
    boxes = ((0.0, 0.125, 1.0, 0.5), (0.25, 0.25, 0.625, 0.75))
    record = Record(encoded=picture(), label=4, origin="a.jpg", boxes=boxes)
    write_tfrecords(Listed([record]), tmp_path, shards=1, split_prefix="train")
    read = open_source(str(tmp_path), "train").read(0)
    assert (read.boxes, read.label) == (boxes, 4)
    (example,) = examples(tmp_path / "train-00000-of-00001")
    assert example["image/object/bbox/label"].values == (4, 4)
    assert not (tmp_path / "labels.txt").exists()


def test_class_names_in_any_script_and_encoding_round_trip(tmp_path: Path) -> None:
    names = ["\u732b", "a\u2028b", "1: odd", os.fsdecode(b"\xff")]
    records = [
        Record(encoded=picture(), label=label, origin=f"{label}.jpg") for label in range(len(names))
    ]
    write_tfrecords(Listed(records, names), tmp_path, shards=1, split_prefix="train")
    assert list(open_source(str(tmp_path), "train").classes) == names


def test_digits_can_be_written(tmp_path: Path) -> None:
    written = convert_to_tfrecords("digits", tmp_path / "to", shards=5)
    assert [len(part.files) for part in written] == [5, 1]
    assert sum(part.images for part in written) == 1797


def test_bytes_do_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    origin = str(write_files(tmp_path / "from", pets(30)))
    for compression in ("none", "gzip"):
        for workers in (1, 4):
            convert_to_tfrecords(
                origin,
                tmp_path / f"{compression}{workers}",
                shards=5,
                workers=workers,
                compression=compression,
            )
        assert contents(tmp_path / f"{compression}1") == contents(tmp_path / f"{compression}4")


def test_shards_are_even_and_mix_the_classes(tmp_path: Path) -> None:
    origin = str(write_files(tmp_path / "from", pets(50)))
    (summary,) = convert_to_tfrecords(origin, tmp_path / "to", shards=3)
    labels = [
        [example["image/class/label"].values[0] for example in examples(path)]
        for path in summary.files
    ]
    assert sorted(map(len, labels)) == [33, 33, 34]
    assert all(0.2 < sum(part) / len(part) < 0.8 for part in labels)


def test_both_parts_are_written_with_shards_in_proportion(tmp_path: Path) -> None:
    files = {f"train/{name}": data for name, data in pets(20).items()}
    files |= {f"val/{name}": data for name, data in pets(5).items()}
    seen: list[tuple[int, int]] = []
    written = convert_to_tfrecords(
        str(write_files(tmp_path / "from", files)),
        tmp_path / "to",
        shards=8,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert [(part.prefix, part.images, len(part.files)) for part in written] == [
        ("train", 40, 8),
        ("validation", 10, 2),
    ]
    assert seen[-1] == (50, 50)
    assert seen == sorted(seen)
    assert len(open_source(str(tmp_path / "to"), "eval")) == 10


def test_offset_of_one_reserves_label_0_for_the_background(tmp_path: Path) -> None:
    origin = str(write_files(tmp_path / "from", pets()))
    convert_to_tfrecords(origin, tmp_path / "to", shards=1, label_offset=1)
    source = open_source(str(tmp_path / "to"), "train")
    assert list(source.classes) == ["background", "cat", "horse"]
    assert {source.classes[source.read(index).label] for index in range(4)} == {"cat", "horse"}


def interrupt(done: int, total: int) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_leaves_no_files(tmp_path: Path) -> None:
    origin = str(write_files(tmp_path / "from", pets(30)))
    with pytest.raises(KeyboardInterrupt):
        convert_to_tfrecords(origin, tmp_path / "a" / "to", shards=4, progress=interrupt)
    assert not (tmp_path / "a" / "to").exists()


def test_non_image_file_is_named_and_no_files_are_left(tmp_path: Path) -> None:
    write_files(tmp_path / "from", {**pets(10), "cat/broken.jpg": b"\xff\xd8 not really"})
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "mine.txt").write_text("kept")
    with pytest.raises(
        UserError, match="unreadable image: not an image of a known format"
    ) as caught:
        convert_to_tfrecords(str(tmp_path / "from"), tmp_path / "to", shards=4, workers=2)
    assert caught.value.where == str(tmp_path / "from" / "cat" / "broken.jpg")
    assert list(contents(tmp_path / "to")) == ["mine.txt"]


@pytest.mark.parametrize(("kind", "share"), [("JPEG", 0.7), ("JPEG", 0.98), ("PNG", 0.5)])
def test_truncated_image_is_refused_as_in_training(tmp_path: Path, kind: str, share: float) -> None:
    whole = picture(kind=kind, size=(60, 40))
    cut = whole[: int(share * len(whole))]
    with pytest.raises(DecodeError, match="truncated"):
        decode_image(cut, fast=True)
    origin = write_files(tmp_path / "from", {**pets(10), "cat/cut.jpg": cut})
    with pytest.raises(UserError, match=r"unreadable image: .*truncated") as caught:
        convert_to_tfrecords(str(origin), tmp_path / "to", shards=4, workers=2)
    assert caught.value.where == str(origin / "cat" / "cut.jpg")
    assert not (tmp_path / "to").exists()


def test_failure_in_the_second_part_removes_the_first(tmp_path: Path) -> None:
    files = {f"train/{name}": data for name, data in pets(5).items()}
    files |= {f"val/{name}": data for name, data in pets(5).items()} | {"val/cat/x.jpg": b"x"}
    origin = str(write_files(tmp_path / "from", files))
    with pytest.raises(UserError, match="unreadable image"):
        convert_to_tfrecords(origin, tmp_path / "to", shards=2)
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"shards": 0}, "0 shards"),
        ({"shards": 100_000}, "100000 shards"),
        ({"shards": 5}, "4 train images cannot fill 5 shards"),
        ({"label_offset": 2}, "the label offset cannot be 2"),
    ],
)
def test_impossible_requests_are_refused_immediately(
    tmp_path: Path, wanted: dict[str, Any], reason: str
) -> None:
    origin = str(write_files(tmp_path / "from", pets()))
    with pytest.raises(UserError, match=reason):
        convert_to_tfrecords(origin, tmp_path / "to", **{"shards": 1, **wanted})
    assert not (tmp_path / "to").exists()


def test_existing_shards_are_not_overwritten(tmp_path: Path) -> None:
    origin = str(write_files(tmp_path / "from", pets()))
    convert_to_tfrecords(origin, tmp_path / "to", shards=1)
    before = contents(tmp_path / "to")
    with pytest.raises(UserError, match="already contains 1 train shard,"):
        convert_to_tfrecords(origin, tmp_path / "to", shards=2)
    assert contents(tmp_path / "to") == before


@pytest.mark.parametrize("inside", [".", "shards", "train/shards", "link"])
def test_shards_are_not_written_into_their_source_folder(tmp_path: Path, inside: str) -> None:
    source = write_files(
        tmp_path / "pets", {f"train/{name}": data for name, data in pets().items()}
    )
    (tmp_path / "pets" / "link").symlink_to("train")
    before = sorted(source.rglob("*"))
    with pytest.raises(UserError, match="into the data they are made from"):
        convert_to_tfrecords(str(source), source / inside, shards=1)
    assert sorted(source.rglob("*")) == before
    convert_to_tfrecords(str(source), tmp_path / "pets-shards", shards=1)


def test_parts_with_different_classes_are_not_written_into_one_folder(tmp_path: Path) -> None:
    record = Record(encoded=picture(), label=0, origin="a.jpg")
    write_tfrecords(Listed([record], ["cat"]), tmp_path, shards=1, split_prefix="train")
    with pytest.raises(UserError, match="not the 1 of the images"):
        write_tfrecords(Listed([record], ["dog"]), tmp_path, shards=1, split_prefix="validation")
    write_tfrecords(Listed([record], ["cat"]), tmp_path, shards=1, split_prefix="validation")
    assert len(contents(tmp_path)) == 3


def test_too_small_disk_is_reported_before_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = str(write_files(tmp_path / "from", pets()))
    monkeypatch.setattr(tfrecord_writer, "_RECORD_OVERHEAD", 2**60)
    with pytest.raises(UserError, match="GiB is needed, but only"):
        convert_to_tfrecords(origin, tmp_path / "to", shards=1)
    assert not (tmp_path / "to").exists()


def test_two_writers_cannot_share_a_folder_and_leftovers_of_a_killed_one_are_removed(
    tmp_path: Path, shared: Path
) -> None:
    origin = str(shared / "data" / "sign-digits-100px" / "train.zip")
    script = (
        "import sys, time; from pathlib import Path;"
        "from jumar.data.images.tfrecord_writer import convert_to_tfrecords as convert;"
        "convert(sys.argv[1], Path(sys.argv[2]), shards=4, progress=lambda *_: time.sleep(60))"
    )
    to = tmp_path / "to"
    writer = subprocess.Popen([sys.executable, "-c", script, origin, str(to)])
    try:
        until = time.monotonic() + 60
        while not list(to.glob(".writing/train-*")) and time.monotonic() < until:
            time.sleep(0.05)
        with pytest.raises(UserError, match="another process is writing"):
            convert_to_tfrecords(origin, to, shards=4)
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert [path.name for path in to.iterdir()] == [".writing"]
    convert_to_tfrecords(origin, to, shards=4, workers=2)
    assert len(open_source(str(to), "train")) == 1559
    assert not (to / ".writing").exists()


def test_tensorflow_reads_the_shards(tmp_path: Path) -> None:
    tensorflow_python()
    write_files(tmp_path / "from", {f"all/{name}": data for name, data in MIXED.items()})
    for compression, suffix in (("none", ""), ("gzip", ".gz")):
        to = tmp_path / compression
        convert_to_tfrecords(str(tmp_path / "from"), to, shards=2, compression=compression)
        for shard in range(2):
            path = to / f"train-{shard:05}-of-00002{suffix}"
            lines = run_tensorflow(_READ_SHARD, str(path), "GZIP" if suffix else "")
            assert len(lines) == 3 + shard
            for name, sha1, label, width in lines:
                assert hashlib.sha1(MIXED[name]).hexdigest() == sha1
                assert (label, width) == (0, 12)


_READ_SHARD = """
import hashlib
tf.enable_eager_execution()
string = tf.FixedLenFeature([], tf.string)
number = tf.FixedLenFeature([], tf.int64)
spec = {
    "image/encoded": string,
    "image/filename": string,
    "image/class/label": number,
    "image/width": number,
    "image/object/bbox/xmin": tf.VarLenFeature(tf.float32),
}
lines = []
for item in tf.data.TFRecordDataset(sys.argv[1], sys.argv[2]):
    parsed = tf.parse_single_example(item, spec)
    lines.append([
        parsed["image/filename"].numpy().decode(),
        hashlib.sha1(parsed["image/encoded"].numpy()).hexdigest(),
        int(parsed["image/class/label"]),
        int(parsed["image/width"]),
    ])
answer(lines)
"""


@pytest.mark.parametrize("name", ["cat\nhorse", "cat\r"])
def test_class_names_with_line_breaks_are_refused_before_writing(tmp_path: Path, name: str) -> None:
    records = [Record(encoded=picture(), label=0, origin="a.jpg")]
    with pytest.raises(UserError) as caught:
        write_tfrecords(
            Listed(records, ["dog", name]), tmp_path / "to", shards=1, split_prefix="train"
        )
    assert caught.value.what == f"the class name {name!r} has a line break"
    assert not (tmp_path / "to").exists()


def test_compressed_shards_use_the_fastest_gzip_level(tmp_path: Path) -> None:
    """Images hardly shrink however long it takes."""
    records = [Record(encoded=picture(), label=0, origin="a.jpg")]
    (path,) = write_tfrecords(
        Listed(records), tmp_path, shards=1, split_prefix="train", compression="gzip"
    ).files
    # RFC 1952: the ninth byte is 4 where the fastest method was used.
    assert path.read_bytes()[8] == 4
