import json
from pathlib import Path

import pytest

from jumar.experiments.picture_reading import picture_names, read_pictures


def step(directory: Path, number: int, *names: str, captions: object = None) -> Path:
    folder = directory / f"step-{number:08d}"
    folder.mkdir(parents=True)
    for name in names:
        (folder / f"{name}.png").write_bytes(b"not looked at here")
    if captions is not None:
        (folder / "captions.json").write_text(json.dumps(captions))
    return folder


def test_images_are_ordered_by_step_and_caption(tmp_path: Path) -> None:
    step(tmp_path, 120, "a", "b", captions={"b": "second letter", "a": "first letter"})
    step(tmp_path, 20, "a", captions={"a": "early"})
    step(tmp_path, 5, "old")
    faults: list[str] = []
    result = read_pictures(tmp_path, faults)
    assert [(p.step, p.name, p.caption) for p in result] == [
        (5, "old", ""),
        (20, "a", "early"),
        (120, "b", "second letter"),
        (120, "a", "first letter"),
    ]
    assert picture_names(result) == ["b", "a", "old"]
    assert faults == []


def test_run_without_images_has_an_empty_list(tmp_path: Path) -> None:
    assert read_pictures(tmp_path / "pictures", []) == ()
    (tmp_path / "pictures").write_text("a file")
    assert read_pictures(tmp_path / "pictures", []) == ()


def test_half_written_and_foreign_files_are_not_images(tmp_path: Path) -> None:
    folder = step(tmp_path, 7, "a", ".b.png.123")
    (folder / ".c.png").write_bytes(b"")
    (tmp_path / "step-x").mkdir()
    (tmp_path / "step-00000009").write_text("a file in place of a folder")
    (tmp_path / "notes").mkdir()
    assert [picture.name for picture in read_pictures(tmp_path, [])] == ["a"]


@pytest.mark.parametrize("content", ["{", "[]", "null", '"text"', "[" * 100_000, "\x00"])
def test_damaged_captions_are_reported_and_the_images_kept(tmp_path: Path, content: str) -> None:
    folder = step(tmp_path, 7, "a")
    (folder / "captions.json").write_text(content)
    faults: list[str] = []
    assert [picture.caption for picture in read_pictures(tmp_path, faults)] == [""]
    assert faults == ["the captions of the images of step 7 cannot be read"]


def test_captions_cannot_refer_to_files_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(b"")
    step(tmp_path / "pictures", 7, "a", captions={"../../secret": "x", "a": 5, "gone": "y"})
    result = read_pictures(tmp_path / "pictures", [])
    assert [(picture.name, picture.caption) for picture in result] == [("a", "")]
