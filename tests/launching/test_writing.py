"""Files of a launch are written atomically, and other files are not touched."""

import json
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.launching.writing import write_launch


def content(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_new_folder_gets_all_files_and_the_request(tmp_path):
    to = tmp_path / "new" / "one"
    write_launch(to, {"a.sh": "a\n", "code/b.sh": "b\n"}, {"on": "this"})
    assert set(content(to)) == {"a.sh", "code/b.sh", "launch.json"}
    kept = json.loads((to / "launch.json").read_text())
    assert kept["on"] == "this"
    assert set(kept["files"]) == {"a.sh", "code/b.sh"}
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_empty_folder_is_accepted(tmp_path):
    write_launch(tmp_path / "a", {}, {})
    (tmp_path / "b").mkdir()
    write_launch(tmp_path / "b", {"a.sh": "a"}, {})
    assert (tmp_path / "b" / "a.sh").read_text() == "a"


def test_second_launch_replaces_the_first_and_keeps_its_training_output(tmp_path):
    write_launch(tmp_path / "a", {"a.sh": "1"}, {})
    (tmp_path / "a" / "run").mkdir()
    (tmp_path / "a" / "run" / "log.txt").write_text("kept")
    write_launch(tmp_path / "a", {"a.sh": "2", "b.sh": "3"}, {})
    seen = content(tmp_path / "a")
    assert (seen["a.sh"], seen["b.sh"], seen["run/log.txt"]) == ("2", "3", "kept")


def test_edited_file_is_kept_and_nothing_is_written(tmp_path):
    write_launch(tmp_path / "a", {"a.sh": "1", "b.sh": "1"}, {})
    (tmp_path / "a" / "b.sh").write_text("edited")
    before = content(tmp_path / "a")
    with pytest.raises(UserError, match="was changed since a launch wrote it"):
        write_launch(tmp_path / "a", {"a.sh": "2", "b.sh": "2"}, {})
    assert content(tmp_path / "a") == before


@pytest.mark.parametrize("name", ["a.sh", "launch.json"])
def test_files_in_a_foreign_folder_are_kept(name, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / name).write_text("mine")
    with pytest.raises(UserError):
        write_launch(tmp_path / "own", {"a.sh": "1"}, {})
    assert content(tmp_path / "own") == {name: "mine"}


def test_interrupted_launch_can_be_repeated(tmp_path):
    write_launch(tmp_path / "a", {"a.sh": "1", "b.sh": "1"}, {})
    (tmp_path / "a" / "a.sh").write_text("2")
    write_launch(tmp_path / "a", {"a.sh": "2", "b.sh": "2"}, {})
    assert content(tmp_path / "a")["b.sh"] == "2"


def test_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "a").write_text("x")
    with pytest.raises(UserError, match="is a file"):
        write_launch(tmp_path / "a", {}, {})


def test_failed_launch_leaves_no_files(tmp_path):
    with pytest.raises(UserError):
        write_launch(tmp_path / "a", {"a.sh": "1", "x" * 300: "2"}, {})
    assert list(tmp_path.iterdir()) == []
