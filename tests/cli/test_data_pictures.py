"""`jumar data words-in-pictures`: what is written, and what is refused."""

from pathlib import Path

import pytest

from jumar.data.polygons.text_pictures import open_text_pictures
from tests.cli.in_process import here

FEW = ("--pictures", "2", "--eval-pictures", "1", "--workers", "1")


def written(folder: Path, *options: str) -> dict[str, bytes]:
    done = here("data", "words-in-pictures", "--to", folder.name, *options, cwd=folder.parent)
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert f"in {len(files) // 2} image" in done.out
    return files


def test_written_set_trains_detectors_and_is_reproducible_by_seed(tmp_path: Path) -> None:
    first = written(tmp_path / "first", *FEW)
    assert set(first) == {
        f"{part}/{name}"
        for part, numbers in (("train", (1, 2)), ("test", (1,)))
        for number in numbers
        for name in (f"img_{number}.jpg", f"gt_img_{number}.txt")
    }
    assert written(tmp_path / "again", *FEW) == first
    assert written(tmp_path / "other", *FEW, "--seed", "2") != first
    pictures = open_text_pictures(str(tmp_path / "first"), "train")
    assert len(pictures) == 2
    assert sum(map(len, pictures.regions)) > 0
    assert not pictures.faults


def test_tenth_is_held_out_for_testing_by_default(tmp_path: Path) -> None:
    files = written(tmp_path / "set", "--pictures", "10", "--workers", "2")
    assert sum(name.startswith("test/img") for name in files) == 1


@pytest.mark.parametrize("option", ["--pictures=0", "--eval-pictures=-1", "--workers=0"])
def test_impossible_numbers_are_refused(option: str, tmp_path: Path) -> None:
    here("data", "words-in-pictures", "--to", "set", option, cwd=tmp_path, code=2)
    assert not (tmp_path / "set").exists()


def test_non_empty_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "mine").touch()
    done = here("data", "words-in-pictures", "--to", "set", *FEW, cwd=tmp_path, code=2)
    assert "is not empty" in done.err
