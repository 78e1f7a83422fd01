"""Compressed TFRecord: unpacked once, checked, and bounded."""

import gzip
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.data.records import tfrecord_cache
from jumar.data.records.tfrecord import frame
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
def test_compressed_records_are_those_of_the_plain_file(tmp_path: Path, pack) -> None:
    path = tmp_path / "packed"
    path.write_bytes(pack(framed(PAYLOADS)))
    said: list[str] = []
    assert read_all(plain(path, said)) == PAYLOADS
    assert len(said) == 1
    assert "unpacking 1" in said[0]
    assert plain(path, said) == plain(path)
    assert len(said) == 1, "the second opening finds it unpacked"


def test_a_plain_file_is_used_where_it_is(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "plain"
    path.write_bytes(framed(PAYLOADS))
    assert plain(path) == path
    assert not cache.exists()


def test_a_plain_record_whose_length_looks_like_gzip_is_plain(tmp_path: Path) -> None:
    path = tmp_path / "plain"
    path.write_bytes(framed([bytes(0x8B1F)]))
    assert path.read_bytes().startswith(b"\x1f\x8b")
    assert plain(path) == path


def test_a_changed_file_is_unpacked_anew_and_the_earlier_copy_goes(
    tmp_path: Path, cache: Path
) -> None:
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(framed([b"old"])))
    plain(path)
    path.write_bytes(gzip.compress(framed([b"newer"])))
    assert read_all(plain(path)) == [b"newer"]
    assert len(list(cache.iterdir())) == 1


def test_openings_at_the_same_time_unpack_once_and_leave_nothing_else(
    tmp_path: Path, cache: Path
) -> None:
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(framed([os.urandom(2_000_000)] * 4)))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(plain, [path] * 8))
    assert len(set(found)) == 1
    assert [entry.name for entry in cache.iterdir()] == [found[0].name]


def test_what_a_killed_process_left_is_written_over(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(framed(PAYLOADS)))
    entry = plain(path)
    entry.rename(entry.with_suffix(".partial"))
    entry.with_suffix(".partial").write_bytes(b"half of it")
    assert read_all(plain(path)) == PAYLOADS
    assert [left.name for left in cache.iterdir()] == [entry.name]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.data())
def test_a_cut_compressed_file_is_an_error_and_nothing_stays_in_the_cache(
    tmp_path: Path, cache: Path, where: st.DataObject
) -> None:
    content = gzip.compress(framed(PAYLOADS), mtime=0)
    path = tmp_path / "cut"
    path.write_bytes(content[: where.draw(st.integers(3, len(content) - 1))])
    with pytest.raises(UserError, match="cut short"):
        plain(path)
    assert not list(cache.iterdir())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data[:60] + bytes([data[60] ^ 4]) + data[61:], "is damaged"),
        (lambda data: data + b"more", "something else follows"),
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


def test_a_decompression_bomb_is_stopped(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tfrecord_cache, "ALWAYS_ALLOWED", 2**20)
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(framed([bytes(30 * 2**20)])))
    with pytest.raises(UserError, match="decompression bomb"):
        plain(path)
    assert not list(cache.iterdir())


def test_a_full_disk_is_said_with_the_variable_that_moves_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tfrecord_cache, "KEPT_FREE", 2**62)
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(framed(PAYLOADS)))
    with pytest.raises(UserError, match="disk is full") as caught:
        plain(path)
    assert "JUMAR_CACHE" in caught.value.todo
    assert not list(cache.iterdir())


def test_a_cache_that_cannot_be_made_is_an_error_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "file"))
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(framed(PAYLOADS)))
    with pytest.raises(UserError, match="JUMAR_CACHE"):
        plain(path)


def test_other_files_are_no_record_files(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a text that is long enough to have a header")
    assert not is_record_file(path)
    with pytest.raises(UserError, match="not a TFRecord file") as caught:
        plain(path)
    assert caught.value.where == f"{path}, byte 0"


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_CACHE", "~/somewhere")
    assert cache_folder() == Path.home() / "somewhere"
    monkeypatch.delenv("JUMAR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/mine")
    assert cache_folder() == Path("/var/mine/jumar")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "jumar"


def test_an_empty_payload_frames_to_sixteen_bytes() -> None:
    assert sum(map(len, frame(b""))) == 16
