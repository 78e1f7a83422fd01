"""Files are there whole or not at all."""

import errno
import os
import resource
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.ground.files import (
    folder_beside,
    folder_locked,
    is_at,
    write_bytes,
    write_text,
    written_beside,
)


def test_text_replaces_the_previous_file_and_leaves_no_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "table.md"
    write_text(path, "first\n")
    write_text(path, "second · ±\r\n")
    assert path.read_bytes() == "second · ±\r\n".encode()
    assert list(path.parent.iterdir()) == [path]


def stopped_after(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    raise KeyboardInterrupt


def test_failed_write_keeps_the_previous_file_and_leaves_no_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / "table.md"
    write_text(path, "first\n")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800", errors="strict")
    with pytest.raises(KeyboardInterrupt), written_beside(path) as beside:
        stopped_after(beside, "half")
    assert path.read_text() == "first\n"
    assert list(tmp_path.iterdir()) == [path]


def test_folders_created_for_a_failed_file_are_removed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    path = tmp_path / "kept" / "new" / "deep" / "table.md"
    with pytest.raises(RuntimeError), written_beside(path):
        raise RuntimeError
    assert list(tmp_path.rglob("*")) == [tmp_path / "kept"]


def test_failed_folder_keeps_the_previous_one_and_leaves_no_temporary_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new" / "run"
    with pytest.raises(KeyboardInterrupt), folder_beside(path) as beside:
        stopped_after(beside / "inner" / "half.txt", "half")
    assert not list(tmp_path.iterdir())
    with folder_beside(path) as beside:
        write_text(beside / "a.txt", "first")
    with pytest.raises(RuntimeError), folder_beside(path, replacing=True):
        raise RuntimeError
    assert [each.name for each in path.parent.iterdir()] == ["run"]
    assert (path / "a.txt").read_text() == "first"


def test_folder_replaces_a_non_empty_one_only_on_request(tmp_path: Path) -> None:
    path = tmp_path / "run"
    for text in ("first", "second"):
        with folder_beside(path, replacing=True) as beside:
            write_text(beside / f"{text}.txt", text)
    assert [each.name for each in tmp_path.rglob("*")] == ["run", "second.txt"]
    with pytest.raises(UserError, match="cannot be written"), folder_beside(path) as beside:
        write_text(beside / "third.txt", "third")
    assert [each.name for each in tmp_path.rglob("*")] == ["run", "second.txt"]


def test_full_disk_is_an_error_and_keeps_the_previous_file(tmp_path: Path) -> None:
    path = tmp_path / "port.md"
    write_bytes(path, b"first")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        with pytest.raises(UserError, match=os.strerror(errno.EFBIG)):
            write_bytes(path, b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_path_below_a_file_is_an_error_naming_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"table\.md"):
        write_text(tmp_path / "file" / "table.md", "text")


@pytest.mark.parametrize("letter", ["x", "权"])
def test_longest_possible_name_can_be_written(tmp_path: Path, letter: str) -> None:
    path = tmp_path / (letter * (255 // len(letter.encode())))
    write_text(path, "text")
    assert path.read_text() == "text"


def test_file_permissions_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "table.md", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "table.md").stat().st_mode & 0o777 == 0o640


def test_an_open_file_is_at_its_path_until_another_one_is(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as file:
        assert is_at(file, path)
        path.unlink()
        assert not is_at(file, path)
        path.write_text("")
        assert not is_at(file, path)


def test_locked_folder_belongs_to_one_owner_at_a_time(tmp_path: Path) -> None:
    for _ in range(2):
        with (
            folder_locked(tmp_path, "is taken", Path("to")),
            pytest.raises(UserError, match=r"^to: is taken$"),
            folder_locked(tmp_path, "is taken", Path("to")),
        ):
            pass
