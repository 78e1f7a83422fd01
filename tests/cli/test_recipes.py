import json
from pathlib import Path

import pytest

from tests.cli.in_process import here


def test_recipes_are_listed_with_a_summary(tmp_path: Path) -> None:
    lines = here("recipes", "list", cwd=tmp_path).out.splitlines()
    names = [line.split()[0] for line in lines]
    assert {"alexnet", "alexnet-8p", "alexnet-demo", "resnext50", "resnext50-8p"} <= set(names)
    listed = json.loads(here("recipes", "list", "--json", cwd=tmp_path).out)
    assert [row["name"] for row in listed] == names


def test_recipe_shows_value_meaning_and_unit_of_every_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    shown = here("recipes", "show", "resnext50", "--set", "data.batch_size=7", cwd=tmp_path).out
    row = next(line for line in shown.splitlines() if line.startswith("data.batch_size "))
    assert row.split()[1] == "7"
    assert "[samples per rank]" in row
    as_json = json.loads(here("recipes", "show", "resnext50", "--json", cwd=tmp_path).out)
    assert as_json["settings"]["optimizer"]["learning_rate"] == 0.1


def test_narrow_terminal_wraps_between_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    whole = here("recipes", "show", "alexnet", cwd=tmp_path).out
    monkeypatch.setenv("COLUMNS", "80")
    narrow = here("recipes", "show", "alexnet", cwd=tmp_path).out
    assert max(map(len, narrow.splitlines())) <= 80 < max(map(len, whole.splitlines()))
    assert narrow.split() == whole.split()
    assert "\n    Training batch size per rank. [samples per rank] (1 or more)\n" in narrow


def test_wide_terminal_keeps_a_meaning_in_its_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    lines = here("recipes", "show", "alexnet", cwd=tmp_path).out.splitlines()
    index, row = next(
        (i, line) for i, line in enumerate(lines) if line.startswith("data.label_offset ")
    )
    column = row.index("Added to the labels")
    assert lines[index + 1].startswith(" " * column)
    assert lines[index + 1][column] != " "


def test_one_section_or_only_the_values_can_be_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    section = here("recipes", "show", "alexnet", "--section", "seed", "--brief", cwd=tmp_path)
    assert section.out == "seed  1\n"
    data = here("recipes", "show", "alexnet", "--section", "data", cwd=tmp_path).out
    assert {line.partition(".")[0] for line in data.splitlines()} == {"data"}
    brief = here("recipes", "show", "alexnet", "--brief", cwd=tmp_path).out.splitlines()
    assert ["training.duration", "150ep"] in [line.split() for line in brief]
    as_json = here("recipes", "show", "alexnet", "--section", "data", "--json", cwd=tmp_path)
    assert list(json.loads(as_json.out)["settings"]) == ["data"]


def test_unknown_section_is_refused_with_the_nearest(tmp_path: Path) -> None:
    refused = here("recipes", "show", "alexnet", "--section", "dat", cwd=tmp_path, code=2)
    assert "unknown section 'dat'" in refused.err
    assert "Did you mean 'data'?" in refused.err
