"""ImageNet-style shards that TensorFlow 1.15 wrote: bytes, labels and boxes.

What decoding and evaluation preprocessing make of them is replayed in
test_image_preprocessing.py.
"""

import hashlib
from pathlib import Path

import pytest

from jumar.data.images.sources import open_source
from jumar.data.images.tfrecord_writer import write_tfrecords
from jumar.data.records.example import decode_example, encode_example
from jumar.data.records.offset_files import OffsetFiles
from jumar.data.records.tfrecord import index_records, read_payload
from tests.parity.fixture import ParityCase


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "imagenet_records.npz")


def test_every_record_has_the_stored_bytes_label_and_boxes(parity: Path, case: ParityCase) -> None:
    source = open_source(str(parity / "formats" / "imagenet"), "train")
    assert len(source) == sum(case.config["records_per_shard"])
    assert list(source.classes) == []
    for expected in case.config["records"]:
        record = source.read(expected["index"])
        assert len(record.encoded) == expected["bytes"]
        assert hashlib.sha1(record.encoded).hexdigest() == expected["sha1"]
        assert record.label == expected["label"]
        assert [list(box) for box in record.boxes] == expected["boxes_ymin_xmin_ymax_xmax"]
        assert f"train-{expected['shard']:05}-of-00003, byte " in record.origin


def test_shards_are_counted_exactly(parity: Path, case: ParityCase) -> None:
    paths = sorted((parity / "formats" / "imagenet").iterdir())
    counts = [len(index_records(path)) for path in paths]
    assert counts == case.config["records_per_shard"]


def test_records_written_by_us_have_tensorflows_size_and_name(parity: Path, tmp_path: Path) -> None:
    source = open_source(str(parity / "formats" / "imagenet"), "train")
    write_tfrecords(source, tmp_path, shards=2, split_prefix="train")
    theirs = examples(sorted((parity / "formats" / "imagenet").iterdir()))
    ours = examples(sorted(tmp_path.glob("train-*")))
    assert ours.keys() == theirs.keys()
    same = ["image/height", "image/width", "image/class/label", "image/encoded"]
    same += [f"image/object/bbox/{side}" for side in ("xmin", "xmax", "ymin", "ymax")]
    for sha1, example in theirs.items():
        assert example.keys() <= ours[sha1].keys()
        for key in same:
            assert ours[sha1][key] == example[key], key
        assert decode_example(encode_example(example)) == example


def examples(paths: list[Path]):
    result = {}
    for path in paths:
        index, files = index_records(path), OffsetFiles([path])
        for offset, length in zip(index.offsets, index.lengths, strict=True):
            example = decode_example(read_payload(files, 0, int(offset), int(length), "here"))
            result[hashlib.sha1(example["image/encoded"].values[0]).hexdigest()] = example
    return result
