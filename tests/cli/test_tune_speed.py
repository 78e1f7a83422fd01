"""`jumar tune speed` with the small recipe, as a user calls it."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.command_line import CHECKOUT
from tests.cli.in_process import SMALL_RECIPE, here, settings, train

SPEED = ("tune", "speed", *SMALL_RECIPE, *settings(threads__intra_op=1))


@pytest.mark.slow
def test_tuning_without_time_measures_the_baseline_and_continues_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    first = here(*SPEED, "--minutes", "0.01", cwd=tmp_path).out
    assert "processes with these settings differ by" in first
    assert "never tried: precision, batch size, accumulation" in first
    assert "not tried without --allow rounding: threads.intra_op" in first
    assert re.search(
        r"not tried for lack of time: .+; the first of them needs --minutes \d+ here", first
    )
    folder = tmp_path / "tuned" / "small"
    tuned = json.loads((folder / "tuned.json").read_text())
    assert tuned["state"] == "finished"
    assert tuned["measured"]["reproducible"]
    assert tuned["validity"]["recipe"] == "small"
    assert sorted(each.name for each in folder.iterdir()) == ["comparisons.jsonl", "tuned.json"]
    again = here(*SPEED, "--minutes", "0.001", cwd=tmp_path).out
    assert "reusing 1 comparison of an earlier call" in again
    applied = train("--tuned", "--dry-run", *settings(threads__intra_op=1), cwd=tmp_path)
    assert "tuned by tuned/small/tuned.json: " in applied.out
    other = here(*SPEED, "--minutes", "0.001", *settings(data__batch_size=5), cwd=tmp_path)
    assert "since recipe, machine or versions have changed" in other.out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("tune", "speed", "alexnet-dem"), "Did you mean 'alexnet-demo'"),
        (("tune", "speed", "alexnet-demo", "--minutes", "0"), "cannot be 0"),
        (("tune", "speed", "alexnet-demo", "--set", "data.nothing=1"), "data.nothing"),
        (("tune", "speed", "alexnet-demo", "--to", "file"), "is not a folder"),
        (("tune", "speed", "alexnet-demo", "--to", "run"), "is the directory of a run"),
        (("tune", "speed", "alexnet-demo", "--to", "s3://bucket/x"), "cannot be in a store"),
        (("tune", "speed", "folder"), "is not a run directory"),
    ],
)
def test_mistake_is_reported_before_anything_is_measured(
    tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.json").write_text("{}")
    done = here(*words, "--device", "cpu", cwd=tmp_path, code=2)
    assert reason in done.message
    assert not (tmp_path / "tuned").exists()


def test_timed_process_is_not_a_command_of_the_help_page(tmp_path: Path) -> None:
    page = here("tune", "--help", cwd=tmp_path).out
    assert "speed" in page
    assert "measure " not in page.replace("measure,", "")
