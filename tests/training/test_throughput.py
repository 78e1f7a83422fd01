"""Speeds on a clock that the tests turn."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from jumar.training.settings import CheckpointSettings, TrainingSettings
from jumar.training.throughput import EXCLUDES, WARM_UP_STEPS, Pace, StepClock
from tests.training.small_tasks import point_task, small_plan, trainer_for


class Hands:
    """The hands of a clock."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_window_counts_waiting_but_excludes_pauses() -> None:
    hands = Hands()
    clock = StepClock(32, hands)
    for _ in range(4):
        with clock.waiting_for_data():
            hands.seconds += 0.25
        hands.seconds += 0.75
        clock.step()
        with clock.paused():
            hands.seconds += 50
    pace = clock.close_window()
    assert pace is not None
    assert pace.samples_per_second == pytest.approx(32)
    assert pace.step_ms == pytest.approx(1000)
    assert pace.data_ms == pytest.approx(250)


def test_dropped_window_is_not_counted() -> None:
    hands = Hands()
    clock = StepClock(1, hands)
    for seconds in (9.0, 1.0):
        clock.drop_window()
        hands.seconds += seconds
        clock.step()
    clock.close_window()
    assert clock.overall is not None
    assert clock.overall.step_ms == pytest.approx(1000)
    assert clock.counted_steps == 1


def test_windows_give_the_mean_and_median_step_time() -> None:
    hands = Hands()
    clock = StepClock(10, hands)
    for seconds, steps in ((1.0, 2), (10.0, 1), (2.0, 2)):
        hands.seconds += seconds
        for _ in range(steps):
            clock.step()
        clock.close_window()
    assert clock.counted_steps == 5
    assert clock.overall is not None
    assert clock.overall.step_ms == pytest.approx(13000 / 5)
    assert clock.overall.samples_per_second == pytest.approx(50 / 13)
    assert clock.median_step_ms == pytest.approx(1000)


def test_window_without_steps_has_no_speed() -> None:
    hands = Hands()
    clock = StepClock(1, hands)
    hands.seconds += 1
    assert clock.close_window() is None
    assert clock.overall is None
    assert clock.median_step_ms is None


def test_throughput_excludes_warm_up_evaluation_and_checkpoints_and_says_so(tmp_path: Path) -> None:
    """Each step takes a second of this clock, an evaluation a thousand, a checkpoint as many."""
    hands = Hands()
    plan = small_plan(
        duration="20it",
        batch_size=8,
        training=TrainingSettings(log_every="4it", evaluate_every="6it"),
        checkpoints=CheckpointSettings(every="3it", keep=9),
    )
    task = point_task()
    trainer = trainer_for(task, plan, tmp_path)
    trainer.clock = StepClock(8, hands)
    train_fetch, score = task.train_data.fetch, task.evaluate_batch

    def fetch(keys):
        hands.seconds += 0.25
        return train_fetch(keys)

    def evaluate_batch(batch):
        hands.seconds += 1000
        return score(batch)

    def forward(points):
        if task.model.training:
            hands.seconds += 0.75 if trainer.state.step >= WARM_UP_STEPS else 300
        return forward_of_the_net(points)

    def capture():
        hands.seconds += 1000
        return state_of_the_run()

    forward_of_the_net, state_of_the_run = task.model.forward, trainer.state.capture
    trainer.state.capture = capture
    task.train_data.fetch, task.evaluate_batch, task.model.forward = fetch, evaluate_batch, forward
    trainer.train()
    lines = [record for record in trainer.run.read_metrics() if record["kind"] == "train"]
    assert [(line["step"], line["fps"] is None) for line in lines] == [
        (4, True),
        (8, False),
        (12, False),
        (16, False),
        (20, False),
    ]
    for line in lines[1:]:
        assert line["fps"] == pytest.approx(8)
        assert line["step_ms"] == pytest.approx(1000)
        assert line["data_ms"] == pytest.approx(250)
    result = json.loads(trainer.run.results.read_text())["throughput"]
    assert result["counted_steps"] == 20 - WARM_UP_STEPS
    assert result["samples_per_second"] == pytest.approx(8)
    assert result["excludes"] == EXCLUDES
    assert str(WARM_UP_STEPS) in EXCLUDES


def test_each_window_starts_afresh_and_the_first_five_steps_are_warm_up() -> None:
    assert WARM_UP_STEPS == 5
    hands = Hands()
    clock = StepClock(10, hands)
    paces = []
    for seconds in (1.0, 2.0):
        with clock.waiting_for_data():
            hands.seconds += seconds
        with clock.paused():
            hands.seconds += 7
        hands.seconds += 1.0
        clock.step()
        clock.step()
        paces.append(clock.close_window())
    assert paces == [
        Pace(samples_per_second=10.0, step_ms=1000.0, data_ms=500.0),
        Pace(samples_per_second=20 / 3, step_ms=1500.0, data_ms=1000.0),
    ]
    assert clock.overall == Pace(samples_per_second=8.0, step_ms=1250.0, data_ms=750.0)
    clock.step()
    assert clock.close_window() is None  # no time has passed
    assert clock.counted_steps == 4


def test_waits_and_pauses_ended_by_an_error_count() -> None:
    hands = Hands()
    clock = StepClock(1, hands)

    def fail(context: Callable[[], AbstractContextManager[None]]) -> None:
        with context():
            hands.seconds += 2
            raise KeyError

    for context in (clock.waiting_for_data, clock.paused):
        with pytest.raises(KeyError):
            fail(context)
    hands.seconds += 1
    clock.step()
    assert clock.close_window() == Pace(samples_per_second=1 / 3, step_ms=3000.0, data_ms=2000.0)
