"""What is said of updates that the loss scale skips, and of runs that made none."""

import json
from pathlib import Path

import pytest
import torch

from jumar.precision.loss_scale import LossScaleSettings
from jumar.precision.settings import PrecisionSettings
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.settings import Plan, TrainingSettings
from jumar.training.skipped_updates import NoUpdateError, SkipWatch
from jumar.training.trainer import Trainer
from tests.components import of_kind
from tests.training.small_tasks import GanTask, PointTask, point_task, small_plan, trainer_for


def scaled_plan(
    duration: str = "6it", objectives: tuple[str, ...] = ("points",), **scale: object
) -> Plan:
    settings = of_kind(LossScaleSettings, **{"kind": "fixed", "init_loss_scale": 4.0, **scale})
    return small_plan(
        duration=duration,
        objectives=objectives,
        training=TrainingSettings(log_every="2it", evaluate_every=""),
        precision=PrecisionSettings(mode="allow_mix_precision", loss_scale=settings),
    )


def overflowing_task() -> PointTask:
    task = point_task()
    task.train_data.points[:] = float("inf")
    return task


def counted(trainer: Trainer) -> list[int]:
    return [int(lane.updates.item()) for lane in trainer.state.lanes]


@pytest.mark.parametrize("kind", ["fixed", "exponential"])
def test_run_without_an_update_fails_and_its_results_say_so(tmp_path: Path, kind: str) -> None:
    trainer = trainer_for(overflowing_task(), scaled_plan(kind=kind), tmp_path)
    outcome = trainer.train()
    assert (outcome.state, outcome.exit_code, outcome.step) == ("failed", 2, 6)
    assert isinstance(outcome.failure, NoUpdateError)
    assert outcome.failure.where == "precision.loss_scale"
    assert "init_loss_scale" in outcome.failure.todo
    assert ("loss_scale=exponential" in outcome.failure.todo) == (kind == "fixed")
    results = json.loads(trainer.run.results.read_text())
    assert (results["state"], results["skipped_steps"]) == ("failed", 6)
    assert results["failure"]["step"] == 6
    assert results["failure"]["objective"] == "points"
    assert "was never updated" in results["failure"]["reason"]
    records = [r for r in trainer.run.read_metrics() if r["kind"] == "train"]
    assert [record["skipped"] for record in records] == [2, 4, 6]


def test_one_update_is_enough_to_have_finished(tmp_path: Path) -> None:
    task = overflowing_task()
    fetch, calls = task.train_data.fetch, []

    def fetch_one_good(keys: object) -> object:
        calls.append(keys)
        fetched = fetch(keys)  # pyright: ignore[reportArgumentType]
        if len(calls) == 4:
            fetched.batch["point"].zero_()
        return fetched

    task.train_data.fetch = fetch_one_good  # pyright: ignore[reportAttributeAccessIssue]
    trainer = trainer_for(task, scaled_plan(), tmp_path)
    assert trainer.train().state == "finished"
    assert counted(trainer) == [1]


def test_without_overflows_every_update_is_counted(tmp_path: Path) -> None:
    trainer = trainer_for(point_task(), scaled_plan(), tmp_path)
    assert trainer.train().state == "finished"
    assert counted(trainer) == [6]


def test_objective_that_is_never_updated_fails_the_run_even_if_another_is(tmp_path: Path) -> None:
    task = GanTask()
    trainer = trainer_for(task, scaled_plan(objectives=("discriminator", "generator")), tmp_path)
    with torch.no_grad():
        task.model["g"].weight.fill_(float("inf"))
    task.objectives[0].forward = lambda batch: {  # pyright: ignore[reportAttributeAccessIssue]
        "loss": task.model["d"](batch["point"]).mean()
    }
    outcome = trainer.train()
    assert counted(trainer) == [6, 0]
    assert outcome.failure is not None
    assert outcome.failure.objective == "generator"


def test_updates_before_an_interruption_are_counted_across_the_resume(tmp_path: Path) -> None:
    first = trainer_for(point_task(), scaled_plan("3it"), tmp_path / "good")
    first.train()
    again = trainer_for(overflowing_task(), scaled_plan("6it"), tmp_path / "good")
    again.resume(list_checkpoints(again.run.checkpoints)[-1])
    assert again.train().state == "finished"
    assert counted(again) == [3]

    trainer_for(overflowing_task(), scaled_plan("3it"), tmp_path / "bad").train()
    again = trainer_for(overflowing_task(), scaled_plan("3it"), tmp_path / "bad")
    again.resume(list_checkpoints(again.run.checkpoints)[-1])
    assert again.train().state == "failed"


def test_run_without_a_loss_scale_is_not_checked(tmp_path: Path) -> None:
    trainer = trainer_for(point_task(), scaled_plan(kind="none"), tmp_path)
    assert trainer.train().state == "finished"
    assert SkipWatch(trainer.state).warnings() == []


def test_three_consecutive_skips_are_reported_and_again_at_twice_as_many(
    tmp_path: Path,
) -> None:
    trainer = trainer_for(point_task(), scaled_plan(), tmp_path)
    (lane,) = trainer.state.lanes
    lane.updates.fill_(7)  # as a resumed run begins
    watch = SkipWatch(trainer.state)
    report: list[tuple[int, str]] = []
    for step in range(1, 21):
        lane.attempts += 1
        lane.updates.add_(step == 12)
        report += [(step, line) for line in watch.warnings()]
    assert [step for step, _ in report] == [3, 6, 15, 18]
    assert "the last 6 updates of 'points' were skipped" in report[1][1]
    assert "loss scale is 4" in report[1][1]


@pytest.mark.parametrize("is_fixed", [True, False])
def test_run_without_an_update_gets_a_remedy(is_fixed: bool) -> None:
    error = NoUpdateError(6, "points", scale=2.0**20, is_fixed=is_fixed)
    lowers = ", or loss_scale=exponential, which lowers it" if is_fixed else ""
    assert str(error) == (
        "precision.loss_scale: 'points' was never updated in 6 steps: at every step the gradients "
        "overflowed under the loss scale, now 1.04858e+06\n"
        "  Its weights have not changed. Start a new run with --set "
        f"precision.loss_scale.init_loss_scale=N, with N below 1.04858e+06{lowers}. If no scale "
        "helps, precision.loss_scale=none stops at the first non-finite step."
    )
    assert (error.step, error.objective, error.reason) == (6, "points", error.what)


def test_each_objective_is_warned_about_separately(tmp_path: Path) -> None:
    plan = scaled_plan(objectives=("discriminator", "generator"))
    trainer = trainer_for(GanTask(), plan, tmp_path)
    one, other = trainer.state.lanes
    one.attempts = 5  # of an earlier start
    watch = SkipWatch(trainer.state)
    report: list[list[str]] = []
    for _ in range(4):
        one.attempts += 1
        other.attempts += 1
        other.updates.add_(1)
        report.append(watch.warnings())
    assert report == [
        [],
        [],
        [
            "warning: the last 3 updates of 'discriminator' were skipped because gradients "
            "overflow; the loss scale is 4"
        ],
        [],
    ]
