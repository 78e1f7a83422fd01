import json
import os
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.porting.report.saving import report_suffix, save_report
from tests.porting.report.reports import hostile_report, tree_report


@pytest.mark.parametrize("name", ["port.md", "port.json", "port.html", "PORT.HTML"])
def test_suffix_determines_the_format(name: str, tmp_path: Path) -> None:
    path = tmp_path / "deep" / name
    save_report(tree_report(), path)
    begins = {".md": "# Port of", ".json": "{", ".html": "<!doctype html>"}
    assert path.read_text(encoding="utf-8").startswith(begins[path.suffix.lower()])
    assert list(path.parent.iterdir()) == [path]


def test_report_is_in_the_requested_language(tmp_path: Path) -> None:
    for suffix in ("md", "html"):
        path = tmp_path / f"port.{suffix}"
        save_report(tree_report(), path, "zh")
        assert "队列算子只能在主机侧运行" in path.read_text(encoding="utf-8")
    save_report(tree_report(), tmp_path / "zh.json", "zh")
    save_report(tree_report(), tmp_path / "en.json", "en")
    assert (tmp_path / "zh.json").read_bytes() == (tmp_path / "en.json").read_bytes()


@pytest.mark.parametrize("name", ["port.txt", "port", ".json", "port.htm"])
def test_unknown_suffix_is_an_error_listing_the_known_ones(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"\.md, \.json, \.html"):
        save_report(tree_report(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UserError, match=name):
        report_suffix(Path(name))


def test_report_replaces_the_previous_one(tmp_path: Path) -> None:
    path = tmp_path / "port.json"
    save_report(hostile_report(), path)
    save_report(tree_report(), path)
    assert json.loads(path.read_text(encoding="utf-8"))["root"] == "networks/small"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match=r"port\.md"):
        save_report(tree_report(), tmp_path / "port.md")


def test_destination_that_is_not_a_folder_is_an_error_naming_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"port\.md"):
        save_report(tree_report(), tmp_path / "file" / "port.md")


def test_failed_write_leaves_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "port.md").mkdir()
    with pytest.raises(UserError, match=r"port\.md"):
        save_report(tree_report(), tmp_path / "port.md")
    assert [path.name for path in tmp_path.iterdir()] == ["port.md"]
