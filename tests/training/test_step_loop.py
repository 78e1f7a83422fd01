"""Steps one after another, as observers see them, and a step that is held."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.observer import Observer, Record
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.optimizers import Sgd
from jumar.training.settings import TrainingSettings, TransferSettings
from jumar.training.step_loop import StepLoop
from tests.training.small_tasks import GanTask, point_task, small_plan, trainer_for


class Diary(Observer):
    """Records all calls."""

    def __init__(self, span: int = 0) -> None:
        self.span = span
        self.seen: list[str] = []

    def open(self, first_step: int) -> None:
        self.seen.append(f"open {first_step}")

    def check(self, steps_left: int | None) -> None:
        self.seen.append(f"check {steps_left}")

    def begin(self) -> None:
        self.seen.append("begin")

    def begin_step(self, step: int) -> None:
        self.seen.append(f"step {step}")

    def end_step(self) -> None:
        self.seen.append("end step")

    def record(self, record: Record) -> None:
        self.seen.append(f"{record.to_json()['kind']} {record.step}")

    def phase(self, name: str, detail: str = "") -> AbstractContextManager[object] | None:
        self.seen.append(f"{name} {detail}".strip())
        return nullcontext()

    def end(self) -> None:
        self.seen.append("end")

    def close(self) -> None:
        self.seen.append("close")


PASSES = ["objective points", "forward", "backward", "optimizer", "end step"]


def test_observers_receive_all_events_in_order(tmp_path: Path) -> None:
    diary = Diary()
    plan = small_plan(
        duration="2it", training=TrainingSettings(log_every="1it", evaluate_every="1it")
    )
    trainer_for(point_task(), plan, tmp_path, observers=[diary]).train()
    between = ["communication", "train 1", "evaluation 1", "step 1", "data"]
    assert diary.seen == [
        *("check 2", "open 0", "begin", "step 0", *PASSES, *between),
        *(*PASSES, "communication", "train 2", "step 2", "data"),
        *("end", "evaluation 2", "close"),
    ]
    again = Diary()
    longer = trainer_for(point_task(), small_plan(duration="3it"), tmp_path, observers=[again])
    longer.resume(list_checkpoints(longer.run.checkpoints)[-1])
    longer.train()
    assert again.seen[:4] == ["check 1", "open 2", "begin", "step 2"]


def test_number_of_steps_follows_the_observers_or_the_request(tmp_path: Path) -> None:
    plan = small_plan(duration="100it")
    diary = Diary(span=3)
    observed = trainer_for(point_task(), plan, tmp_path, observers=[diary, Diary(span=1)])
    observed.observe(None)
    assert observed.state.step == 3
    assert diary.seen.count("end step") == 3
    assert not list(tmp_path.iterdir())
    counted = trainer_for(point_task(), plan, tmp_path)
    assert [counted.state.step for _ in counted.each_step(4)] == [1, 2, 3, 4]
    assert [counted.state.step for _ in counted.each_step(2)] == [5, 6]


def test_held_step_keeps_its_batch_after_earlier_steps_trained(tmp_path: Path) -> None:
    plan = small_plan(duration="6it")
    trainer = trainer_for(point_task(), plan, tmp_path / "run")
    trainer.train()
    checkpoint = next(c for c in list_checkpoints(trainer.run.checkpoints) if c.step == 3)
    straight = trainer_for(point_task(), plan, tmp_path / "x")
    with straight.at_step(4, None) as (_, batch):
        assert straight.state.step == 4
    resumed = trainer_for(point_task(seed=9), plan, tmp_path / "x")
    with resumed.at_step(4, checkpoint) as (_, other):
        assert resumed.state.step == 4
    assert torch.equal(batch["point"], other["point"])
    weights = (straight.task.model.state_dict(), resumed.task.model.state_dict())
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())
    observed = trainer_for(point_task(seed=9), plan, tmp_path / "x", observers=[Diary(span=1)])
    observed.observe(checkpoint)
    assert observed.state.step == 4


def test_frozen_parameters_train_in_a_held_step_at_the_configured_step(tmp_path: Path) -> None:
    transfer = TransferSettings(freeze=("first",), unfreeze_at="2it", freeze_batch_norms=True)
    plan = replace(small_plan(), transfer=transfer)
    for step, trained in ((1, False), (2, True)):
        trainer = trainer_for(point_task(), plan, tmp_path)
        with trainer.at_step(step, None):
            weight = trainer.task.model.get_parameter("first.weight")
            assert weight.requires_grad is trained


def test_all_parts_are_in_training_mode_while_steps_run(tmp_path: Path) -> None:
    task = point_task()
    task.model.eval()
    task.objectives[0].eval()
    trainer = trainer_for(task, small_plan(), tmp_path)
    with trainer.at_step(0, None):
        assert all(module.training for module in task.model.modules())
        assert task.objectives[0].training


def test_loop_knows_its_length_and_whether_it_is_blocked(tmp_path: Path) -> None:
    trainer = trainer_for(point_task(), small_plan(duration="2.5ep"), tmp_path)
    assert isinstance(trainer, StepLoop)
    assert (trainer.steps_per_epoch, trainer.total_steps, trainer.workers) == (5, 12, 0)
    assert not trainer.is_blocked
    trainer._guard.watch(torch.tensor(1.0), 1, 0)
    assert trainer.is_blocked
    with pytest.raises(UserError, match="a share of the whole run"):
        trainer_for(point_task(), small_plan(duration="50%"), tmp_path)


def test_gan_trains_due_objectives_and_counts_each(tmp_path: Path) -> None:
    plan = small_plan(
        objectives=("discriminator", "generator"),
        optimizer=Sgd(learning_rate=0.5),
        training=TrainingSettings(log_every="100it", evaluate_every=""),
    )
    trainer = trainer_for(GanTask(), plan, tmp_path)
    rates = []
    for _ in trainer.each_step(3):
        lanes = trainer.state.lanes
        rates.append([lane.last_rate for lane in lanes])
    assert [(lane.steps, lane.attempts) for lane in lanes] == [(3, 3), (2, 2)]
    # A warm-up of two steps; the generator is trained in the first and the third.
    assert rates[0] == [0.25, 0.25]
    assert rates[1] == [0.5, 0.25]
    assert rates[2] == [0.5, 0.5]
