import json
import shutil
from pathlib import Path

import pytest

from tests.cli.in_process import SMALL_RECIPE, here, settings, train

QUICK = ("--steps", "2", "--warm-up", "1")


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that recorded itself while training for eight steps."""
    folder = tmp_path_factory.mktemp("finished")
    done = train("--run-dir", "r", "--profile", *settings(training__duration="8it"), cwd=folder)
    assert "profile: r/profile: " in done.out
    return folder / "r"


def test_train_records_a_profile_and_finishes_the_run(finished: Path) -> None:
    environment = json.loads((finished / "profile" / "environment.json").read_text())
    assert environment["capture"]["first_step"] == 3
    assert environment["recipe"]["recipe"] == "small"
    assert environment["environment"]["versions"]["torch"]
    assert json.loads((finished / "results.json").read_text())["steps"] == 8


def test_show_reads_a_profile_recorded_by_train(finished: Path) -> None:
    done = here("profile", "show", "r/profile", "--view", "ops", cwd=finished.parent)
    assert "body.0" in done.out


def test_finished_run_is_profiled_from_its_newest_checkpoint_and_not_modified(
    finished: Path, tmp_path: Path
) -> None:
    shutil.copytree(finished, tmp_path / "r")
    before = files(tmp_path / "r")
    imported = ("--import", "tests.cli.small_recipe", "--device", "cpu")
    here("profile", "r", *QUICK, *imported, cwd=tmp_path)
    after = files(tmp_path / "r")
    assert {name for name in after if before.get(name) != after[name]} == {
        name for name in after if name.startswith("profile/")
    }
    assert after.keys() == before.keys()
    capture = json.loads(after["profile/environment.json"])["capture"]
    assert (capture["first_step"], len(capture["step_ms"])) == (9, 2)
    again = train("--run-dir", "r", "--profile", *settings(training__duration="8it"), cwd=tmp_path)
    assert "'r' is finished: 8 steps" in again.out
    assert "to record its steps: jumar profile r" in again.out


def test_recipe_is_profiled_into_a_run_that_can_be_trained_afterwards(tmp_path: Path) -> None:
    here("profile", *SMALL_RECIPE, *QUICK, cwd=tmp_path)
    run = tmp_path / "runs" / "small-1"
    assert {path.name for path in run.iterdir()} == {
        "profile",
        "recipe.json",
        "environment.json",
        "resolved.json",
        ".lock",
    }
    recorded = files(run / "profile")
    train("--run-dir", "runs/small-1", cwd=tmp_path)
    assert json.loads((run / "results.json").read_text())["steps"] == 2
    assert files(run / "profile") == recorded


def test_memory_is_recorded_on_request(tmp_path: Path) -> None:
    here("profile", *SMALL_RECIPE, *QUICK, "--memory", "--run-dir", "with", cwd=tmp_path)
    show = ("profile", "show", "with/profile", "--json")
    report = here(
        *show, "--view", "memory", "--view", "memory-by-op", "--view", "roofline", cwd=tmp_path
    )
    views = json.loads(report.out)["views"]
    assert views["memory"][0]["peak_allocated_mib"] > 0
    assert any(row["module"] for row in views["memory-by-op"])
    assert views["roofline"]
    assert "measured after the recording" in json.loads(report.out)["peak_rates"]
    environment = json.loads((tmp_path / "with" / "profile" / "environment.json").read_text())
    assert environment["capture"]["memory"] is True
    here("profile", *SMALL_RECIPE, *QUICK, "--run-dir", "without", cwd=tmp_path)
    done = here("profile", "show", "without/profile", "--view", "memory", cwd=tmp_path, code=2)
    assert "jumar profile --memory" in done.message + done.out


MISTAKES = {
    "an unknown recipe": (["smal"], "Did you mean 'small'?"),
    "a folder without a run": (["empty"], "jumar profile show empty"),
    "no steps": (["small", "--steps", "0"], "0 steps cannot be recorded"),
    "too many steps": (["small", "--steps", "9999"], "1 to 200"),
    "less than no warm-up": (["small", "--warm-up=-1"], "--warm-up"),
    "an unknown field": (["small", "--set", "data.batch=1"], "unknown field 'data.batch'"),
    "a place where a run is": (["small", "--run-dir", "old"], "'old' already contains a run"),
    "a missing path": (["small", "--set", "data.path=nowhere"], "nowhere"),
    "a missing device": (["small", "--device", "npu"], "npu"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_exit_with_2_and_leave_no_files(finished: Path, tmp_path: Path, name: str) -> None:
    arguments, message = MISTAKES[name]
    (tmp_path / "empty").mkdir()
    shutil.copytree(finished, tmp_path / "old")
    before = files(tmp_path)
    device = () if "--device" in arguments else ("--device", "cpu")
    imported = ("--import", "tests.cli.small_recipe")
    done = here("profile", *arguments, *imported, *device, cwd=tmp_path, code=2)
    assert message in done.message
    assert files(tmp_path) == before
    assert not (tmp_path / "runs").exists()


def test_run_too_short_for_a_profile_is_refused(tmp_path: Path) -> None:
    done = train("--run-dir", "r", "--profile", cwd=tmp_path, code=2)
    assert "the run has 2 steps left; the profile needs 8" in done.message
    assert list(tmp_path.iterdir()) == []
