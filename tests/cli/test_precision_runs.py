"""`jumar precision runs` says where two runs part, and that equal ones are equal."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.in_process import here, settings, train

# Times of steps are in the log after five of them.
STEPS = settings(training__duration="8it", checkpoints__every="4it")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `a`, `again` (the same), `faster` (another learning rate) and `wider`."""
    folder = tmp_path_factory.mktemp("runs")
    train("--run-dir", "a", *STEPS, cwd=folder)
    train("--run-dir", "again", *STEPS, cwd=folder)
    train("--run-dir", "faster", *STEPS, *settings(optimizer__learning_rate=0.03), cwd=folder)
    train("--run-dir", "wider", *STEPS, *settings(model__width=8), cwd=folder)
    return folder


def report(place: Path, other: str, code: int = 1) -> dict[str, Any]:
    return json.loads(here("precision", "runs", "a", other, "--json", cwd=place, code=code).out)


def test_equal_runs_compare_equal_despite_different_times(place: Path) -> None:
    content = report(place, "again", code=0)
    assert content["equal"] is True
    assert content["compared"] > 4
    assert [each["step"] for each in content["checkpoints"]] == [4, 8]
    assert all(each["equal"] > 4 and not each["weights"] for each in content["checkpoints"])
    done = here("precision", "runs", "a", "again", cwd=place)
    assert "numbers equal" in done.out


def test_first_differing_number_is_named(place: Path) -> None:
    content = report(place, "faster")
    # The loss of the first step is that of the same weights; the learning rate is not.
    first = [each["name"] for each in content["numbers"] if each["step"] == 1]
    assert first == ["learning_rate"]
    assert {each["step"] for each in content["numbers"] if each["name"] == "loss"} == set(
        range(2, 9)
    )
    for checkpoint in content["checkpoints"]:
        errors = {row["name"]: row["error"] for row in checkpoint["weights"]}
        assert errors["classifier.weight"] > 1e-4
        assert all(error > 0 for error in errors.values())
    done = here("precision", "runs", "a", "faster", "--top", "1", cwd=place, code=1)
    assert "first train learning_rate at step 1" in done.out
    assert "other weights with smaller errors" in done.out


def test_weights_of_another_shape_are_listed(place: Path) -> None:
    content = report(place, "wider")
    assert "body.0.weight" in content["checkpoints"][0]["unpaired"]
    assert "classifier.bias" not in content["checkpoints"][0]["unpaired"]


def test_incomparable_inputs_are_refused(place: Path, tmp_path: Path) -> None:
    done = here("precision", "runs", "a", "nowhere", cwd=place, code=2)
    assert "there is no such run directory" in done.message
    train("--run-dir", tmp_path / "one", *settings(training__duration="1it"), cwd=tmp_path)
    (tmp_path / "one" / "metrics.jsonl").write_text("")
    done = here("precision", "runs", "a", tmp_path / "one", cwd=place, code=2)
    assert "no log line, evaluation or checkpoint of the same step" in done.message
