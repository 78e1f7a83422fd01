"""Which folders a new run may begin in."""

from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.training.foreign_folder import refuse_foreign_folder
from jumar.training.run_directory import RunDirectory, write_json


@pytest.mark.parametrize(
    "names",
    [
        ["README.md", "modeling.py"],
        [".git"],
        ["sweep.json", "model.width=2"],
        ["checkpoints", "log.txt", "photo.jpg"],
    ],
)
def test_folder_with_other_content_is_refused_and_an_unused_one_named(
    tmp_path: Path, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("my code")
    folder.mkdir()
    for name in names:
        (folder / name).mkdir()
    with pytest.raises(UserError, match="not empty and not a run") as caught:
        refuse_foreign_folder(RunDirectory(folder))
    assert names[-1] in caught.value.what
    assert caught.value.todo.endswith("--run-dir 'runs/my code-1'")


@pytest.mark.parametrize(
    "names",
    [
        [],
        [".lock", ".recipe.json.tmp", "log.txt", "checkpoints", "environment.json"],
        ["tensorboard", "metrics.jsonl", "pictures", "tracked.json"],
        ["output.txt", "rank0.log", "train.err", "slurm-17.out", "none_a1b2c3", "logs"],
        ["lost+found", "kernel_meta", ".mirror.json"],
    ],
)
def test_leftovers_of_a_start_and_logs_of_launchers_are_accepted(
    tmp_path: Path, names: list[str]
) -> None:
    for name in names:
        (tmp_path / name).mkdir()
    refuse_foreign_folder(RunDirectory(tmp_path))


def test_folder_that_does_not_exist_is_accepted(tmp_path: Path) -> None:
    refuse_foreign_folder(RunDirectory(tmp_path / "new"))


def test_run_may_contain_anything(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    write_json(run.recipe, {"recipe": "r", "settings": {}})
    (tmp_path / "notes.md").touch()
    refuse_foreign_folder(run)


def test_long_listings_are_shortened(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.py").touch()
    with pytest.raises(UserError, match=r"0\.py, 1\.py, 2\.py and 2 more"):
        refuse_foreign_folder(RunDirectory(tmp_path))
