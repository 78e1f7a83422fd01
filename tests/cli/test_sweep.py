import json
from pathlib import Path

from tests.cli.command_line import jumar

SMALL = ("--set", "training.duration=2it", "--set", "data.image_size=63", "--device", "cpu")


def test_a_sweep_runs_the_grid_saves_its_table_and_runs_nothing_twice(tmp_path: Path) -> None:
    command = ["sweep", "alexnet-demo", "--vary", "model.dropout=0,0.5", *SMALL, "--to", "s"]
    first = jumar(*command, cwd=tmp_path)
    assert "Run 2 of 2: model.dropout=0.5" in first.stdout
    for name in ("table.md", "table.csv", "table.json", "report.html"):
        assert f"s/{name}" in first.stdout
        assert (tmp_path / "s" / name).stat().st_size > 0
    rows = json.loads((tmp_path / "s" / "table.json").read_text())["rows"]
    assert len(rows) == 2
    again = jumar(*command, cwd=tmp_path)
    assert "Run 1 of" not in again.stdout


def test_a_sweep_of_which_nothing_trains_says_why_and_leaves_with_1(tmp_path: Path) -> None:
    command = ["sweep", "alexnet-demo", "--vary", "data.path=nowhere", *SMALL, "--to", "s"]
    done = jumar(*command, cwd=tmp_path, code=1)
    assert "N/A" in done.stdout
