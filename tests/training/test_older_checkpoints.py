"""Checkpoints of earlier versions, with `state.pt`, still open.

Those in `older_checkpoints/` were written by the version before `state.json` (commit 2f5d554), with
the plans below after 3 steps, with the weights of the same run after 6. They hold moving averages,
a loss scale that has grown, and sums since the last log line.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.precision.loss_scale import ExponentialLossScale
from jumar.precision.settings import PrecisionSettings
from jumar.training.checkpoint import (
    MODEL,
    RECORD,
    STATE,
    Checkpoint,
    load_state,
    load_weights,
    read_checkpoint,
)
from jumar.training.checkpoint_retention import list_checkpoints, newest_checkpoint
from jumar.training.older_checkpoints import OLDER_STATE
from jumar.training.optimizers import Adam, AdamW, Momentum, OptimizerSettings
from jumar.training.optimizers.slots import stored_slots
from jumar.training.settings import CheckpointSettings, TrainingSettings
from jumar.training.trainer import Trainer
from tests.training.small_tasks import GanTask, MaskedTask, small_plan, trainer_for
from tests.training.test_checkpoint_retention import Damage, empty, flip, halve, remove
from tests.training.test_trainer import everything, same

WRITTEN = Path(__file__).parent / "older_checkpoints"
OPTIMIZERS: Mapping[str, OptimizerSettings] = {
    "adam": Adam(learning_rate=0.01),
    "momentum": Momentum(learning_rate=0.05, weight_decay=1e-3),
    "adamw": AdamW(learning_rate=0.01, weight_decay=0.1),
}


def trainer(name: str, path: Path) -> Trainer:
    """As the fixture was trained, from other weights."""
    torch.manual_seed(99)
    task = GanTask() if name == "adam" else MaskedTask()
    scale = ExponentialLossScale(init_loss_scale=2.0**10, incr_every_n_steps=2)
    plan = small_plan(
        duration="6it",
        objectives=[objective.name for objective in task.objectives],
        optimizer=OPTIMIZERS[name],
        training=TrainingSettings(log_every="2it", evaluate_every="", ema_decay=0.9),
        precision=PrecisionSettings(mode="allow_mix_precision", loss_scale=scale),
        checkpoints=CheckpointSettings(every="3it", keep=10),
    )
    return trainer_for(task, plan, path)


def older(name: str, run: Path) -> Checkpoint:
    """The fixture, as the checkpoint of a run."""
    (run / "checkpoints").mkdir(parents=True)
    place = shutil.copytree(WRITTEN / name / "step-00000003", run / "checkpoints/step-00000003")
    return read_checkpoint(place)


def rewritten(checkpoint: Checkpoint, state: Any = None, *, marked: bool = False) -> Checkpoint:
    """As one of the first versions wrote it, without hashes; with another state if given."""
    record = json.loads((checkpoint.path / RECORD).read_text())
    if not marked:
        del record["files"], record["crc32c"]
    (checkpoint.path / RECORD).write_text(json.dumps(record))
    if state is not None:
        torch.save(state, checkpoint.path / OLDER_STATE)
    return read_checkpoint(checkpoint.path)


def raw_state(name: str) -> dict[str, Any]:
    path = WRITTEN / name / "step-00000003" / OLDER_STATE
    return torch.load(path, weights_only=True)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_older_state_is_restored_completely_and_bitwise(tmp_path: Path, name: str) -> None:
    resumed = trainer(name, tmp_path)
    resumed.resume(older(name, tmp_path))
    raw, state = raw_state(name), resumed.state
    for lane in state.lanes:
        objective = lane.objective.name
        now, then = lane.optimizer.state_dict(), raw["optimizers"][objective]
        assert same(now["state"], then["state"])
        assert same(now["param_groups"], then["param_groups"])
        assert same(lane.sums, raw["windows"][objective]["sums"])
        assert lane.steps == raw["windows"][objective]["steps"] == 1
        assert lane.updates.item() == raw["updates"][objective] > 1
    assert state.policy.loss_scale is not None
    assert same(state.policy.loss_scale.state_dict(), raw["loss_scale"])
    assert state.policy.loss_scale.scale > 2.0**10
    assert (state.step, state.elapsed_s) == (3, raw["elapsed_s"])
    assert state.ema is not None
    for kind, now in (("model", state.task.model.state_dict()), ("ema", state.ema.state_dict())):
        then = load_weights(WRITTEN / name / "step-00000003" / f"{kind}.safetensors")
        assert same(dict(now), then)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_run_of_an_earlier_version_resumes_to_the_same_result(tmp_path: Path, name: str) -> None:
    resumed = trainer(name, tmp_path)
    resumed.resume(older(name, tmp_path))
    resumed.train()
    # Another machine may round the three steps differently, the restored state is exact.
    expected = load_weights(WRITTEN / name / "after-6-steps.safetensors")
    torch.testing.assert_close(dict(resumed.state.task.model.state_dict()), expected)
    first, last = list_checkpoints(tmp_path / "checkpoints")
    assert (first.format, last.format) == (1, 2)
    assert OLDER_STATE not in last.marks
    again = trainer(name, tmp_path)
    again.resume(last)
    assert same(everything(again), everything(resumed))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_checkpoints_written_before_names_were_stored_are_restored_by_position(
    tmp_path: Path, name: str
) -> None:
    state = raw_state(name)
    del state["parameters"], state["updates"]
    checkpoint = rewritten(older(name, tmp_path), state)
    # Without names there is nothing for TensorFlow.
    assert stored_slots(load_state(checkpoint)) == {}
    resumed = trainer(name, tmp_path)
    resumed.resume(checkpoint)
    for lane in resumed.state.lanes:
        now, then = lane.optimizer.state_dict(), state["optimizers"][lane.objective.name]
        assert same(now["state"], then["state"])
        assert lane.updates.item() == 3


def test_slots_of_an_older_checkpoint_are_exported_to_tensorflow_by_name(tmp_path: Path) -> None:
    state = load_state(older("adam", tmp_path))
    raw = raw_state("adam")["optimizers"]
    assert same(stored_slots(state)["d.bias"], raw["discriminator"]["state"][1])
    assert same(stored_slots(state)["g.weight"], raw["generator"]["state"][0])


def test_older_import_is_read_with_its_powers(tmp_path: Path) -> None:
    slots = {"weight": {"exp_avg": torch.randn(3)}}
    state = {"step": 3, "slots": slots, "powers": {"weight": [0.5, 0.25]}}
    read = load_state(rewritten(older("adam", tmp_path), state))
    assert same(stored_slots(read), slots)
    assert read.values == {"step": 3, "powers": {"weight": [0.5, 0.25]}}


def test_older_weights_only_import_is_not_resumed(tmp_path: Path) -> None:
    checkpoint = rewritten(older("momentum", tmp_path), {})
    with pytest.raises(UserError, match="no optimizer state"):
        trainer("momentum", tmp_path).resume(checkpoint)


@pytest.mark.parametrize("damage", [halve, empty, remove])
@pytest.mark.parametrize("name", [MODEL, OLDER_STATE])
def test_earliest_checkpoints_have_no_hashes_and_must_be_complete(
    tmp_path: Path, name: str, damage: Damage
) -> None:
    first = rewritten(older("adam", tmp_path))
    newer = first.path.with_name("step-00000004")
    shutil.copytree(first.path, newer)
    record = json.loads((newer / RECORD).read_text())
    (newer / RECORD).write_text(json.dumps(record | {"step": 4}))
    newest = newest_checkpoint(tmp_path / "checkpoints", pytest.fail)
    assert newest is not None
    assert (newest.step, newest.has_ema, newest.marks) == (4, True, {})
    damage(newer / name)
    newest = newest_checkpoint(tmp_path / "checkpoints", str)
    assert newest is not None
    assert newest.step == 3


@pytest.mark.parametrize("name", [MODEL, OLDER_STATE])
def test_flipped_bit_in_an_older_checkpoint_is_found(tmp_path: Path, name: str) -> None:
    flip(older("adam", tmp_path).path / name)
    with pytest.raises(UserError, match="no checkpoint in") as refused:
        newest_checkpoint(tmp_path / "checkpoints", str)
    assert name in refused.value.todo


@pytest.mark.parametrize("state", [{"step": Path("x")}, [1, 2]])
def test_state_that_would_run_code_or_of_another_kind_is_refused(
    tmp_path: Path, state: object
) -> None:
    checkpoint = rewritten(older("adam", tmp_path), state)
    with pytest.raises(UserError, match="cannot be read") as refused:
        load_state(checkpoint)
    # torch itself advises to load it so that its code runs.
    assert "weights_only" not in str(refused.value)


def test_state_of_another_recipe_is_refused(tmp_path: Path) -> None:
    state = raw_state("adam")
    del state["optimizers"]["generator"]
    with pytest.raises(UserError, match="does not fit this recipe: 'generator'"):
        load_state(rewritten(older("adam", tmp_path), state))


def test_current_checkpoints_contain_no_torch_save_files(tmp_path: Path) -> None:
    trainer("adam", tmp_path).train()
    files = {path.name for path in tmp_path.glob("checkpoints/*/*")}
    assert files == {
        "model.safetensors",
        "ema.safetensors",
        "optimizer.safetensors",
        STATE,
        RECORD,
    }
