"""Paths that users give: what is there, and the system's reason where it does not say."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jumar.ground import paths
from jumar.ground.errors import UserError
from tests.other_user import open_folder, run_without_rights

CHECKS = [paths.exists, paths.is_file, paths.is_folder]


def test_files_folders_and_links_are_distinguished(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    for name in ("file", "folder", "nothing"):
        (tmp_path / f"link-to-{name}").symlink_to(tmp_path / name)
    expected = {"file": (True, True, False), "folder": (True, False, True)}
    for name in ("file", "folder", "nothing"):
        for path in (tmp_path / name, tmp_path / f"link-to-{name}"):
            answers = (paths.exists(path), paths.is_file(path), paths.is_folder(path))
            assert answers == expected.get(name, (False, False, False))
    assert not paths.exists(tmp_path / "file" / "below")


@pytest.mark.parametrize("check", CHECKS)
def test_failing_stat_is_an_error_with_the_reason(
    check: Callable[[Path], bool], tmp_path: Path
) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(UserError, match="loop: cannot be reached: Too many levels of symbolic"):
        check(tmp_path / "loop")
    with pytest.raises(UserError, match="File name too long\n  Its longest name has 300 bytes"):
        check(tmp_path / ("x" * 300))
    with pytest.raises(UserError, match="is not a path"):
        check(tmp_path / "a\0b")


@pytest.mark.parametrize("check", CHECKS)
def test_inaccessible_folder_is_named(check: Callable[[Path], bool]) -> None:
    with open_folder() as place:
        closed = place / "closed"
        closed.mkdir(mode=0o600)
        message = run_without_rights(
            "import sys; from pathlib import Path; from jumar.ground import errors, paths",
            f"try: print(paths.{check.__name__}(Path(sys.argv[1])))\n"
            "except errors.UserError as error: print(error)",
            closed / "inside",
            cwd=place,
        )
    assert "inside: cannot be reached: Permission denied" in message
    assert f"This user may not enter {closed}." in message


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("wieghts/a.txt", "There is no {0}/wieghts. Did you mean {0}/weights?"),
        ("weights/modle.txt", "Did you mean {0}/weights/model.txt?"),
        ("weights/model.txt/x", "{0}/weights/model.txt is a file, so nothing can be below it."),
        ("dangling", "It is a link to gone, which does not exist."),
        ("zzz/y/x", "There is no {0}/zzz."),
    ],
)
def test_missing_path_suggests_the_nearest_one(asked: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "model.txt").write_text("x")
    (tmp_path / "dangling").symlink_to("gone")
    error = paths.missing(tmp_path / asked, more="Give a file.")
    assert error.what == "there is no such file or folder"
    assert error.todo == f"{hint.format(tmp_path)} Give a file."


def test_non_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, kind in (
        (tmp_path / "pipe", "a pipe"),
        (tmp_path, "a folder"),
        (Path(os.devnull), "a device"),
    ):
        with pytest.raises(UserError, match=f"it is {kind}, not a file"):
            paths.open_to_read(path)
    with pytest.raises(UserError, match="there is no such file"):
        paths.open_to_read(tmp_path / "none")
    (tmp_path / "file").write_text("x")
    with paths.open_to_read(tmp_path / "file") as file:
        assert file.read() == b"x"


@pytest.mark.parametrize(
    ("number", "todo"),
    [
        (errno.ENOSPC, "Free some space"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "writable disk"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EIO, "dmesg"),
        (errno.ENOENT, "accepts no new files"),
    ],
)
def test_unwritable_path_is_refused_with_the_reason(number: int, todo: str) -> None:
    error = paths.unwritable("/place", OSError(number, os.strerror(number)), more="And so on.")
    assert error.what == f"cannot be written: {os.strerror(number)}"
    assert todo in error.todo
    assert error.todo.endswith("And so on.")
    assert ("space" in error.todo) == (number == errno.ENOSPC)


def test_folder_is_created_with_its_parents_and_kept(tmp_path: Path) -> None:
    paths.make_folder(tmp_path / "a" / "b")
    paths.make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match=r"Not a directory\n  .*file is not a folder\."):
        paths.make_folder(tmp_path / "file" / "c")
    with pytest.raises(UserError, match=r"file is not a folder\."):
        paths.make_folder(tmp_path / "file")


def test_bytes_are_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xff\n12")
    assert (paths.read_bytes(path), paths.read_bytes(path, 2)) == (b"\xff\n12", b"\xff\n")
    with pytest.raises(UserError, match="there is no such file"):
        paths.read_bytes(tmp_path / "none")
