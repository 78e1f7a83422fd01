"""The complete `results.json` of a run with everything, and of one with required fields only."""

import json
from pathlib import Path
from typing import Any

import pytest

from jumar.devices.cpu import Cpu
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings
from jumar.tasks.task import Headline, ScoreTable
from jumar.training.checkpoint import Checkpoint
from jumar.training.evaluation import Scores
from jumar.training.guard import NonFiniteLoss
from jumar.training.parallel.ranks import Ranks
from jumar.training.results import Outcome, write_results
from jumar.training.run_directory import RunDirectory
from jumar.training.throughput import StepClock
from tests.training.small_tasks import small_plan

LOSS = Headline(name="loss", unit="nats", higher_is_better=False)


class Hands:
    """The hands of a clock."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def written(path: Path, outcome: Outcome, **changed: Any) -> dict[str, Any]:
    run = RunDirectory(path)
    given = {
        "plan": small_plan(batch_size=8, seed=3),
        "device": Cpu(index=0, name="a processor"),
        "ranks": Ranks(rank=0, world=3, local_world=3),
        "policy": PrecisionPolicy(
            PrecisionSettings(mode="must_keep_origin_dtype"), device_type="cpu"
        ),
        "clock": StepClock(24),
        "headline": LOSS,
        "best": None,
        "versions": {"jumar": "1.2"},
        "skipped_steps": 0,
        "unreadable": (),
        "train_loss": None,
        "scores": None,
        "memory_peak_bytes": None,
        "elapsed_s": 0.0,
        **changed,
    }
    write_results(run, outcome, **given)
    return json.loads(run.results.read_text())


NOTHING = {
    "recipe": "points",
    "state": "failed",
    "failure": {"step": 4, "objective": "points", "reason": "the loss is not finite"},
    "stopped_early": None,
    "device": {"kind": "cpu", "name": "a processor"},
    "ranks": 3,
    "batch_size": 24,
    "precision": {
        "mode": "must_keep_origin_dtype",
        "computed": "float32",
        "substituted": False,
        "note": "",
    },
    "versions": {"jumar": "1.2"},
    "seed": 3,
    "steps": 3,
    "skipped_steps": 0,
    "unreadable_samples": [],
    "throughput": None,
    "memory_peak_bytes": None,
    "elapsed_s": 0.0,
    "train_loss": None,
    "eval_samples": None,
    "score_tables": [],
    "metrics": {},
    "headline": {"name": "loss", "unit": "nats", "higher_is_better": False},
    "best": None,
}


def test_run_that_failed_before_any_measurement_reports_the_failure(
    tmp_path: Path,
) -> None:
    outcome = Outcome(
        state="failed",
        step=3,
        exit_code=3,
        metrics={},
        failure=NonFiniteLoss(4, "points", "the loss is not finite"),
    )
    assert written(tmp_path, outcome) == NOTHING


def test_finished_run_reports_everything(tmp_path: Path) -> None:
    hands = Hands()
    clock = StepClock(24, hands)
    for seconds in (1.0, 3.0, 2.0):
        with clock.waiting_for_data():
            hands.seconds += seconds / 4
        hands.seconds += 3 * seconds / 4
        clock.step()
        clock.close_window()
    best = Checkpoint(
        path=tmp_path,
        step=2,
        epoch=0.4,
        time="",
        metrics={"loss": 0.25, "top1": 90.0},
        has_ema=False,
        batch={},
    )
    table = ScoreTable(title="t", header=["a", "b"], rows=[["1", "2"]])
    result = written(
        tmp_path,
        Outcome(
            state="finished",
            step=3,
            exit_code=0,
            metrics={"loss": 0.5, "top1": float("nan")},
            stopped_early="no gain",
        ),
        clock=clock,
        best=best,
        skipped_steps=2,
        unreadable=["a.png: cut off"],
        train_loss=0.75,
        scores=Scores(metrics={}, samples=11, seconds=1.0, tables=[table]),
        memory_peak_bytes=1 << 20,
        elapsed_s=12.34567,
    )
    throughput = result.pop("throughput")
    assert throughput.pop("excludes") == (
        "the first 5 steps after a start, evaluation and checkpoints"
    )
    assert throughput == pytest.approx(
        {
            "samples_per_second": 12.0,
            "step_ms_mean": 2000.0,
            "step_ms_median": 2000.0,
            "data_ms_mean": 500.0,
            "counted_steps": 3,
        }
    )
    expected = {
        **NOTHING,
        "state": "finished",
        "failure": None,
        "stopped_early": "no gain",
        "skipped_steps": 2,
        "unreadable_samples": ["a.png: cut off"],
        "memory_peak_bytes": 1 << 20,
        "elapsed_s": 12.346,
        "train_loss": 0.75,
        "eval_samples": 11,
        "score_tables": [{"title": "t", "header": ["a", "b"], "rows": [["1", "2"]]}],
        "metrics": {"loss": 0.5, "top1": None},
        "best": {"step": 2, "metric": "loss", "value": 0.25},
    }
    del expected["throughput"]
    assert result == expected


def test_outcome_has_no_failure_or_early_stop_by_default() -> None:
    outcome = Outcome(state="finished", step=1, exit_code=0, metrics={})
    assert (outcome.failure, outcome.stopped_early) == (None, "")
