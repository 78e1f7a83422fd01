"""Shards written whole: which image is in which file, what is refused, and what is left behind."""

import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jumar.data.images.tfrecord_writer import Summary, convert_to_tfrecords, write_tfrecords
from jumar.data.samples import Record
from jumar.ground.errors import UserError
from jumar.ground.text import size_text
from tests.data.images.test_tfrecord_writer import Listed, contents, examples, interrupt
from tests.data.pictures import pets, picture, write_files, write_zip


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "cache"))


class Counted(Listed):
    """A source of different images without classes that notes what is read."""

    def __init__(self, sizes: Sequence[int], seconds: float = 0.0) -> None:
        made = [picture(size=(side, 5)) for side in sizes]
        super().__init__(
            [
                Record(encoded=encoded, label=number, origin=f"{number}.jpg")
                for number, encoded in enumerate(made)
            ]
        )
        self.seconds = seconds
        self.count = 0

    def read(self, index: int) -> Record:
        time.sleep(self.seconds)
        self.count += 1
        return super().read(index)


def labels(path: Path) -> list[int]:
    return [int(example["image/class/label"].values[0]) for example in examples(path)]


def test_images_are_in_a_fixed_random_order_split_into_even_shards(tmp_path: Path) -> None:
    order = list(range(11))
    random.Random(0).shuffle(order)
    summary = write_tfrecords(
        Counted(range(3, 14)), tmp_path, shards=3, split_prefix="validation", workers=0
    )
    assert [path.name for path in summary.files] == [
        f"validation-0000{number}-of-00003" for number in range(3)
    ]
    assert [labels(path) for path in summary.files] == [order[:3], order[3:7], order[7:]]
    assert summary == Summary(
        prefix="validation",
        files=[tmp_path / path.name for path in summary.files],
        images=11,
        bytes=sum(path.stat().st_size for path in summary.files),
        classes=(),
        seconds=summary.seconds,
    )
    assert 0 < summary.seconds < 60


def test_compressed_shards_use_fast_gzip_without_name_or_time(tmp_path: Path) -> None:
    write_tfrecords(
        Counted([4]), tmp_path, shards=1, split_prefix="train", compression="gzip", workers=3
    )
    (path,) = tmp_path.iterdir()
    assert path.name == "train-00000-of-00001.gz"
    # RFC 1952: deflate, no flags, no time, and 4 for the fastest compression.
    assert path.read_bytes()[:9] == b"\x1f\x8b\x08\x00\0\0\0\0\x04"


def test_labels_txt_has_a_line_for_each_class(tmp_path: Path) -> None:
    records = [Record(encoded=picture(), label=0, origin="a.jpg")]
    for label_offset, text in ((0, "0:cat\n1:dog\n"), (1, "0:background\n1:cat\n2:dog\n")):
        to = tmp_path / str(label_offset)
        write_tfrecords(
            Listed(records, ["cat", "dog"]),
            to,
            shards=1,
            split_prefix="train",
            label_offset=label_offset,
        )
        assert (to / "labels.txt").read_text() == text
        assert labels(to / "train-00000-of-00001") == [label_offset]


@pytest.mark.parametrize("name", ["a\nb", "a\rb"])
def test_class_name_with_a_line_break_is_refused(tmp_path: Path, name: str) -> None:
    record = Record(encoded=picture(), label=0, origin="a.jpg")
    with pytest.raises(UserError, match=r"the class name 'a\\[nr]b' has a line break"):
        write_tfrecords(Listed([record], [name]), tmp_path, shards=1, split_prefix="train")


