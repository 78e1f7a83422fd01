from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.report.saving import save_text


def test_a_text_replaces_the_one_before_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "table.md"
    save_text(path, "first\n")
    save_text(path, "second · ±\n")
    assert path.read_bytes() == "second · ±\n".encode()
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_keeps_the_text_before_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "table.md"
    save_text(path, "first\n")
    with pytest.raises(UnicodeEncodeError):
        save_text(path, "\ud800")
    assert path.read_text() == "first\n"


def test_a_place_that_is_no_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"table\.md"):
        save_text(tmp_path / "file" / "table.md", "text")
