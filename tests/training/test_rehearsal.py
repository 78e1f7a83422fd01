from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.ground.machine import memory_bytes
from jumar.precision.loss_scale import ExponentialLossScale
from jumar.precision.settings import PrecisionSettings
from jumar.training.optimizers import Adagrad, Adam, Lamb, RmsProp
from jumar.training.rehearsal import (
    Rehearsal,
    announcement,
    check_disk,
    check_memory,
    checkpoint_bytes,
    describe_batch,
)
from jumar.training.settings import Plan, TrainingSettings
from jumar.training.trainer import Trainer
from tests.training.small_tasks import GanTask, point_task, small_plan, trainer_for
from tests.training.test_trainer import everything, same

BATCH = {"image": torch.zeros(4, 3, 8, 8, dtype=torch.uint8), "label": torch.zeros(4).long()}


def test_a_batch_is_described_by_name_type_and_shape() -> None:
    assert describe_batch(BATCH) == "image uint8 4x3x8x8, label int64 4"


def lines(**changed: object) -> list[str]:
    values = {
        "samples": 40,
        "steps_per_epoch": 5,
        "done_steps": 30,
        "total_steps": 100,
        "checkpoints": "1 KiB each, at most 6 kept",
        **changed,
    }
    return announcement(BATCH, Rehearsal(step_s=0.25, memory_bytes=3 << 20), **values)


def test_first_batch_memory_and_the_time_to_the_end_are_said() -> None:
    first, second, third = lines()
    assert first == "first batch: image uint8 4x3x8x8, label int64 4 · memory: 3 MiB"
    assert second == "40 samples, 5 steps per epoch · checkpoints: 1 KiB each, at most 6 kept"
    assert "70 of 100 steps to go, about 250 ms each without the update: about 18 s" in third


def test_a_run_on_the_clock_says_what_a_step_takes() -> None:
    assert lines(total_steps=None)[-1] == (
        "training for training.duration, about 250 ms each without the update"
    )


def test_too_small_a_disk_is_refused_also_where_the_folder_is_not_there_yet(tmp_path: Path) -> None:
    check_disk(tmp_path / "a" / "b", 1)
    with pytest.raises(UserError, match=r"checkpoints need .*, but only"):
        check_disk(tmp_path / "a" / "b", 1 << 60)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="not writable"):
        check_disk(tmp_path / "file" / "b", 1)


PLANS: dict[str, Plan] = {
    "momentum": small_plan(),
    "averages": small_plan(training=TrainingSettings(ema_decay=0.9)),
    "adam": small_plan(optimizer=Adam()),
    "adagrad": small_plan(optimizer=Adagrad()),
    "lamb": small_plan(optimizer=Lamb()),
    "rmsprop": small_plan(optimizer=RmsProp()),
}


@pytest.mark.parametrize("name", PLANS)
def test_the_size_of_a_checkpoint_is_foretold(tmp_path: Path, name: str) -> None:
    plan = PLANS[name]
    task = point_task()
    task.model.first.weight = torch.nn.Parameter(torch.zeros(30000, 6))
    task.model.norm = torch.nn.BatchNorm1d(30000)
    task.model.last = torch.nn.Linear(30000, 3)
    task.model.first.bias = torch.nn.Parameter(torch.zeros(30000))
    trainer = trainer_for(
        task, replace(plan, training=replace(plan.training, duration="1it")), tmp_path
    )
    foretold = checkpoint_bytes(trainer.state, trainer.plan)
    trainer.train()
    (folder,) = (tmp_path / "checkpoints").iterdir()
    real = sum(path.stat().st_size for path in folder.iterdir())
    assert foretold <= real < 1.15 * foretold + 20000


def rehearsed(trainer: Trainer) -> None:
    trainer.train(dry_run=True)


