import json
from pathlib import Path

from tests.cli.command_line import jumar


def test_recipes_are_listed_with_a_summary(tmp_path: Path) -> None:
    lines = jumar("recipes", "list", cwd=tmp_path).stdout.splitlines()
    names = [line.split()[0] for line in lines]
    assert {"alexnet", "alexnet-8p", "alexnet-demo", "resnext50", "resnext50-8p"} <= set(names)
    listed = json.loads(jumar("recipes", "list", "--json", cwd=tmp_path).stdout)
    assert [row["name"] for row in listed] == names


def test_a_recipe_is_shown_with_value_meaning_and_unit_of_every_field(tmp_path: Path) -> None:
    shown = jumar("recipes", "show", "resnext50", "--set", "data.batch_size=7", cwd=tmp_path).stdout
    row = next(line for line in shown.splitlines() if line.startswith("data.batch_size "))
    assert row.split()[1] == "7"
    assert "[samples per rank]" in row
    as_json = json.loads(jumar("recipes", "show", "resnext50", "--json", cwd=tmp_path).stdout)
    assert as_json["settings"]["optimizer"]["learning_rate"] == 0.1
