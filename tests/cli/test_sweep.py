import json
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT
from tests.cli.in_process import SMALL_RECIPE, here


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings are processes of their own, which import the tests' recipes too."""
    monkeypatch.setenv("PYTHONPATH", f"{CHECKOUT / 'src'}:{CHECKOUT}")


def test_a_sweep_runs_the_grid_saves_its_table_and_runs_nothing_twice(tmp_path: Path) -> None:
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


def test_a_sweep_of_which_nothing_trains_says_why_and_leaves_with_1(tmp_path: Path) -> None:
    command = ["sweep", *SMALL_RECIPE, "--vary", "data.path=nowhere", "--to", "s"]
    done = here(*command, cwd=tmp_path, code=1)
    assert "N/A" in done.out
