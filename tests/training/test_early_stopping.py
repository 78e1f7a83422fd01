"""Early stopping: after so many evaluations without a gain, however often a run is interrupted."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.tasks.task import Headline
from jumar.training.checkpoint import Checkpoint
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.early_stopping import EarlyStopping, check_early_stopping
from jumar.training.settings import (
    CheckpointSettings,
    EarlyStoppingSettings,
    Plan,
    TrainingSettings,
)
from tests.training.small_tasks import PointTask, SmallNet, small_plan, trainer_for


def fed(values: list[float], *, patience: int, higher: bool = True, delta: float = 0.0) -> int:
    """The number of evaluations after which it ends; 0 if it does not."""
    early = EarlyStopping(
        EarlyStoppingSettings(patience=patience, min_delta=delta),
        Headline(name="top1", unit="%", higher_is_better=higher),
    )
    for number, value in enumerate(values, start=1):
        early.count(number, {"top1": value})
        if early.reason:
            return number
    return 0


@pytest.mark.parametrize(
    ("values", "options", "end"),
    [
        ([1, 2, 2, 2, 3], {"patience": 2}, 4),
        ([1, 2, 2, 3, 3], {"patience": 2}, 0),
        ([3, 2, 1, 1, 1], {"patience": 2, "higher": False}, 5),
        ([1, 1.4, 1.8, 2.2], {"patience": 2, "delta": 0.5}, 0),
        ([1, 1.5, 1.5], {"patience": 2, "delta": 0.5}, 3),
        ([math.nan, math.nan], {"patience": 2}, 2),
        ([math.nan, 1, math.nan, 2], {"patience": 2}, 0),
        ([5, 1, 1, 1], {"patience": 0}, 0),
    ],
)
def test_run_ends_after_patience_evaluations_without_a_gain(
    values: list[float], options: dict[str, float], end: int
) -> None:
    assert fed(values, **options) == end  # pyright: ignore[reportArgumentType]


def test_evaluation_counts_once_even_if_recorded_repeatedly() -> None:
    early = EarlyStopping(
        EarlyStoppingSettings(patience=2),
        Headline(name="top1", unit="%", higher_is_better=True),
    )
    for step in (1, 2, 2, 2):
        early.count(step, {"top1": 1.0})
    assert not early.reason
    assert early.state_dict()["without_gain"] == 1


def stopping_plan(patience: int = 2, duration: str = "40it") -> Plan:
    made = small_plan(
        duration=duration,
        training=TrainingSettings(log_every="2it", evaluate_every="2it"),
        checkpoints=CheckpointSettings(every="3it", keep=30),
    )
    # A hundred per cent is the most: no gain is above it.
    return replace(made, early_stopping=EarlyStoppingSettings(patience=patience, min_delta=100.0))


def net_task() -> PointTask:
    torch.manual_seed(0)
    return PointTask(SmallNet())


def kept(path: Path, step: int) -> Checkpoint:
    return next(each for each in list_checkpoints(path / "checkpoints") if each.step == step)


def test_run_that_stops_early_is_finished_and_says_why(tmp_path: Path) -> None:
    trainer = trainer_for(net_task(), stopping_plan(), tmp_path)
    outcome = trainer.train()
    assert (outcome.state, outcome.exit_code, outcome.step) == ("finished", 0, 6)
    assert "top1 has not improved by more than 100 in 2 evaluations; best " in outcome.stopped_early
    results = json.loads(trainer.run.results.read_text())
    assert results["stopped_early"] == outcome.stopped_early
    assert results["state"] == "finished"


def test_interrupted_run_stops_early_at_the_same_step(tmp_path: Path) -> None:
    plan = replace(stopping_plan(patience=3), checkpoints=CheckpointSettings(every="1it", keep=30))
    whole = trainer_for(net_task(), plan, tmp_path)
    whole.train()
    assert whole.state.early is not None
    for at in range(1, 9):
        again = trainer_for(net_task(), plan, tmp_path)
        again.resume(kept(tmp_path, at))
        outcome = again.train()
        assert again.state.early is not None
        assert outcome.step == 8
        assert again.state.early.state_dict() == whole.state.early.state_dict()


def test_stopped_run_stays_stopped_until_more_patience_is_requested(tmp_path: Path) -> None:
    trainer_for(net_task(), stopping_plan(), tmp_path).train()
    steps: list[int] = []
    for plan in (stopping_plan(duration="60it"), stopping_plan(patience=4, duration="60it")):
        again = trainer_for(net_task(), plan, tmp_path)
        again.resume(kept(tmp_path, 6))
        steps.append(again.train().step)
    assert steps == [6, 10]


def test_run_without_scores_cannot_stop_early(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no evaluation data"):
        trainer_for(PointTask(SmallNet(), eval_size=0), stopping_plan(), tmp_path)
    plan = stopping_plan()
    unscored = replace(plan, training=replace(plan.training, evaluate_every=""))
    with pytest.raises(UserError, match="evaluate_every is empty"):
        trainer_for(net_task(), unscored, tmp_path)


def test_checkpoints_without_patience_have_no_early_stopping_state(tmp_path: Path) -> None:
    trainer = trainer_for(net_task(), small_plan(duration="3it"), tmp_path)
    trainer.train()
    assert "early_stopping" not in trainer.state.capture().values


def stopping(patience: int, delta: float, higher: bool) -> EarlyStopping:
    return EarlyStopping(
        EarlyStoppingSettings(patience=patience, min_delta=delta),
        Headline(name="top1", unit="%", higher_is_better=higher),
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_gain_must_exceed_the_minimum_over_the_best(sign: float) -> None:
    early = stopping(2, 0.5, sign > 0)
    for step, value in ((2, 10.0), (4, 10.5), (6, 10.75), (8, 11.25)):
        early.count(step, {"top1": sign * value})
    assert early.state_dict() == {
        "best": sign * 10.75,
        "best_step": 6,
        "last_step": 8,
        "without_gain": 1,
    }
    assert early.reason == ""
    early.count(8, {"top1": sign * 99.0})
    early.count(7, {"top1": sign * 99.0})
    assert early.reason == ""
    early.count(9, {"top1": sign * 9.123456789})
    assert early.reason == (
        f"top1 has not improved by more than 0.5 in 2 evaluations; best {sign * 10.75:g} at step 6"
    )
    again = stopping(2, 0.5, sign > 0)
    again.load_state_dict(early.state_dict())
    assert again.state_dict() == early.state_dict()
    assert again.reason == early.reason


def test_nan_metric_is_no_gain_and_without_patience_nothing_stops() -> None:
    early, patient = stopping(1, 0.0, True), stopping(0, 0.0, True)
    assert early.reason == ""
    for each in (early, patient):
        each.count(3, {"top1": float("nan")})
    assert patient.reason == ""
    assert early.reason == ("top1 has not improved in 1 evaluation; best never a number at step 0")
    again = stopping(1, 0.0, True)
    again.load_state_dict(early.state_dict())
    again.count(4, {"top1": -5.0})
    assert again.reason == ""
    assert again.state_dict()["best"] == -5.0
    for delta, value, gains in ((0.0, -5.0, False), (0.0, -4.999, True)):
        least = stopping(1, delta, True)
        least.load_state_dict(again.state_dict())
        least.count(5, {"top1": value})
        assert (least.reason == "") is gains


def test_unscored_run_cannot_stop_early_and_the_reason_is_given() -> None:
    plan = small_plan()
    patient = replace(plan, early_stopping=EarlyStoppingSettings(patience=1))
    silent = replace(patient, training=replace(patient.training, evaluate_every=""))
    advice = "Set data.eval_path and training.evaluate_every, or early_stopping.patience=0."
    check_early_stopping(patient, has_eval_data=True)
    check_early_stopping(plan, has_eval_data=False)
    for chosen, has_data, why in (
        (patient, False, "there is no evaluation data"),
        (silent, True, "evaluate_every is empty"),
        (silent, False, "there is no evaluation data"),
    ):
        with pytest.raises(UserError) as refused:
            check_early_stopping(chosen, has_eval_data=has_data)
        assert str(refused.value) == (
            f"early_stopping.patience: a run is scored only at its end: {why}\n  {advice}"
        )
