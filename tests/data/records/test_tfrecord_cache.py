"""Compressed TFRecord: unpacked once, checked, and bounded."""

import gzip
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.data.records import tfrecord_cache
from jumar.data.records.tfrecord import framed_payload
from jumar.data.records.tfrecord_cache import is_record_file, plain_files
from jumar.ground.cache import cache_folder
from jumar.ground.errors import UserError
from tests.data.records.test_tfrecord import framed, read_all

PAYLOADS = [os.urandom(700), b"", b"short"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tfrecord"


def plain(path: Path, said: list[str] | None = None) -> Path:
    return plain_files([path], (said if said is not None else []).append)[0]


@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        zlib.compress,
        lambda data: gzip.compress(data[:100]) + gzip.compress(data[100:]),
    ],
    ids=["gzip", "zlib", "gzip in two members"],
)
def test_compressed_records_equal_those_of_the_plain_file(tmp_path: Path, pack) -> None:
    path = tmp_path / "packed"
    path.write_bytes(pack(framed(PAYLOADS)))
    messages: list[str] = []
    assert read_all(plain(path, messages)) == PAYLOADS
    assert len(messages) == 1
    assert "unpacking 1" in messages[0]
    assert plain(path, messages) == plain(path)
    assert len(messages) == 1, "the second opening finds it unpacked"


def test_plain_file_is_used_in_place(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "plain"
    path.write_bytes(framed(PAYLOADS))
    assert plain(path) == path
    assert not cache.exists()


def test_plain_record_whose_length_looks_like_gzip_is_plain(tmp_path: Path) -> None:
    path = tmp_path / "plain"
    path.write_bytes(framed([bytes(0x8B1F)]))
    assert path.read_bytes().startswith(b"\x1f\x8b")
    assert plain(path) == path


def test_changed_file_is_unpacked_again_and_the_old_copy_removed(
    tmp_path: Path, cache: Path
) -> None:
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(framed([b"old"])))
    plain(path)
    path.write_bytes(gzip.compress(framed([b"newer"])))
    assert read_all(plain(path)) == [b"newer"]
    assert len(list(cache.iterdir())) == 1


def test_concurrent_opening_unpacks_once_and_leaves_nothing_else(
    tmp_path: Path, cache: Path
) -> None:
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(framed([os.urandom(2_000_000)] * 4)))
    with ThreadPoolExecutor(8) as pool:
        result = list(pool.map(plain, [path] * 8))
    assert len(set(result)) == 1
    assert [entry.name for entry in cache.iterdir()] == [result[0].name]


def test_leftovers_of_a_killed_process_are_overwritten(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(framed(PAYLOADS)))
    entry = plain(path)
    entry.rename(entry.with_suffix(".partial"))
    entry.with_suffix(".partial").write_bytes(b"half of it")
    assert read_all(plain(path)) == PAYLOADS
    assert [left.name for left in cache.iterdir()] == [entry.name]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.data())
def test_truncated_compressed_file_is_an_error_and_leaves_nothing_in_the_cache(
    tmp_path: Path, cache: Path, where: st.DataObject
) -> None:
    content = gzip.compress(framed(PAYLOADS), mtime=0)
    path = tmp_path / "cut"
    path.write_bytes(content[: where.draw(st.integers(3, len(content) - 1))])
    with pytest.raises(UserError, match="truncated"):
        plain(path)
    assert not list(cache.iterdir())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data[:60] + bytes([data[60] ^ 4]) + data[61:], "is damaged"),
        (lambda data: data + b"more", "unexpected bytes follow"),
        (lambda data: gzip.compress(b"no record, only text that goes on"), "not a TFRecord"),
    ],
    ids=["flipped bit", "appended bytes", "something else packed"],
)
def test_damaged_compressed_files_are_errors_that_name_the_file(
    tmp_path: Path, cache: Path, change, reason: str
) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(change(gzip.compress(framed(PAYLOADS))))
    with pytest.raises(UserError, match=reason) as caught:
        plain(path)
    assert caught.value.where == str(path)
    assert not list(cache.iterdir())


def test_decompression_bomb_is_stopped(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tfrecord_cache, "ALWAYS_ALLOWED", 2**20)
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(framed([bytes(30 * 2**20)])))
    with pytest.raises(UserError, match="decompression bomb"):
        plain(path)
    assert not list(cache.iterdir())


def test_full_disk_is_reported_with_the_variable_that_moves_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tfrecord_cache, "KEPT_FREE", 2**62)
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(framed(PAYLOADS)))
    with pytest.raises(UserError, match="disk is full") as caught:
        plain(path)
    assert "JUMAR_CACHE" in caught.value.todo
    assert not list(cache.iterdir())


def test_uncreatable_cache_is_a_user_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "file"))
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(framed(PAYLOADS)))
    with pytest.raises(UserError, match="JUMAR_CACHE"):
        plain(path)


