"""What a checkpoint restores, what fits none, and the means of a log line."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from jumar.ground.errors import UserError
from jumar.precision.loss_scale import FixedLossScale
from jumar.precision.settings import PrecisionSettings
from jumar.training.checkpoint import Checkpoint, load_weights, write_checkpoint
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.checkpoint_state import SavedState
from jumar.training.optimizers import Adam, Momentum
from jumar.training.settings import EarlyStoppingSettings, Plan, TrainingSettings
from jumar.training.state import Window, load_exactly
from tests.training.small_tasks import GanTask, point_task, small_plan, trainer_for

AVERAGED = small_plan(
    duration="4it", training=TrainingSettings(log_every="3it", evaluate_every="", ema_decay=0.9)
)


def last_of(plan: Plan, path: Path) -> Checkpoint:
    """The checkpoint at the end of a run."""
    trainer = trainer_for(point_task(), plan, path)
    trainer.train()
    return list_checkpoints(trainer.run.checkpoints)[-1]


def test_resume_state_is_captured_completely_and_restored(tmp_path: Path) -> None:
    plan = replace(AVERAGED, early_stopping=EarlyStoppingSettings(patience=5))
    plan = replace(plan, training=replace(plan.training, evaluate_every="2it"))
    scaled = replace(plan, precision=PrecisionSettings(loss_scale=FixedLossScale()))
    trainer = trainer_for(point_task(), scaled, tmp_path)
    trainer.train()
    captured = trainer.state.capture()
    values = dict(captured.values)
    assert set(values) == {"step", "elapsed_s", "loss_scale", "objectives", "early_stopping"}
    assert values["step"] == 4
    assert values["elapsed_s"] == trainer.state.elapsed_s > 0
    assert values["early_stopping"]["last_step"] == 4
    objective = values["objectives"]["points"]
    assert set(objective) == {"updates", "window", "groups"}
    assert (objective["updates"], objective["window"]["steps"]) == (4, 1)
    assert set(objective["window"]["sums"]) == {"loss"}
    again = trainer_for(point_task(seed=9), scaled, tmp_path)
    # The last evaluation came after the state was captured.
    again.resume(list_checkpoints(again.run.checkpoints)[-1])
    assert again.state.step == 4
    (lane,) = again.state.lanes
    assert (lane.steps, int(lane.updates)) == (1, 4)
    assert lane.sums["loss"].item() == pytest.approx(objective["window"]["sums"]["loss"])
    other = again.state.capture()
    assert other.values == values
    assert other.slots.keys() == captured.slots.keys()
    assert all(torch.equal(other.slots[name], value) for name, value in captured.slots.items())


def test_checkpoint_has_no_loss_scale_or_early_stopping_state_if_unused(tmp_path: Path) -> None:
    trainer = trainer_for(point_task(), AVERAGED, tmp_path)
    values = trainer.state.capture().values
    assert values["loss_scale"] is None
    assert "early_stopping" not in values
    assert (trainer.state.skipped_steps, trainer.state.without_update()) == (0, [])


def test_imported_weights_resume_with_their_slots_and_step(
    tmp_path: Path,
) -> None:
    plan = small_plan(optimizer=Adam(learning_rate=0.01))
    source = trainer_for(point_task(), plan, tmp_path / "source")
    for _ in source.each_step(3):
        pass
    (lane,) = source.state.lanes
    named = dict(source.task.model.named_parameters())
    slots = {
        f"{name}/{key}": value
        for name, parameter in named.items()
        for key, value in lane.optimizer.state[parameter].items()
    }
    imported = write_checkpoint(
        tmp_path / "imported",
        step=1234,
        epoch=0,
        model=source.task.model.state_dict(),
        ema=None,
        state=SavedState(values={"step": 1234, "powers": {}}, slots=slots),
        batch={},
    )
    again = trainer_for(point_task(seed=9), plan, tmp_path / "again")
    again.state.restore(imported)
    assert again.state.step == 1234
    (lane,) = again.state.lanes
    for name, parameter in again.task.model.named_parameters():
        assert torch.equal(parameter, named[name])
        assert torch.equal(lane.optimizer.state[parameter]["exp_avg"], slots[f"{name}/exp_avg"])
    assert {float(group["updates"]) for group in lane.optimizer.param_groups} == {1234.0}


def test_mismatched_checkpoint_is_refused_with_the_differences(tmp_path: Path) -> None:
    plain = replace(AVERAGED, training=replace(AVERAGED.training, ema_decay=0.0))
    checkpoint = last_of(plain, tmp_path / "plain")
    averaging = trainer_for(point_task(), AVERAGED, tmp_path / "a")
    with pytest.raises(UserError) as refused:
        averaging.state.restore(checkpoint)
    assert str(refused.value) == (
        f"{checkpoint.path}: contains no averaged weights, but training.ema_decay requires them"
    )
    renamed = trainer_for(point_task(), plain, tmp_path / "b")
    renamed.state.lanes[0].objective.name = "others"
    with pytest.raises(UserError) as refused:
        renamed.state.restore(checkpoint)
    assert str(refused.value) == f"{checkpoint.path}: does not fit this recipe: 'others'"
    weights = write_checkpoint(
        tmp_path / "weights",
        step=0,
        epoch=0,
        model=load_weights(checkpoint.model_file(ema=False)),
        ema=None,
        state=SavedState(),
        batch={},
    )
    with pytest.raises(UserError) as refused:
        trainer_for(point_task(), plain, tmp_path / "c").state.restore(weights)
    assert str(refused.value) == (
        f"{weights.path}: contains imported weights but no optimizer state, so it cannot be "
        "resumed\n"
        "  Start a new run from it: jumar train RECIPE --set transfer.start_from=DIR"
    )


def test_weights_of_another_model_are_refused_naming_the_first_difference() -> None:
    own = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    tensors = {name: value.clone() + 1 for name, value in own.state_dict().items()}
    before = {name: value.clone() for name, value in own.state_dict().items()}
    advice = "To start from other weights use --set transfer.start_from=..."

    def message(given: dict[str, torch.Tensor], **more: str) -> str:
        with pytest.raises(UserError) as refused:
            load_exactly(own, given, "a/b", **more)
        return str(refused.value)

    lacking = {name: value for name, value in tensors.items() if name != "1.bias"}
    says = "a/b: belongs to another model: it differs in"
    assert message(lacking) == f"{says} '1.bias'\n  {advice}"
    assert message({**tensors, "0.extra": torch.zeros(1)}, todo="No.") == f"{says} '0.extra'\n  No."
    wide = {**tensors, "0.weight": torch.zeros(5, 2), "1.weight": torch.zeros(1, 5)}
    assert message(wide) == f"{says} '0.weight' and others\n  {advice}"
    assert all(torch.equal(value, before[name]) for name, value in own.state_dict().items())
    load_exactly(own, tensors, "a/b")
    assert all(torch.equal(value, tensors[name]) for name, value in own.state_dict().items())


def test_two_objectives_of_one_name_are_refused(tmp_path: Path) -> None:
    task = GanTask()
    task.objectives[1].name = "discriminator"
    plan = small_plan(objectives=("discriminator",))
    with pytest.raises(UserError) as refused:
        trainer_for(task, plan, tmp_path)
    assert str(refused.value) == (
        "two objectives of the task have the same name: discriminator, discriminator"
    )


def test_window_has_means_per_objective_and_is_closed_only_on_request(
    tmp_path: Path,
) -> None:
    optimizer = Momentum(learning_rate=0.0, weight_decay=0.5)
    plan = small_plan(objectives=("discriminator", "generator"), optimizer=optimizer)
    plan = replace(plan, training=replace(plan.training, log_gradient_norm=True))
    state = trainer_for(GanTask(), plan, tmp_path).state
    assert state.read_window() is None
    one, other = state.lanes
    for value in (1.0, 2.0, 6.0):
        one.add_terms({"loss": torch.tensor(value), "real": torch.tensor(10 * value)})
        one.add_gradient_norm(torch.tensor(value))
        one.steps += 1
    one.add_gradient_norm(torch.tensor(float("inf")))
    one.steps += 1
    one.last_rate, other.last_rate = 0.25, 0.125
    decay = {
        lane.objective.name: 0.25 * sum(p.detach().square().sum().item() for p in lane.parameters)
        for lane in state.lanes
    }
    expected = Window(
        losses={"discriminator": 2.25},
        total_losses={"discriminator": pytest.approx(2.25 + decay["discriminator"])},
        terms={"discriminator/real": 22.5},
        learning_rates={"discriminator": 0.25},
        gradient_norms={"discriminator": 3.0},
    )
    assert state.read_window(close=False) == expected
    assert state.read_window() == expected
    assert (one.sums, one.steps) == ({}, 0)
    assert state.read_window() is None
    other.add_terms({"loss": torch.tensor(-4.0)})
    other.steps += 1
    assert state.read_window() == Window(
        losses={"generator": -4.0},
        total_losses={"generator": pytest.approx(-4.0 + decay["generator"])},
        terms={},
        learning_rates={"generator": 0.125},
        gradient_norms={},
    )


def test_single_objective_has_plain_term_names_and_weights_keep_their_layout(
    tmp_path: Path,
) -> None:
    state = trainer_for(point_task(), small_plan(), tmp_path).state
    (lane,) = state.lanes
    lane.add_terms({"loss": torch.tensor(1.0), "hits": torch.tensor(2.0)})
    lane.steps += 1
    window = state.read_window()
    assert window is not None
    assert window.terms == {"hits": 2.0}
    for channels_last in (True, False):
        task = point_task()
        task.model.add_module("conv", nn.Conv2d(3, 4, 2))
        training = TrainingSettings(channels_last=channels_last)
        trainer_for(task, small_plan(training=training), tmp_path)
        kernel = task.model.get_parameter("conv.weight")
        assert kernel.is_contiguous(memory_format=torch.channels_last) is channels_last


def test_averages_are_updated_only_when_the_averaged_part_trains(tmp_path: Path) -> None:
    plan = small_plan(objectives=("discriminator", "generator"))
    averaging = replace(plan, training=replace(plan.training, ema_decay=0.9, ema_warm_up=False))
    state = trainer_for(GanTask(), averaging, tmp_path).state
    assert [lane.averaged for lane in state.lanes] == [False, True]
    assert state.ema is not None
    assert (state.ema.decay, state.ema.warm_up) == (0.9, False)
    plain = trainer_for(GanTask(), plan, tmp_path).state
    assert plain.ema is None
    assert [lane.averaged for lane in plain.lanes] == [False, False]
    for each, name in ((state, "ema"), (plain, "model")):
        with each.scored_weights() as weights:
            assert weights == name