@pytest.mark.parametrize(
    "precision",
    [
        PrecisionSettings(),
        PrecisionSettings(mode="allow_mix_precision", loss_scale=ExponentialLossScale()),
    ],
    ids=["full precision", "loss scale"],
)
def test_a_rehearsal_leaves_no_trace_in_what_follows(
    tmp_path: Path, precision: PrecisionSettings
) -> None:
    """Batch norm, dropout, gradients, sums of the log, loss scale."""
    plan = small_plan(precision=precision)
    trainer = trainer_for(point_task(), plan, tmp_path)
    before = everything(trainer)
    rehearsed(trainer)
    assert same(before, everything(trainer))
    assert all(parameter.grad is None for parameter in trainer.task.model.parameters())


def test_a_gan_is_rehearsed_with_both_objectives(tmp_path: Path) -> None:
    plan = small_plan(objectives=("discriminator", "generator"))
    trainer = trainer_for(GanTask(), plan, tmp_path)
    before = everything(trainer)
    rehearsed(trainer)
    assert same(before, everything(trainer))


def test_a_batch_that_does_not_fit_into_memory_is_an_error_for_the_user(tmp_path: Path) -> None:
    task = point_task()

    def forward(points: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("tried to allocate 80 GiB")

    task.model.forward = forward
    with pytest.raises(UserError, match="does not fit into the memory") as found:
        rehearsed(trainer_for(task, small_plan(), tmp_path))
    assert "training.micro_batch_size" in found.value.todo


def test_what_does_not_fit_into_memory_is_refused_before_the_first_step(tmp_path: Path) -> None:
    trainer = trainer_for(point_task(), small_plan(), tmp_path)
    needed = checkpoint_bytes(trainer.state, trainer.plan)
    check_memory(trainer.state, trainer.device, needed)
    with pytest.raises(UserError, match=r"gradients, optimizer and .* need 2,097,152"):
        check_memory(trainer.state, trainer.device, 1 << 50)
    trainer.state.step = 1  # resumed: its slots are in memory already
    with pytest.raises(UserError, match=r"the copy of a checkpoint needs 1,048,576") as refused:
        check_memory(trainer.state, trainer.device, 1 << 50)
    assert refused.value.where == "model"
    free, _ = memory_bytes()
    check_memory(trainer.state, trainer.device, free * 9 // 10)
    trainer.state.step = 0
    with pytest.raises(UserError, match="only"):
        check_memory(trainer.state, trainer.device, free * 9 // 10)


@pytest.mark.parametrize("micro_batch_size", [0, 3])
def test_the_passes_of_a_step_can_be_repeated_bit_for_bit(
    tmp_path: Path, micro_batch_size: int
) -> None:
    training = TrainingSettings(evaluate_every="", micro_batch_size=micro_batch_size)
    plan = small_plan(training=training)
    first = trainer_for(point_task(), plan, tmp_path)
    with first.held_at(2, None) as (stepper, batch):
        assert first.state.step == 2
        sums = dict(first.state.lanes[0].sums)
        saved = [buffer.clone() for buffer in stepper.buffers]
        loss, gradients = stepper.passes(batch)
        for buffer, before in zip(stepper.buffers, saved, strict=True):
            buffer.copy_(before)
        again = stepper.passes(batch)
        assert torch.equal(loss, again[0])
        pairs = list(zip(gradients, again[1], strict=True))
        assert all(a is not None and b is not None and torch.equal(a, b) for a, b in pairs)
        assert first.state.lanes[0].sums.keys() == sums.keys()
        assert all(parameter.grad is None for parameter in first.task.model.parameters())


def test_both_objectives_of_a_gan_have_gradients(tmp_path: Path) -> None:
    task = GanTask()
    trainer = trainer_for(task, small_plan(objectives=("discriminator", "generator")), tmp_path)
    with trainer.held_at(0, None) as (stepper, batch):
        _, gradients = stepper.passes(batch)
    due = [lane for lane in trainer.state.lanes if lane.objective.is_due(0)]
    assert len(gradients) == sum(len(lane.parameters) for lane in due)
    assert all(each is not None for each in gradients)