def test_other_files_are_not_record_files(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a text that is long enough to have a header")
    assert not is_record_file(path)
    with pytest.raises(UserError, match="not a TFRecord file") as caught:
        plain(path)
    assert caught.value.where == f"{path}, byte 0"


def test_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE", "~/somewhere")
    assert cache_folder() == Path.home() / "somewhere"
    monkeypatch.delenv("JUMAR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/mine")
    assert cache_folder() == Path("/var/mine/jumar")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "jumar"


def test_empty_payload_frames_to_sixteen_bytes() -> None:
    assert len(framed_payload(b"")) == 16


@pytest.mark.parametrize(
    ("head", "is_one"),
    [
        (b"", True),
        (b"\x1f", False),
        (b"\x1f\x8b", True),
        (b"\x1f\x8a" + bytes(20), False),
        (b"\x78", False),
        # zlib: method 8, and a multiple of 31.
        (b"\x78\x9c", True),
        (b"\x78\x01", True),
        (b"\x78\x9d", False),
        (b"\x79\x93", False),
        (b"\x08\x1d", True),
        (framed([b"a"])[:12], True),
        (framed([b"a"])[:11], False),
        (framed([b"a"])[:11] + b"\0", False),
    ],
)
def test_record_files_are_recognised_by_their_first_bytes(
    tmp_path: Path, head: bytes, is_one: bool
) -> None:
    (tmp_path / "a").write_bytes(head)
    assert is_record_file(tmp_path / "a") is is_one


def test_compressed_files_among_others_are_unpacked_with_one_notice_in_place(
    tmp_path: Path, cache: Path
) -> None:
    paths = [tmp_path / str(number) for number in range(4)]
    for number, path in enumerate(paths):
        content = framed([bytes([number])])
        path.write_bytes(gzip.compress(content) if number % 2 else content)
    messages: list[str] = []
    result = plain_files(paths, messages.append)
    assert messages == [f"unpacking 2 compressed TFRecord files into {cache}, once"]
    assert [read_all(path) for path in result] == [[bytes([number])] for number in range(4)]
    assert [result[0], result[2]] == [paths[0], paths[2]]
    assert {result[1].parent, result[3].parent} == {cache}
    paths[0].write_bytes(gzip.compress(framed([b"now packed"])))
    result[3].unlink()
    assert plain_files([], messages.append) == []
    plain_files(paths, messages.append)
    assert messages[1:] == [f"unpacking 2 compressed TFRecord files into {cache}, once"]


def test_large_file_is_unpacked_in_pieces_across_members_of_any_size(tmp_path: Path) -> None:
    content = framed([bytes(3_000_000), os.urandom(5000), bytes(1_500_000)])
    cut = [0, 7, 1 << 20, (1 << 21) + 3, len(content)]
    path = tmp_path / "packed"
    path.write_bytes(b"".join(gzip.compress(content[begin:end]) for begin, end in pairwise(cut)))
    assert plain(path).read_bytes() == content


def test_unpacking_errors_have_the_full_message(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"

    def refused(content: bytes) -> str:
        path.write_bytes(content)
        with pytest.raises(UserError) as error:
            plain(path)
        assert not cache.exists() or not list(cache.iterdir())
        return str(error.value)

    packed = gzip.compress(framed(PAYLOADS))
    size = len(framed(PAYLOADS))
    todo = "Copy, download or write this file again."
    assert refused(packed + b"x") == (
        f"{path}: unexpected bytes follow the compressed data (after {size} unpacked bytes)\n"
        f"  {todo}"
    )
    # The beginning of another member is one that is cut short.
    assert refused(packed + b"\x1f") == (
        f"{path}: the compressed data is truncated (after {size} unpacked bytes)\n  {todo}"
    )
    assert refused(gzip.compress(b"no record at all")) == (
        f"{path}: the compressed data is not a TFRecord, or its first record length is damaged"
    )
    assert refused(b"text, and more") == (
        f"{path}, byte 0: this is not a TFRecord file, or its first record length is damaged\n"
        "  Expected a record header with a valid checksum, or gzip or zlib around one."
    )
    constants = tfrecord_cache.MAX_EXPANSION, tfrecord_cache.ALWAYS_ALLOWED
    assert (*constants, tfrecord_cache.KEPT_FREE) == (100, 2**28, 2**28)
    bomb = framed([bytes(5000)])
    packed = gzip.compress(bomb)
    monkeypatch.setattr(tfrecord_cache, "MAX_EXPANSION", 1)
    monkeypatch.setattr(tfrecord_cache, "ALWAYS_ALLOWED", len(bomb) - 1)
    assert refused(packed) == (
        f"{path}: unpacks to more than 5 KiB, over 1 times its size: rejected as a decompression "
        "bomb\n  If you trust the file, decompress it yourself and specify the result."
    )
    monkeypatch.setattr(tfrecord_cache, "KEPT_FREE", 2**62)
    monkeypatch.setattr(tfrecord_cache, "ALWAYS_ALLOWED", len(bomb))
    assert refused(packed) == (
        f"unpacking {path} into {cache}: the disk is full\n"
        "  Free some space, or set JUMAR_CACHE to a folder on another disk."
    )
    monkeypatch.setattr(tfrecord_cache, "KEPT_FREE", 0)
    assert read_all(plain(path)) == [bytes(5000)]


def test_cache_without_permission_is_reported_with_the_systems_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "file"))
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(framed(PAYLOADS)))
    with pytest.raises(UserError) as error:
        plain(path)
    assert error.value.what == "failed: Not a directory"
    assert error.value.where == f"unpacking {path} into {tmp_path / 'file' / 'tfrecord'}"


def test_copies_of_other_files_survive_a_change(tmp_path: Path, cache: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for path in (one, other):
        path.write_bytes(gzip.compress(framed([b"a"])))
    kept = plain(other)
    before = plain(one)
    one.write_bytes(gzip.compress(framed([b"changed"])))
    after = plain(one)
    assert sorted(cache.iterdir()) == sorted([kept, after])
    assert before != after
