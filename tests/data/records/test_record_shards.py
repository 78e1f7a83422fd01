"""Shards that are one set: their records in order, and the gaps between their names."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from jumar.data.records.record_shards import (
    RECORD_SUFFIXES,
    SHARD_NAME,
    RecordShards,
    ShardGap,
    check_none_missing,
    check_one_set,
    shard_gaps,
)
from jumar.data.samples import fingerprint
from jumar.ground.errors import UserError
from tests.data.records.test_tfrecord import framed


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "cache"))


def test_records_are_numbered_across_shards_and_know_their_location(tmp_path: Path) -> None:
    shards = [[b"a", b"", b"ccc"], [b"dd"], [b"e" * 300, b"f"]]
    paths = [tmp_path / name for name in ("x", "y", "z")]
    for path, payloads in zip(paths, shards, strict=True):
        path.write_bytes(framed(payloads))
    paths[1].write_bytes(gzip.compress(framed(shards[1])))
    notices: list[str] = []
    records = RecordShards(paths, notices.append, rewrite_command="make them")
    assert len(notices) == 1
    (unpacked,) = (tmp_path / "cache" / "tfrecord").iterdir()
    assert len(records) == 6
    # Twelve bytes precede a payload, and four follow it.
    assert [records.payload(number) for number in range(6)] == [
        (b"a", f"{paths[0]}, byte 0"),
        (b"", f"{paths[0]}, byte 17"),
        (b"ccc", f"{paths[0]}, byte 33"),
        (b"dd", f"{paths[1]} (unpacked as {unpacked}), byte 0"),
        (b"e" * 300, f"{paths[2]}, byte 0"),
        (b"f", f"{paths[2]}, byte 316"),
    ]
    assert records.fingerprint == fingerprint(np.array([1, 0, 3, 2, 300, 1], np.int64).tobytes())
    records.read_ahead([3, 0])  # of use to a store only
    assert records.payload(2)[0] == b"ccc"


def test_shards_without_records_are_reported_with_the_command_to_rewrite_them(
    tmp_path: Path,
) -> None:
    paths = [tmp_path / str(number) for number in range(7)]

    def refused(empty: int) -> UserError:
        for number, path in enumerate(paths):
            path.write_bytes(framed([] if number < empty else [b"a"]))
        with pytest.raises(UserError) as error:
            RecordShards(paths, print, rewrite_command="make them")
        return error.value

    assert str(refused(1)) == (
        f"{tmp_path}: 1 of 7 shards contains no record: '0'\n"
        "  Copy them again, or write the set again: make them. If they were always empty, "
        "select the others with a glob."
    )
    assert refused(5).what == "5 of 7 shards contain no record: '0', '1', '2', '3', '4'"
    assert refused(6).what == "6 of 7 shards contain no record: '0', '1', '2', '3', '4' and 1 more"


def test_shard_names_have_numbers_of_five_to_nine_digits() -> None:
    match = SHARD_NAME.match("a-b-00001-of-000000002.gz")
    assert match is not None
    assert match.groupdict() == {
        "stem": "a-b",
        "number": "00001",
        "total": "000000002",
        "suffix": ".gz",
    }
    for name in ("a-0001-of-00002", "a-00001-of-0002", "a-00001-of-0000000002", "a-00001"):
        assert SHARD_NAME.match(name) is None
    assert RECORD_SUFFIXES == (".tfrecord", ".tfrecords", ".tfrec")


def test_missing_shards_of_each_set_are_inferred_from_the_total() -> None:
    paths = [
        Path("/a/x-00001-of-00003.tfrec"),
        Path("/a/x-00000-of-00001"),
        Path("/b/x-00000-of-00002"),
        Path("/b/other"),
    ]
    gaps = shard_gaps(paths)
    assert gaps == [
        ShardGap(
            folder=Path("/a"),
            names=["x-00000-of-00003.tfrec", "x-00002-of-00003.tfrec"],
            present=1,
            total=3,
        ),
        ShardGap(folder=Path("/b"), names=["x-00001-of-00002"], present=1, total=2),
    ]
    assert gaps[0].text == (
        "1 of 3 shards exist; 'x-00000-of-00003.tfrec', 'x-00002-of-00003.tfrec' are missing"
    )
    assert gaps[1].text == "1 of 2 shards exist; 'x-00001-of-00002' is missing"
    assert str(gaps[1].error) == (
        "/b: 1 of 2 shards exist; 'x-00001-of-00002' is missing\n"
        "  Copy the missing shards, or write the set again. To train on existing shards, "
        "select them with a glob that does not match the missing ones."
    )
    assert gaps[0].matching("/a/x-00002*") == ShardGap(
        folder=Path("/a"), names=["x-00002-of-00003.tfrec"], present=1, total=2
    )
    assert gaps[0].matching("/b/*") is None
    with pytest.raises(UserError, match="1 of 3 shards exist"):
        check_none_missing(paths)
    check_none_missing([paths[1], paths[3]])


def test_at_most_a_hundred_thousand_missing_shards_are_named() -> None:
    (gap,) = shard_gaps([Path("x-000000000-of-000200001")])
    assert (len(gap.names), gap.present, gap.total) == (100_000, 1, 200_001)
    assert gap.names[:2] == ["x-00001-of-200001", "x-00002-of-200001"]
    assert gap.text.endswith("'x-00005-of-200001' and 199995 more are missing")


def test_impossible_shard_numbers_are_reported_with_their_files() -> None:
    with pytest.raises(UserError) as error:
        shard_gaps([Path("/a/x-00002-of-00002")])
    assert str(error.value) == (
        "/a/x-00002-of-00002: shard 2 of 2, which are numbered from 0\n"
        "  Remove it if it is left over, or restore its original name."
    )
    with pytest.raises(UserError) as error:
        shard_gaps([Path("/a/x-00001-of-00002"), Path("/a/x-000001-of-00002")])
    assert str(error.value) == (
        "/a: shard 1 exists twice: 'x-00001-of-00002' and 'x-000001-of-00002'\n"
        "  Remove the leftover one."
    )


def test_leftovers_of_another_conversion_are_reported_with_both_sets() -> None:
    check_one_set([Path("/a/x-00000-of-00002"), Path("/b/x-00000-of-00004"), Path("/a/y")])
    check_one_set([Path("/a/x-00000-of-00002"), Path("/a/x-00001-of-00002")])
    with pytest.raises(UserError) as error:
        check_one_set([Path("/a/x-00000-of-00004"), Path("/a/x-00000-of-00002.gz")])
    assert str(error.value) == (
        "/a: shards of different sets are mixed: x-*-of-00002.gz and x-*-of-00004\n"
        "  Remove leftover shards, or specify a glob that matches one set."
    )
