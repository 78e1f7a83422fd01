"""Fonts are those that draw every character, wherever they are named."""

from pathlib import Path

import pytest

from jumar.data.polygons import fonts
from jumar.data.polygons.fonts import fonts_with
from jumar.ground.errors import UserError


@pytest.fixture(scope="module")
def latin() -> Path:
    """A font of this machine with Latin letters."""
    try:
        return fonts_with("Aa1")[0]
    except UserError as error:
        pytest.skip(f"this machine has no font with Latin letters: {error}")


def test_folders_are_searched_recursively_by_suffix_and_files_used_directly(
    latin: Path, tmp_path: Path
) -> None:
    content = latin.read_bytes()
    names = ["b.ttf", "deep/deeper/a.TTF", "c.otf", "deep/d.ttc", "e.txt", "f.ttf.bak"]
    for name in names:
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    result = fonts_with("Aa 1", [tmp_path])
    assert [path.name for path in result] == ["a.TTF", "b.ttf", "c.otf", "d.ttc"]
    assert fonts_with("Aa", [tmp_path / "e.txt", str(tmp_path / "b.ttf")]) == [
        tmp_path / "b.ttf",
        tmp_path / "e.txt",
    ]
    assert fonts_with("Aa", [tmp_path / "b.ttf", tmp_path]).count(tmp_path / "b.ttf") == 1


def test_fonts_with_a_missing_or_inkless_character_are_skipped(latin: Path) -> None:
    for character in ("\U0010fffd", "\u2003"):
        with pytest.raises(UserError):
            fonts_with(f"A{character}", [latin])
    assert fonts_with("A ", [latin]) == [latin]


def test_missing_fonts_are_reported_with_some_of_the_characters(tmp_path: Path) -> None:
    (tmp_path / "a.ttf").write_bytes(b"no font")
    (tmp_path / "b.ttf").write_bytes(b"no font")
    install = (
        "\n  Install one (Debian: fonts-dejavu for Latin, fonts-noto-cjk for Chinese), or specify "
        "font files or folders."
    )
    for characters, sample in (
        ("abcdefghijkl", "abcdefghijkl"),
        ("abcdefghijklm", "abcdefghijkl..."),
    ):
        with pytest.raises(UserError) as caught:
            fonts_with(characters, [tmp_path])
        assert str(caught.value) == (
            f"none of 2 fonts has all of the characters '{sample}'{install}"
        )


def test_system_font_folder_may_be_missing_but_not_a_given_one(
    latin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fonts, "FOLDERS", (str(tmp_path / "none"), str(latin)))
    assert fonts_with("Aa") == [latin]
    with pytest.raises(UserError) as caught:
        fonts_with("Aa", [tmp_path / "none", latin])
    assert caught.value.what == "there is no such file or folder"