@pytest.mark.parametrize(
    ("counts", "shards", "eval_shards", "expected"),
    [
        ((8, 2), 4, None, (4, 1)),
        ((8, 6), 4, None, (4, 3)),
        ((8, 1), 2, None, (2, 1)),
        ((8, 6), 4, 2, (4, 2)),
        ((8, 6), 1, 3, (1, 3)),
        ((1, 2), 1, None, (1, 2)),
    ],
)
def test_evaluation_has_shards_in_proportion_unless_a_number_is_given(
    tmp_path: Path,
    counts: tuple[int, int],
    shards: int,
    eval_shards: int | None,
    expected: tuple[int, int],
) -> None:
    files = {
        f"{part}/cat/{number}.png": picture("L", "PNG", (3 + number, 3))
        for part, count in zip(("train", "val"), counts, strict=True)
        for number in range(count)
    }
    written = convert_to_tfrecords(
        str(write_files(tmp_path / "from", files)),
        tmp_path / "to",
        shards=shards,
        eval_shards=eval_shards,
    )
    assert tuple(len(part.files) for part in written) == expected
    assert tuple(part.images for part in written) == counts


def test_equal_parts_are_refused_and_undivided_images_are_one_part(
    tmp_path: Path,
) -> None:
    whole = str(write_files(tmp_path / "from", pets()))
    assert [part.prefix for part in convert_to_tfrecords(whole, tmp_path / "a", shards=1)] == [
        "train"
    ]
    files = {f"train/{name}": data for name, data in pets().items()}
    (tmp_path / "twice").mkdir()
    write_files(tmp_path / "twice", files)
    (tmp_path / "twice" / "val").symlink_to("train")
    with pytest.raises(UserError, match="would use the training images"):
        convert_to_tfrecords(str(tmp_path / "twice"), tmp_path / "b", shards=1)
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("count", [128, 127, 3])
def test_required_space_is_estimated_from_64_images_or_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    source = Counted([3 + 60 * (number % 2) for number in range(count)])
    # Of 128 images every second one is looked at; one more entry stands for a set without images.
    looked_at = [len(record.encoded) for record in source.records[:: 2 if count == 128 else 1]]
    needed = (600 + sum(600 + size for size in looked_at)) * count // (len(looked_at) + 1)
    for free in (needed, needed - 1):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        if free == needed:
            write_tfrecords(source, tmp_path / "to", shards=1, split_prefix="train")
            continue
        with pytest.raises(UserError) as caught:
            write_tfrecords(source, tmp_path / "to", shards=1, split_prefix="validation")
        assert (caught.value.what, caught.value.where) == (
            f"about {size_text(needed)} is needed, but only {size_text(free)} is free",
            str(tmp_path / "to"),
        )


