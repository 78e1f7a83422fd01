"""What a run found out from its data is there for later commands, also without the data."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.in_process import Done, here, settings, train
from tests.data.pictures import pets, write_files


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run on `home/pets`, which it names by a relative path."""
    files = {f"{part}/{name}": data for part in ("train", "val") for name, data in pets(4).items()}
    write_files(tmp_path / "home" / "pets", files)
    options = settings(data__path="pets", training__duration="1it")
    train("--run-dir", "run", *options, cwd=tmp_path / "home")
    return tmp_path / "home" / "run"


def test_run_keeps_classes_counts_and_places(run: Path) -> None:
    kept = json.loads((run / "resolved.json").read_text())
    fingerprints = kept.pop("fingerprints")
    assert set(fingerprints) == {"train", "eval"}
    assert kept == {
        "outputs": ["cat", "horse"],
        "settings": {"model": {"num_classes": 2}},
        "places": {"data.path": str(run.parent / "pets")},
        "samples": {"train": 8, "eval": 8},
    }


def test_run_with_a_relative_path_is_used_from_any_folder(run: Path, tmp_path: Path) -> None:
    done = here("evaluate", run, "--import", "tests.cli.small_recipe", cwd=tmp_path)
    assert f"data.path: 'pets' does not exist here; using {run.parent / 'pets'}" in done.out
    assert "evaluation data: 8 samples" in done.out
    command = ("train", "--resume", "--run-dir", run, "--import", "tests.cli.small_recipe")
    resumed = here(*command, "--set", "training.duration=2it", cwd=tmp_path)
    assert "resuming from step 1" in resumed.out
    assert json.loads((run / "results.json").read_text())["steps"] == 2


def test_missing_data_is_named_with_the_origin_of_its_path(run: Path, tmp_path: Path) -> None:
    moved = shutil.move(run.parent / "pets", tmp_path / "moved")
    imported = ("--import", "tests.cli.small_recipe", "--device", "cpu")
    refused = here("evaluate", run, *imported, cwd=tmp_path, code=2)
    assert "The path comes from the run; if it has moved: --set data.path=..." in refused.message
    options = settings(data__path=moved)
    assert "evaluation data: 8" in here("evaluate", run, *imported, *options, cwd=tmp_path).out
    unknown = here("train", *("small", *imported), *settings(data__path="no"), cwd=tmp_path, code=2)
    assert "comes from the run" not in unknown.message


def _resume(run: Path, *assignments: str, code: int = 0) -> Done:
    command = ("train", "--resume", "--run-dir", run, "--import", "tests.cli.small_recipe")
    options = [option for text in assignments for option in ("--set", text)]
    longer = ("--set", "training.duration=2it", "--device", "cpu")
    return here(*command, *longer, *options, cwd=run.parent, code=code)


def test_run_resumes_with_its_data_at_another_path(run: Path, tmp_path: Path) -> None:
    moved = shutil.move(run.parent / "pets", tmp_path / "moved")
    assert "resuming from step 1" in _resume(run, f"data.path={moved}").out
    assert json.loads((run / "resolved.json").read_text())["places"] == {"data.path": str(moved)}


def test_folder_may_be_zipped_before_a_run_resumes(run: Path) -> None:
    packed = shutil.make_archive(str(run.parent / "packed"), "zip", run.parent / "pets")
    assert "resuming from step 1" in _resume(run, f"data.path={packed}").out


@pytest.mark.parametrize("path", ["pets", "other"])
def test_run_does_not_resume_with_a_missing_image(run: Path, path: str) -> None:
    if path != "pets":
        shutil.move(run.parent / "pets", run.parent / path)
    next((run.parent / path / "train" / "horse").iterdir()).unlink()
    refused = _resume(run, f"data.path={path}", code=2)
    assert "data.path: the data has changed since the run started: 8 samples then, 7 now" in (
        refused.message
    )
    assert f"--set transfer.start_from={run}" in refused.message


def test_run_does_not_resume_with_a_renamed_image(run: Path) -> None:
    picture = next((run.parent / "pets" / "val" / "horse").iterdir())
    picture.rename(picture.with_stem("zzz"))
    assert "data.eval_path: the data has changed since the run started: the same number" in (
        _resume(run, code=2).message
    )


def test_run_does_not_resume_without_its_evaluation_data(run: Path) -> None:
    assert "8 samples then, 0 now" in _resume(run, "data.eval_path=none", code=2).message


def test_run_does_not_resume_with_other_class_weights(run: Path) -> None:
    listed = run.parent / "weights.csv"
    listed.write_text("cat,3\n")
    asked = "loss.class_weights=weights.csv"
    weighted = run.with_name("weighted")
    options = settings(data__path="pets", training__duration="1it")
    train("--run-dir", weighted.name, *options, "--set", asked, cwd=run.parent)
    listed.write_text("cat,3.5\n")
    refused = _resume(weighted, code=2).message
    assert "loss.class_weights: the class weights have changed since the run started" in refused
    assert f"--set transfer.start_from={weighted}" in refused
    listed.write_text("horse, 1\ncat, 3.0\n")
    shutil.move(listed, run.parent / "moved.csv")
    resumed = _resume(weighted, "loss.class_weights=moved.csv")
    assert "resuming from step 1" in resumed.out


def test_run_of_an_earlier_version_resumes_only_with_the_same_path(run: Path) -> None:
    kept = json.loads((run / "resolved.json").read_text())
    del kept["fingerprints"]
    (run / "resolved.json").write_text(json.dumps(kept))
    shutil.copytree(run.parent / "pets", run.parent / "other")
    refused = _resume(run, "data.path=other", code=2)
    assert "the run was started with data.path=pets, not other" in refused.message
    picture = next((run.parent / "pets" / "train" / "horse").iterdir())
    picture.rename(picture.with_stem("zzz"))
    assert "resuming from step 1" in _resume(run).out


def test_commands_without_data_know_the_classes(run: Path, tmp_path: Path) -> None:
    picture = shutil.copy(next((run.parent / "pets" / "val" / "cat").iterdir()), tmp_path / "a.jpg")
    shutil.rmtree(run.parent / "pets")
    imported = ("--import", "tests.cli.small_recipe", "--device", "cpu")
    done = here("predict", run, picture, "--json", *imported, cwd=tmp_path)
    (answer,) = json.loads(done.out)["results"]
    assert set(answer["probabilities"]) == {"cat", "horse"}
    # As in a run of an earlier version: the number of classes is read off the weights.
    (run / "resolved.json").unlink()
    done = here("predict", run, picture, "--json", *imported, cwd=tmp_path)
    (answer,) = json.loads(done.out)["results"]
    assert set(answer["probabilities"]) == {"class 0", "class 1"}


@pytest.mark.parametrize(
    "damage", ["{", '{"outputs": 3}', '{"outputs": [1]}', '{"settings": {"model": {"no": 1}}}']
)
def test_damaged_file_is_named(run: Path, tmp_path: Path, damage: str) -> None:
    (run / "resolved.json").write_text(damage)
    imported = ("--import", "tests.cli.small_recipe", "--device", "cpu")
    picture = next((run.parent / "pets" / "val" / "cat").iterdir())
    refused = here("predict", run, picture, *imported, cwd=tmp_path, code=2)
    assert "resolved.json" in refused.message
