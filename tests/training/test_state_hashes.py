"""A run at work and its checkpoint have the same hashes, and every change shows."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jumar.precision.loss_scale import ExponentialLossScale
from jumar.precision.settings import PrecisionSettings
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.optimizers import Adam, Momentum, OptimizerSettings
from jumar.training.settings import Plan, TrainingSettings
from jumar.training.state_hashes import StepHashes, checkpoint_hashes, combined, live_hashes
from jumar.training.trainer import Trainer
from tests.training.small_tasks import point_task, small_plan, trainer_for

PLANS = {
    "momentum with averages": (Momentum(learning_rate=0.05, momentum=0.9), 0.9, False),
    "adam with a loss scale": (Adam(learning_rate=0.01), 0.0, True),
}


def plan_of(optimizer: OptimizerSettings, ema_decay: float, scaled: bool) -> Plan:
    training = TrainingSettings(log_every="4it", evaluate_every="", ema_decay=ema_decay)
    plan = small_plan(duration="6it", training=training, optimizer=optimizer)
    if not scaled:
        return plan
    scale = ExponentialLossScale(init_loss_scale=2.0**10, incr_every_n_steps=3)
    return replace(plan, precision=PrecisionSettings(mode="allow_mix_precision", loss_scale=scale))


def finished(name: str, path: Path) -> Trainer:
    trainer = trainer_for(point_task(), plan_of(*PLANS[name]), path)
    trainer.train()
    return trainer


@pytest.mark.parametrize("name", PLANS)
def test_checkpoint_has_the_hashes_of_its_training(name: str, tmp_path: Path) -> None:
    trainer = finished(name, tmp_path)
    (checkpoint,) = list_checkpoints(trainer.run.checkpoints)[-1:]
    hashes = checkpoint_hashes(checkpoint)
    assert hashes == live_hashes(trainer.state)
    assert {each.partition("/")[0] for each in hashes} >= {"weights", "optimizer", "counters"}
    assert bool([each for each in hashes if each.startswith("averages/")]) == ("averages" in name)


@pytest.mark.parametrize("name", PLANS)
def test_replay_of_all_steps_ends_with_the_hashes_of_the_training(
    name: str, tmp_path: Path
) -> None:
    trainer = finished(name, tmp_path)
    hashes = StepHashes(6)
    again = trainer_for(point_task(), plan_of(*PLANS[name]), tmp_path / "again", observers=[hashes])
    hashes.state = again.state
    again.observe(None)
    assert list(hashes.steps) == [1, 2, 3, 4, 5, 6]
    assert hashes.last == live_hashes(trainer.state)
    assert hashes.steps[6] == combined(live_hashes(trainer.state)) != hashes.steps[5]


def test_one_bit_of_each_kind_of_state_changes_only_its_part(tmp_path: Path) -> None:
    trainer = finished("momentum with averages", tmp_path)
    state = trainer.state
    before = combined(live_hashes(state))

    def changed() -> list[str]:
        return [part for part, each in combined(live_hashes(state)).items() if each != before[part]]

    def flip(tensor: torch.Tensor) -> None:
        with torch.no_grad():
            tensor.view(-1)[:1].view(torch.int32).bitwise_xor_(1)

    (lane,) = state.lanes
    parameter = lane.parameters[0]
    slot = lane.optimizer.state[parameter]["momentum_buffer"]
    assert state.ema is not None
    average = state.ema.state_dict()["first.weight"]
    for tensor, part in ((slot, "optimizer"), (average, "averages")):
        flip(tensor)
        assert changed() == [part]
        flip(tensor)
    flip(parameter)
    assert changed() == ["weights"]
    flip(parameter)
    lane.optimizer.param_groups[0]["lr"] += 1e-9
    assert changed() == ["counters"]


def test_log_sums_and_the_clock_are_not_state(tmp_path: Path) -> None:
    trainer = finished("momentum with averages", tmp_path)
    before = live_hashes(trainer.state)
    trainer.state.elapsed_s += 5
    trainer.state.lanes[0].steps += 1
    assert live_hashes(trainer.state) == before


def test_part_has_the_hash_of_all_its_names_in_order() -> None:
    hashes = {"weights/b": "2", "weights/a": "1", "counters/x": "3"}
    digests = {
        "weights": hashlib.sha256(b"weights/a 1\nweights/b 2\n"),
        "averages": hashlib.sha256(),
        "optimizer": hashlib.sha256(),
        "counters": hashlib.sha256(b"counters/x 3\n"),
    }
    assert combined(hashes) == {part: each.hexdigest()[:16] for part, each in digests.items()}


@pytest.mark.parametrize(("first", "hashed"), [(0, [1, 2, 3]), (1, [2, 3]), (2, [3])])
def test_steps_before_the_first_requested_one_are_not_hashed(
    first: int, hashed: list[int], tmp_path: Path
) -> None:
    hashes = StepHashes(3, first)
    trainer = trainer_for(
        point_task(), plan_of(Momentum(), 0.0, False), tmp_path, observers=[hashes]
    )
    hashes.state = trainer.state
    trainer.observe(None)
    assert list(hashes.steps) == hashed
    assert hashes.steps[3] == combined(hashes.last)
    assert hashes.last == live_hashes(trainer.state)


def test_hash_covers_dtype_and_shape_and_excludes_log_sums(
    tmp_path: Path,
) -> None:
    trainer = trainer_for(point_task(), plan_of(Momentum(), 0.9, False), tmp_path)
    result = live_hashes(trainer.state)
    names = list(trainer.task.model.state_dict())
    slots = [name for name, _ in trainer.task.model.named_parameters()]
    assert set(result) == {
        *(f"{part}/{name}" for part in ("weights", "averages") for name in names),
        *(f"optimizer/points/{name}/momentum_buffer" for name in slots),
        *("counters/points", "counters/loss scale"),
    }
    assert result["weights/first.weight"].startswith("torch.float32 (16, 6) ")
    assert result["weights/norm.num_batches_tracked"].startswith("torch.int64 () ")
