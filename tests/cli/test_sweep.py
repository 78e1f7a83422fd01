import json
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT
from tests.cli.in_process import SMALL_RECIPE, here


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are separate processes, which import the tests' recipes too."""
    monkeypatch.setenv("PYTHONPATH", f"{CHECKOUT / 'src'}:{CHECKOUT}")


def test_sweep_runs_the_grid_saves_its_table_and_runs_nothing_twice(tmp_path: Path) -> None:
    command = ["sweep", *SMALL_RECIPE, "--vary", "model.width=2,4", "--to", "s"]
    first = here(*command, cwd=tmp_path)
    assert "Run 2 of 2: model.width=4" in first.out
    for name in ("table.md", "table.csv", "table.json", "report.html"):
        assert f"s/{name}" in first.out
        assert (tmp_path / "s" / name).stat().st_size > 0
    rows = json.loads((tmp_path / "s" / "table.json").read_text())["rows"]
    assert len(rows) == 2
    again = here(*command, cwd=tmp_path)
    assert "Run 1 of" not in again.out


def test_sweep_in_which_no_run_trains_says_why_and_exits_with_1(tmp_path: Path) -> None:
    command = ["sweep", *SMALL_RECIPE, "--vary", "data.path=nowhere", "--to", "s"]
    done = here(*command, cwd=tmp_path, code=1)
    assert "N/A" in done.out


def test_search_runs_trials_in_parallel_and_prints_the_best(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="needs optuna")
    command = ["sweep", *SMALL_RECIPE, "--search", "random", "--to", "s", "--jobs", "2"]
    command += ["--range", "optimizer.learning_rate=1e-3:1e-1:log", "--range", "model.width=2,4"]
    done = here(*command, "--trials", "2", cwd=tmp_path)
    assert "trial-0000 of 2: optimizer.learning_rate=0.02, model.width=4" in done.out
    assert "2 trials: 2 finished, 0 stopped early, 0 failed" in done.out
    assert "jumar train small --import tests.cli.small_recipe --set" in done.out
    assert "finished after step 2" in (tmp_path / "s" / "trial-0001" / "output.txt").read_text()
    again = here(*command, "--trials", "2", cwd=tmp_path)
    assert "trial-0000 of 2" not in again.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--range", "optimizer.learning_rate=1:2"), "--range: cannot be combined with a sweep"),
        (
            ("--search", "tpe", "--vary", "model.width=2,4"),
            "--vary: cannot be combined with --search",
        ),
        (("--search", "tpe", "--range", "optimizer.learning_rat=1:2"), "Did you mean"),
        (("--search", "tpe", "--range", "model.width=2,wide"), "takes a whole number"),
        (("--search", "tpe", "--range", "model.width=0:4"), "cannot be 0"),
        (("--vary", "model.width=2,4", "--jobs", "0"), "--jobs: cannot be 0"),
        (("--vary", "model.width=2,4", "--on", "moon"), "unknown place 'moon'"),
    ],
)
def test_impossible_runs_are_reported_before_anything_starts(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = here("sweep", *SMALL_RECIPE, *arguments, cwd=tmp_path, code=2)
    assert message in done.message
    assert not list(tmp_path.rglob("recipe.json"))


def test_sweep_without_values_is_refused_and_names_the_ways_to_vary(tmp_path: Path) -> None:
    done = here("sweep", *SMALL_RECIPE, "--to", "s", cwd=tmp_path, code=2)
    assert "there is nothing to vary" in done.message
    for option in ("--vary", "--search", "--repeats", "jumar train"):
        assert option in done.message
    assert not list(tmp_path.iterdir())


def test_several_seeds_of_one_setting_are_a_sweep(tmp_path: Path) -> None:
    done = here("sweep", *SMALL_RECIPE, "--repeats", "2", "--to", "s", cwd=tmp_path)
    assert "Run 2 of 2" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--vary", "model.widht=2,4"), "Did you mean"),
        (("--vary", "model.width=2,4", "--jobs", "0"), "--jobs: cannot be 0"),
        (("--vary", "model.width=2,4", "--on", "moon"), "unknown place 'moon'"),
        (("--vary", "model.width=2,4"), "is the directory of a single run"),
    ],
)
def test_wrong_values_are_reported_before_a_folder_that_does_not_suit(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "recipe.json").write_text("{}")
    done = here("sweep", *SMALL_RECIPE, *arguments, "--to", "s", cwd=tmp_path, code=2)
    assert message in done.message
