"""The learning rate ramp: what it proposes, and that it keeps nothing else."""

import csv
from pathlib import Path

import pytest

from jumar.runs.rate_range import Ramp, RampStep, proposed
from jumar.training.schedules import learning_rate
from tests.cli.in_process import SMALL_RECIPE, any_end, here


def ramp(losses: list[float]) -> list[RampStep]:
    return [
        RampStep(step=number, rate=10.0 ** (number - 9), loss=loss, smoothed=loss)
        for number, loss in enumerate(losses, start=1)
    ]


def test_proposal_is_a_tenth_of_the_rate_with_the_lowest_loss() -> None:
    rate, reason = proposed(ramp([3, 3, 3, 3, 3, 3, 2.9, 2, 1, 4, 9]), diverged=True)
    assert rate == pytest.approx(0.1)
    assert "a tenth of 1, the rate with the lowest smoothed loss (1)" in reason


@pytest.mark.parametrize(
    ("losses", "diverged", "reason"),
    [
        ([3, 3, 3, 3, 3, 2, 1], False, "still falling at 0.01: raise --high"),
        ([3, 3, 3, 3, 3, 3, 4, 5], False, "never fell"),
        ([3, 3], True, "within the first steps"),
    ],
)
def test_ramp_without_a_minimum_proposes_nothing(
    losses: list[float], diverged: bool, reason: str
) -> None:
    rate, message = proposed(ramp(losses), diverged=diverged)
    assert rate is None
    assert reason in message


def test_rates_grow_by_a_constant_factor_per_step() -> None:
    schedule = Ramp(ratio=1e4, steps=5)
    rates = [
        learning_rate(schedule, 1e-3, step, steps_per_epoch=9, total_steps=5) for step in range(5)
    ]
    assert rates == pytest.approx([1e-3, 1e-2, 1e-1, 1, 10])


def test_command_writes_only_table_and_image(tmp_path: Path) -> None:
    # A rate at which any network diverges.
    options = ["--steps", "20", "--low", "1e-4", "--high", "1e9"]
    first = any_end("tune", "rate", *SMALL_RECIPE, *options, cwd=tmp_path)
    assert {path.name for path in tmp_path.rglob("*")} == {"small-rate", "rates.csv", "rates.html"}
    rows = list(csv.DictReader((tmp_path / "small-rate" / "rates.csv").open()))
    assert float(rows[0]["rate"]) == pytest.approx(1e-4)
    assert len(rows) < 20, "the ramp went on after the loss had diverged"
    assert first.code in (0, 1)
    assert "the ramp ended after step" in first.out
    assert "<svg" in (tmp_path / "small-rate" / "rates.html").read_text()
    again = any_end("tune", "rate", *SMALL_RECIPE, *options, "--to", "b", cwd=tmp_path)
    assert again.out.replace("b/", "small-rate/") == first.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--low", "0"], "do not rise"),
        (["--low", "1", "--high", "1"], "do not rise"),
        (["--steps", "3"], "too few"),
        (["--objective", "clasification"], "Did you mean 'classification'?"),
    ],
)
def test_nonsensical_ramp_is_refused(tmp_path: Path, options: list[str], message: str) -> None:
    done = here("tune", "rate", *SMALL_RECIPE, *options, cwd=tmp_path, code=2)
    assert message in done.message
    assert not list(tmp_path.iterdir())
