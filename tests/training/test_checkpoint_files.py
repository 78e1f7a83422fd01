"""Marks of files: their size and CRC-32C, and what is said of files that changed."""

from pathlib import Path

import google_crc32c
import pytest

from jumar.training.checkpoint_files import (
    DamagedError,
    FileMark,
    RunningMark,
    check_file,
    damage_of,
    flush,
    is_intact,
    mark_of,
    sealed,
)


def test_checksum_has_the_published_crc_32c_check_value(tmp_path: Path) -> None:
    """That of `123456789`, as in RFC 3720 and every catalogue of CRCs."""
    file = tmp_path / "x"
    file.write_bytes(b"123456789")
    assert mark_of(file) == FileMark(size=9, crc32c="e3069283")
    in_blocks = RunningMark()
    assert in_blocks.mark == FileMark(size=0, crc32c="00000000")
    for block in (b"1234", b"", b"56789"):
        in_blocks.add(block)
    assert in_blocks.mark == mark_of(file)


def test_multi_block_file_has_the_checksum_of_its_whole_content(tmp_path: Path) -> None:
    content = bytes(range(256)) * 9000
    (tmp_path / "x").write_bytes(content)
    assert mark_of(tmp_path / "x") == FileMark(
        size=2_304_000, crc32c=f"{google_crc32c.value(content):08x}"
    )


def test_changed_file_is_reported_with_sizes_or_checksum(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"a" * 1234)
    mark = mark_of(file)
    check_file(file, mark)
    messages = []
    for content in (b"a" * 1233, b"a" * 1235, b"a" * 1233 + b"b"):
        file.write_bytes(content)
        with pytest.raises(DamagedError) as result:
            check_file(file, mark)
        messages.append(str(result.value))
    assert messages == [
        f"{file}: has 1,233 bytes instead of 1,234",
        f"{file}: has 1,235 bytes instead of 1,234",
        f"{file}: is damaged: its CRC-32C differs from the recorded one",
    ]
    file.unlink()
    with pytest.raises(DamagedError) as result:
        check_file(file, mark)
    assert str(result.value) == f"{file}: is missing"
    with pytest.raises(DamagedError) as result, damage_of(file):
        raise PermissionError(13, "Permission denied")
    assert str(result.value) == f"{file}: cannot be read: Permission denied"


def test_seal_is_the_checksum_of_the_content_in_any_order() -> None:
    record = sealed({"b": [1, 2], "a": {"y": None, "x": 0.5}})
    digest = google_crc32c.value(b'{"a": {"x": 0.5, "y": null}, "b": [1, 2]}')
    assert record == {
        "b": [1, 2],
        "a": {"y": None, "x": 0.5},
        "crc32c": f"{digest:08x}",
    }
    assert sealed(record) == record
    assert is_intact(record)
    assert is_intact({"a": {"x": 0.5, "y": None}, "b": [1, 2], "crc32c": record["crc32c"]})
    assert not is_intact({**record, "b": [1, 3]})
    assert not is_intact({**record, "c": 0})
    assert is_intact({"written": "by an earlier version"})


def test_files_and_folders_are_flushed_and_missing_ones_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    flush(tmp_path / "x")
    flush(tmp_path)
    with pytest.raises(FileNotFoundError):
        flush(tmp_path / "y")
