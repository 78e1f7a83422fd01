"""`jumar data check` on the command line."""

import json
from pathlib import Path

import pytest

from tests.cli.in_process import here
from tests.data.photographs import png, scene
from tests.data.pictures import write_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        f"{name}/{n}.png": png(scene(24, 32, seed=50 * place + n))
        for place, name in enumerate(("a", "b"))
        for n in range(6)
    }
    return write_files(tmp_path / "pictures", files)


def test_exit_code_is_0_for_a_clean_set_and_1_for_findings(folder: Path, tmp_path: Path) -> None:
    done = here("data", "check", folder, cwd=tmp_path)
    assert "images: 12 items in training" in done.out
    assert "no broken, duplicate or odd items" in done.out
    (folder / "b" / "copy.png").write_bytes((folder / "a" / "1.png").read_bytes())
    done = here("data", "check", folder, cwd=tmp_path, code=1)
    assert "label conflict: the same content, with different labels" in done.out
    assert "a/1.png" in done.out


def test_json_has_every_location_and_nothing_else_is_printed(folder: Path, tmp_path: Path) -> None:
    for n in range(5):
        (folder / "b" / f"broken{n}.png").write_bytes(b"no")
    done = here("data", "check", folder, "--json", cwd=tmp_path, code=1)
    content = json.loads(done.out)
    assert content["items"] == {"training": 17}
    (broken,) = [each for each in content["findings"] if each["kind"] == "broken"]
    assert len(broken["groups"]) == 5
    shown = here("data", "check", folder, cwd=tmp_path, code=1).out
    assert "... and 2 more (--all, --json)" in shown
    assert "broken4" not in shown
    assert "broken4" in here("data", "check", folder, "--all", cwd=tmp_path, code=1).out


def test_data_of_a_recipe_is_checked_with_its_settings(folder: Path, tmp_path: Path) -> None:
    done = here(
        "data", "check", "resnext50", "--set", f"data.path={folder}", "--eval", folder,
        cwd=tmp_path, code=1,
    )  # fmt: skip
    assert "leak: the same content in training and in evaluation (12 groups" in done.out
    assert "images: 1501 items" in here("data", "check", "alexnet-demo", cwd=tmp_path).out


def test_exit_code_is_2_if_the_data_cannot_be_checked(folder: Path, tmp_path: Path) -> None:
    done = here("data", "check", "missing", cwd=tmp_path, code=2)
    assert done.message.startswith("jumar: missing: there is no such file, folder or recipe")
    assert "no such file" in here("data", "check", "a/missing", cwd=tmp_path, code=2).message
    (tmp_path / "empty").mkdir()
    done = here("data", "check", "empty", cwd=tmp_path, code=2)
    assert "no data of a known kind" in done.message
    done = here("data", "check", folder, "--set", "seed=1", cwd=tmp_path, code=2)
    assert "has no settings" in done.message


@pytest.mark.parametrize("options", [(), ("--set", "seed=1"), ("--kind", "images")])
def test_misspelt_recipe_is_suggested(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = here("data", "check", "alexnet-dmo", *options, cwd=tmp_path, code=2)
    assert "there is no such file, folder or recipe" in done.message
    assert "Did you mean the recipe 'alexnet-demo'?" in done.message
