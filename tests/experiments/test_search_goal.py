"""How much worse a run may become."""

import math
from pathlib import Path

import pytest

from jumar.experiments.run_reading import read_run
from jumar.experiments.search_goal import (
    Goal,
    Limits,
    Scale,
    direction_of,
    final_value,
    parse_goal,
    spread,
)
from jumar.ground.errors import UserError
from jumar.training.run_directory import write_json
from tests.experiments.run_files import results


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("loss=0.1%", Goal(metric="loss", amount=0.1, is_percent=True)),
        ("top1=0.3", Goal(metric="top1", amount=0.3, is_percent=False)),
        (" psnr=2e-2 ", Goal(metric="psnr", amount=0.02, is_percent=False)),
    ],
)
def test_tolerance_is_a_score_and_an_amount(text: str, goal: Goal) -> None:
    assert parse_goal(text) == goal
    assert parse_goal(str(goal)) == goal


@pytest.mark.parametrize("text", ["", "loss", "loss=", "=1", "loss=-1", "loss=1 dB", "loss=nan"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UserError, match="is not a tolerance") as error:
        parse_goal(text)
    assert "psnr=0.02" in error.value.todo


def test_percentage_is_relative_to_the_float32_mean() -> None:
    assert parse_goal("loss=10%").limits([1.99, 2.01, 2.0]).requested == pytest.approx(0.2)


def test_differences_within_the_float32_spread_may_be_chance() -> None:
    reference = [1.0, 2.0, 3.0]
    assert spread(reference) == 1.0
    assert parse_goal("loss=0.1").limits(reference) == Limits(requested=0.1, chance=2.0)
    assert parse_goal("loss=2.5").limits(reference) == Limits(requested=2.5, chance=2.5)
    assert parse_goal("loss=0.1").limits([7.0]) == Limits(requested=0.1, chance=0.1)


def test_equal_harm_with_every_seed_is_not_chance() -> None:
    limits = Limits(requested=0.1, chance=2.0)
    assert not limits.passes([0.9, 0.91, 0.89])
    assert limits.passes([0.5, -0.3, 0.6])
    assert limits.passes([0.05, 0.05, 0.05])
    assert not limits.passes([9.0, -3.0, 6.0]), "more than the seeds explain"
    assert not limits.passes([0.0, 0.0, math.inf])
    assert not limits.passes([0.2])


def test_worse_is_lower_or_higher_or_any_change() -> None:
    assert Scale(better=1).worse(30.0, 31.0) == 1.0
    assert Scale(better=1).worse(32.0, 31.0) == -1.0
    assert Scale(better=-1).worse(32.0, 31.0) == 1.0
    assert Scale(better=0).worse(30.0, 31.0) == 1.0
    for value in (None, math.nan, math.inf):
        assert Scale(better=-1).worse(value, 31.0) == math.inf


def test_direction_follows_the_headline_metric_or_a_loss(tmp_path: Path) -> None:
    write_json(tmp_path / "results.json", results())
    run = read_run(tmp_path)
    assert direction_of("top1", run, where="--tolerance") == 1
    assert direction_of("loss", run, where="--tolerance") == -1
    assert direction_of("top5", run, where="--tolerance") == 0
    with pytest.raises(UserError, match=r"top11.*") as error:
        direction_of("top11", run, where="--tolerance")
    assert "top1" in error.value.todo


def test_evaluation_loss_is_used_if_present(tmp_path: Path) -> None:
    goal = parse_goal("loss=1%")
    write_json(tmp_path / "results.json", results())
    assert final_value(goal.metric, read_run(tmp_path)) == 0.25
    write_json(tmp_path / "results.json", results(metrics={"top1": 90.0}))
    assert final_value(goal.metric, read_run(tmp_path)) == 0.31
    write_json(tmp_path / "results.json", results(state="interrupted"))
    assert final_value(goal.metric, read_run(tmp_path)) is None
