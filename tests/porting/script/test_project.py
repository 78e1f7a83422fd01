"""The files of a tree: read once, and parsed once for whoever imports them."""

import os
from pathlib import Path

import pytest

from jumar.porting.script import project as project_module
from jumar.porting.script.project import LARGEST_SCRIPT, Project


def test_a_file_is_read_once_and_stays_what_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    project = Project(tmp_path)
    assert project.content("a.py") == b"a = 1\n"
    (tmp_path / "a.py").unlink()
    assert project.content("a.py") == b"a = 1\n"


def test_files_that_are_read_ahead_are_not_opened_again(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    project = Project(tmp_path)
    project.read(["a.py", "missing.py"])
    (tmp_path / "a.py").unlink()
    assert project.content("a.py") == b"a = 1\n"
    with pytest.raises(FileNotFoundError):
        project.content("missing.py")


def test_a_file_that_is_too_large_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"#" * (LARGEST_SCRIPT + 9))
    project = Project(tmp_path)
    assert len(project.content("a.py")) == LARGEST_SCRIPT + 1
    assert project.as_read("a.py") is None


def test_what_is_kept_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_module, "_MOST_KEPT", 8)
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("a = 1\n")
    project = Project(tmp_path)
    project.read(["a.py", "b.py"])
    assert project.as_read("a.py") == b"a = 1\n"
    assert project.as_read("b.py") is None
    assert project.content("b.py") == b"a = 1\n"


@pytest.mark.parametrize("change", ["longer", "same length", "replaced", "gone"])
def test_a_file_that_has_changed_since_is_not_given_as_read(change: str, tmp_path: Path) -> None:
    place = tmp_path / "a.py"
    place.write_text("a = 1\n")
    project = Project(tmp_path)
    assert project.as_read("a.py") is None
    project.content("a.py")
    assert project.as_read("a.py") == b"a = 1\n"
    status = place.stat()
    if change == "longer":
        place.write_text("a = 10\n")
        os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
    elif change == "same length":
        place.write_text("a = 2\n")
        os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    elif change == "replaced":
        (tmp_path / "new").write_text("a = 2\n")
        os.utime(tmp_path / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
        (tmp_path / "new").replace(place)
    else:
        place.unlink()
    assert project.as_read("a.py") is None


def test_a_script_is_parsed_once_for_itself_and_for_those_that_import_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    project = Project(tmp_path)
    module = project.parsed("a = 1\n", "a.py")
    assert project.module("a.py") is module
    assert project.parsed("a = 1\n", "a.py") is module
    assert project.parsed("a = 2\n", "a.py") is not module
    assert project.module("a.py").text == "a = 2\n"


def test_modules_that_were_not_asked_for_longest_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_module, "_MOST_PARSED", 12)
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text("a = 1\n")
    project = Project(tmp_path)
    first, second = project.module("a.py"), project.module("b.py")
    assert project.module("a.py") is first
    project.module("c.py")
    assert project.module("a.py") is first
    assert project.module("b.py") is not second


def test_a_module_that_cannot_be_read_is_none_each_time(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = = 1\n")
    project = Project(tmp_path)
    assert project.module("a.py") is None
    assert project.module("a.py") is None
    assert project.module("missing.py") is None