def test_required_space_covers_both_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"train/{name}": data for name, data in pets(1).items()}
    files |= {f"val/{name}": data for name, data in pets(1).items()}
    origin = str(write_files(tmp_path / "from", files))
    sizes = [len(data) for data in pets(1).values()]
    needed = 2 * ((600 + sum(600 + size for size in sizes)) * 2 // 3)
    for free in (needed - 1, needed):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        if free < needed:
            with pytest.raises(UserError, match="is needed, but only"):
                convert_to_tfrecords(origin, tmp_path / "to", shards=1)
        else:
            convert_to_tfrecords(origin, tmp_path / "to", shards=1)


def test_no_new_images_are_read_after_ctrl_c(tmp_path: Path) -> None:
    source = Counted([4], seconds=0.005)
    source.records = [*source.records] * 2000  # ten seconds of them
    with pytest.raises(KeyboardInterrupt):
        write_tfrecords(source, tmp_path, shards=1, split_prefix="train", progress=interrupt)
    assert 0 < source.count < 1500
    assert list(tmp_path.iterdir()) == []


def test_requests_at_the_limits_are_accepted(tmp_path: Path) -> None:
    source = Counted(range(3, 7))
    assert len(write_tfrecords(source, tmp_path, shards=4, split_prefix="train").files) == 4
    for shards, what in (
        (99_999, "4 validation images cannot fill 99999 shards"),
        (100_000, "100000 shards"),
        (0, "0 shards"),
    ):
        with pytest.raises(UserError) as caught:
            write_tfrecords(source, tmp_path, shards=shards, split_prefix="validation")
        assert (caught.value.what, caught.value.where) == (what, "--shards")
    for offset in (-1, 2):
        with pytest.raises(UserError, match=f"the label offset cannot be {offset}"):
            write_tfrecords(
                source, tmp_path, shards=1, split_prefix="validation", label_offset=offset
            )
    with pytest.raises(UserError) as caught:
        write_tfrecords(source, tmp_path, shards=2, split_prefix="train")
    assert caught.value.what == ("already contains 4 train shards, such as 'train-00000-of-00004'")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file, not a folder"):
        write_tfrecords(source, tmp_path / "file", shards=1, split_prefix="train")


def test_shards_may_be_written_next_to_a_zip_or_below_the_source_of_a_file(tmp_path: Path) -> None:
    origin = write_zip(tmp_path / "pets.zip", pets())
    (written,) = convert_to_tfrecords(str(origin), tmp_path, shards=1)
    (shard,) = written.files
    with pytest.raises(UserError) as caught:
        convert_to_tfrecords(str(shard), tmp_path, shards=1)
    assert (caught.value.what, caught.value.where, caught.value.todo) == (
        "the shards would be written into the data they are made from",
        str(tmp_path),
        f"Choose a folder outside {tmp_path}, for instance {tmp_path}-shards.",
    )
    convert_to_tfrecords(str(shard), tmp_path / "below", shards=1)
    folder = write_files(tmp_path / "a.zip", pets())
    with pytest.raises(UserError, match="into the data they are made from"):
        convert_to_tfrecords(str(folder), folder / "to", shards=1)


def test_leftovers_of_a_killed_writer_are_not_shards_and_no_file_stays_open(
    tmp_path: Path,
) -> None:
    write_files(tmp_path, {".writing/train-00007-of-00009": b"-", ".writing/other": b"-"})
    before = sorted(Path("/proc/self/fd").iterdir())
    write_tfrecords(Counted([3, 4]), tmp_path, shards=2, split_prefix="train")
    assert sorted(Path("/proc/self/fd").iterdir()) == before
    assert list(contents(tmp_path)) == ["train-00000-of-00002", "train-00001-of-00002"]


def test_no_shards_remain_if_the_last_file_cannot_be_placed(tmp_path: Path) -> None:
    class InTheWay(Counted):
        def read(self, index: int) -> Record:
            write_files(tmp_path, {"to/train-00001-of-00002/x": b"-"})
            return super().read(index)

    source = InTheWay([3, 4])
    source.classes = ["a", "b"]
    (tmp_path / "to").mkdir()
    with pytest.raises(UserError, match="cannot be written: Is a directory") as caught:
        write_tfrecords(source, tmp_path / "to", shards=2, split_prefix="train")
    assert caught.value.todo.endswith("Nothing was written.")
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["train-00001-of-00002"]


def test_unwritable_record_is_named_by_its_number(tmp_path: Path) -> None:
    source = Counted([3, 4])
    three_sides: Any = ((0.0, 0.1, 1.0),)
    source.records = [source.records[0], replace(source.records[1], boxes=three_sides)]
    with pytest.raises(UserError, match="shorter than") as caught:
        write_tfrecords(source, tmp_path, shards=1, split_prefix="train")
    assert (caught.value.where, caught.value.todo) == (
        "image 1",
        "Repair or remove this image. Nothing was written.",
    )


def test_progress_continues_across_parts(tmp_path: Path) -> None:
    files = {f"train/{name}": data for name, data in pets(3).items()}
    files |= {f"val/{name}": data for name, data in pets(2).items()}
    seen: list[tuple[int, int]] = []
    convert_to_tfrecords(
        str(write_files(tmp_path / "from", files)),
        tmp_path / "to",
        shards=1,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert {total for _, total in seen} == {10}
    assert (6, 10) in seen
    assert seen[-1] == (10, 10)
