import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from jumar.data.samples import SampleKey
from jumar.precision.loss_scale import ExponentialLossScale, FixedLossScale
from jumar.precision.settings import PrecisionSettings
from jumar.training.checkpoint import load_state, load_weights
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.optimizers import Adam, Sgd
from jumar.training.parallel.ranks import Ranks
from jumar.training.schedules import Constant
from jumar.training.settings import CheckpointSettings, Plan, TrainingSettings
from jumar.training.signals import StopRequest
from jumar.training.trainer import Trainer
from tests.training.small_tasks import (
    GanTask,
    PointTask,
    SmallNet,
    point_task,
    small_plan,
    trainer_for,
)


def same(left: object, right: object) -> bool:
    """Equality to the last bit of nested state."""
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def everything(trainer: Trainer) -> dict[str, object]:
    state = trainer.state
    captured = state.capture()
    return {
        "model": {k: v.clone() for k, v in state.task.model.state_dict().items()},
        "ema": None if state.ema is None else dict(state.ema.state_dict()),
        "values": {k: v for k, v in captured.values.items() if k != "elapsed_s"},
        "slots": {k: v.clone() for k, v in captured.slots.items()},
    }


PLANS: dict[str, Callable[[], Plan]] = {
    "momentum with averages": lambda: small_plan(
        training=TrainingSettings(log_every="4it", evaluate_every="", ema_decay=0.9)
    ),
    "adam": lambda: small_plan(optimizer=Adam(learning_rate=0.01)),
    "exponential loss scale": lambda: small_plan(
        precision=PrecisionSettings(
            mode="allow_mix_precision",
            loss_scale=ExponentialLossScale(init_loss_scale=2.0**10, incr_every_n_steps=3),
        )
    ),
    "accumulated, clipped": lambda: small_plan(
        training=TrainingSettings(
            log_every="3it", evaluate_every="1ep", micro_batch_size=3, clip="global_norm"
        )
    ),
}


def log_lines(trainer: Trainer) -> dict[int, dict[str, Any]]:
    """The log lines of a run by step, without what depends on the clock."""
    clock = ("fps", "step_ms", "data_ms", "elapsed_s")
    return {
        record["step"]: {name: value for name, value in record.items() if name not in clock}
        for record in trainer.run.read_metrics()
        if record["kind"] == "train"
    }


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("at", [3, 7])
def test_ten_steps_equal_some_and_a_resume_and_the_rest_bit_for_bit(
    tmp_path: Path, name: str, at: int
) -> None:
    plan = replace(PLANS[name](), checkpoints=CheckpointSettings(every=f"{at}it", keep=9))
    whole = trainer_for(point_task(), plan, tmp_path / "whole")
    whole.train()
    part = trainer_for(point_task(), plan, tmp_path / "part")
    part.train()
    resumed = trainer_for(point_task(seed=99), plan, tmp_path / "part")
    resumed.resume(
        next(c for c in list_checkpoints(tmp_path / "part" / "checkpoints") if c.step == at)
    )
    resumed.train()
    assert same(everything(whole), everything(resumed))
    assert log_lines(whole) == log_lines(resumed)


def test_accumulated_gradients_equal_the_full_batch_also_with_a_smaller_last_part(
    tmp_path: Path,
) -> None:
    weights = []
    for micro in (0, 3):
        task = PointTask(_seeded_net(batch_norm=False, torch_dropout=0.0))
        plan = small_plan(training=TrainingSettings(log_every="5it", micro_batch_size=micro))
        trainer_for(task, plan, tmp_path / str(micro)).train()
        weights.append(task.model.state_dict())
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, rtol=2e-5, atol=2e-6)


def test_the_run_learns_and_tells_it_in_its_files(tmp_path: Path) -> None:
    trainer = trainer_for(point_task(), small_plan(duration="40it"), tmp_path)
    outcome = trainer.train()
    assert (outcome.state, outcome.exit_code, outcome.step) == ("finished", 0, 40)
    results = json.loads(trainer.run.results.read_text())
    assert results["metrics"]["top1"] > 80
    assert results["eval_samples"] == 11
    assert results["steps"] == 40
    assert results["throughput"]["samples_per_second"] > 0
    assert results["best"]["value"] >= results["metrics"]["top1"]
    records = trainer.run.read_metrics()
    losses = [r["loss"] for r in records if r["kind"] == "train"]
    assert losses[-1] < losses[0]
    assert all(r["total_loss"] > r["loss"] for r in records if r["kind"] == "train")
    assert [r["step"] for r in records if r["kind"] == "evaluation"] == [
        5,
        10,
        15,
        20,
        25,
        30,
        35,
        40,
    ]


def test_a_gan_trains_two_objectives_each_with_its_own_optimizer(tmp_path: Path) -> None:
    task = GanTask()
    before = {k: v.clone() for k, v in task.model.state_dict().items()}
    plan = small_plan(duration="4it", objectives=("discriminator", "generator"))
    fast = plan.optimization["generator"]
    slow = replace(fast, optimizer=replace(fast.optimizer, learning_rate=0.0))
    plan = replace(plan, optimization={"discriminator": fast, "generator": slow})
    trainer = trainer_for(task, plan, tmp_path)
    assert trainer.train().state == "finished"
    after = task.model.state_dict()
    assert not torch.equal(after["d.weight"], before["d.weight"])
    assert torch.equal(after["g.weight"], before["g.weight"])
    record = trainer.run.read_metrics()[0]
    assert set(record["losses"]) == {"discriminator", "generator"}
    assert "discriminator/real" in record["terms"]


def test_only_the_named_part_of_a_model_is_averaged(tmp_path: Path) -> None:
    plan = small_plan(duration="4it", objectives=("discriminator", "generator"))
    plan = replace(plan, training=replace(plan.training, ema_decay=0.9, evaluate_every=""))
    trainer = trainer_for(GanTask(), plan, tmp_path)
    trainer.train()
    last = list_checkpoints(trainer.run.checkpoints)[-1]
    raw, averaged = (load_weights(last.model_file(ema=ema)) for ema in (False, True))
    assert torch.equal(averaged["d.weight"], raw["d.weight"])
    assert not torch.equal(averaged["g.weight"], raw["g.weight"])


def test_averages_move_only_when_what_they_average_was_trained(tmp_path: Path) -> None:
    found = {}
    for steps in (3, 4):
        torch.manual_seed(5)
        plan = small_plan(duration=f"{steps}it", objectives=("discriminator", "generator"))
        constant = Constant()
        chosen = {k: replace(v, schedule=constant) for k, v in plan.optimization.items()}
        training = replace(plan.training, ema_decay=0.9, evaluate_every="")
        plan = replace(plan, training=training, optimization=chosen)
        trainer = trainer_for(GanTask(), plan, tmp_path / str(steps))
        trainer.train()
        assert trainer.state.ema is not None
        found[steps] = trainer.state.ema.state_dict()["g.weight"].clone()
    # The generator is trained at steps 0 and 2, so the fourth step leaves its average alone.
    assert torch.equal(found[3], found[4])


def test_averages_follow_the_schedule_of_the_step_just_finished(tmp_path: Path) -> None:
    """The decay of step t is (1 + t) / (10 + t) at first, as TensorFlow's with a step."""
    training = TrainingSettings(log_every="1it", evaluate_every="", ema_decay=0.99)
    plan = small_plan(duration="3it", training=training)
    trainer = trainer_for(point_task(), plan, tmp_path)
    weight = dict(trainer.task.model.named_parameters())["first.weight"]
    expected = weight.detach().clone()
    batches = [[SampleKey(0, 8 * step + index) for index in range(8)] for step in range(3)]
    for step, keys in enumerate(batches):
        trainer._stepper.step(trainer.task.train_data.fetch(keys).batch)
        decay = (1 + step) / (10 + step)
        expected = decay * expected + (1 - decay) * weight.detach()
    assert trainer.state.ema is not None
    torch.testing.assert_close(trainer.state.ema.state_dict()["first.weight"], expected)


def test_elapsed_time_goes_on_where_the_run_was_resumed(tmp_path: Path) -> None:
    plan = small_plan(duration="3it", checkpoints=CheckpointSettings(every="3it", keep=9))
    first = trainer_for(point_task(), plan, tmp_path)
    first._elapsed_before = 1000.0
    first.train()
    last = list_checkpoints(first.run.checkpoints)[-1]
    longer = trainer_for(
        point_task(),
        replace(plan, training=replace(plan.training, duration="6it")),
        tmp_path,
    )
    longer.resume(last)
    longer.train()
    assert longer.state.elapsed_s > first.state.elapsed_s > 1000
    records = [r["elapsed_s"] for r in longer.run.read_metrics() if r["kind"] == "train"]
    assert records == sorted(records)


@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "with a loss scale"])
def test_gradients_are_clipped_to_their_true_size(tmp_path: Path, scaled: bool) -> None:
    """Divided by the loss scale first: the limit is one of the gradients themselves."""
    limit, scale = 1e-3, FixedLossScale(init_loss_scale=1024.0)
    precision = PrecisionSettings(loss_scale=scale) if scaled else PrecisionSettings()
    plan = small_plan(
        optimizer=Sgd(learning_rate=1.0),
        precision=precision,
        training=TrainingSettings(clip="global_norm", clip_limit=limit),
    )
    trainer = trainer_for(point_task(), plan, tmp_path)
    before = [parameter.detach().clone() for parameter in trainer.task.model.parameters()]
    batch = trainer.task.train_data.fetch([SampleKey(0, index) for index in range(8)]).batch
    trainer._stepper.step(batch)
    rate = trainer.state.lanes[0].last_rate
    moved = [
        (parameter.detach() - was).square().sum()
        for parameter, was in zip(trainer.task.model.parameters(), before, strict=True)
    ]
    assert sum(moved).sqrt().item() == pytest.approx(limit * rate, rel=1e-3)


def test_rows_tables_and_pictures_of_an_evaluation_are_kept(tmp_path: Path) -> None:
    plan = small_plan(duration="4it", objectives=("discriminator", "generator"))
    trainer = trainer_for(GanTask(), plan, tmp_path)
    trainer.train()
    (table,) = json.loads(trainer.run.results.read_text())["score_tables"]
    assert table["header"] == ["rows", "a", "b", "c"]
    total, *labels = map(int, table["rows"][0])
    assert total == sum(labels) == 11
    folder = trainer.run.pictures / "step-00000004"
    assert json.loads((folder / "captions.json").read_text()) == {"weights": "nothing <to> see"}
    assert Image.open(folder / "weights.png").size == (3, 2)


def test_pictures_that_cannot_be_written_do_not_end_the_run(tmp_path: Path) -> None:
    plan = small_plan(duration="4it", objectives=("discriminator", "generator"))
    trainer = trainer_for(GanTask(), plan, tmp_path)
    trainer.run.pictures.write_text("in the way")
    assert trainer.train().state == "finished"
    assert trainer.run.pictures.read_text() == "in the way"


def test_a_loss_that_is_not_finite_stops_before_the_update_with_step_and_objective(
    tmp_path: Path,
) -> None:
    task = point_task()
    task.train_data.points[:] = float("inf")
    before = task.model.first.weight.detach().clone()
    trainer = trainer_for(task, small_plan(), tmp_path)
    outcome = trainer.train()
    assert (outcome.state, outcome.exit_code) == ("failed", 3)
    assert torch.equal(task.model.first.weight, before)
    failure = json.loads(trainer.run.results.read_text())["failure"]
    assert (failure["step"], failure["objective"]) == (1, "points")
    assert list_checkpoints(trainer.run.checkpoints) == []


def test_an_overflow_skips_the_update_lowers_the_scale_and_stops_at_its_floor(
    tmp_path: Path,
) -> None:
    task = point_task()
    task.train_data.points[:] = float("inf")
    scale = ExponentialLossScale(
        init_loss_scale=4.0,
        incr_every_n_steps=100,
        decr_every_n_nan_or_inf=1,
        decr_ratio=0.5,
    )
    plan = small_plan(precision=PrecisionSettings(mode="allow_mix_precision", loss_scale=scale))
    trainer = trainer_for(task, plan, tmp_path)
    outcome = trainer.train()
    assert outcome.state == "failed"
    assert outcome.failure is not None
    assert outcome.failure.step == 3
    assert "floor" in outcome.failure.reason
    assert json.loads(trainer.run.results.read_text())["skipped_steps"] == 3


def test_a_stop_finishes_the_step_saves_and_the_rest_equals_never_having_stopped(
    tmp_path: Path,
) -> None:
    plan = small_plan(training=TrainingSettings(log_every="4it", evaluate_every="1ep"))
    whole = trainer_for(point_task(), plan, tmp_path / "whole")
    whole.train()
    stop = StopRequest()
    task = point_task()
    stopped = trainer_for(task, plan, tmp_path / "part", stop)
    fetch = task.train_data.fetch

    def fetch_and_stop(keys):
        if keys[0].epoch == 1:
            stop.signal = 15
        return fetch(keys)

    task.train_data.fetch = fetch_and_stop
    outcome = stopped.train()
    assert (outcome.state, outcome.exit_code) == ("interrupted", 143)
    last = list_checkpoints(tmp_path / "part" / "checkpoints")[-1]
    assert last.step == outcome.step < 10
    assert last.step % 4
    resumed = trainer_for(point_task(seed=8), plan, tmp_path / "part")
    resumed.resume(last)
    resumed.train()
    assert same(everything(whole), everything(resumed))
    lines = log_lines(resumed)
    assert lines.pop(last.step)["loss"] > 0
    assert lines == log_lines(whole)


def test_a_longer_run_has_the_log_lines_of_one_that_was_as_long_from_the_start(tmp_path: Path):
    training = TrainingSettings(log_every="3it", evaluate_every="", clip="global_norm")
    plan = small_plan(duration="8it", training=training)
    optimization = replace(plan.optimization["points"], schedule=Constant())
    plan = replace(plan, optimization={"points": optimization})
    trainer_for(point_task(), plan, tmp_path / "part").train()
    longer = replace(plan, training=replace(training, duration="12it"))
    whole = trainer_for(point_task(), longer, tmp_path / "whole")
    whole.train()
    resumed = trainer_for(point_task(), longer, tmp_path / "part")
    resumed.resume(list_checkpoints(tmp_path / "part" / "checkpoints")[-1])
    resumed.train()
    lines, expected = log_lines(resumed), log_lines(whole)
    assert list(lines) == [3, 6, 8, 9, 12]
    assert {step: lines[step] for step in expected} == expected
    assert lines[9]["gradient_norm"] > 0


def test_a_dry_run_leaves_nothing_and_changes_nothing(tmp_path: Path) -> None:
    task = point_task()
    before = {k: v.clone() for k, v in task.model.state_dict().items()}
    trainer = trainer_for(task, small_plan(), tmp_path)
    assert trainer.train(dry_run=True).exit_code == 0
    assert same(before, dict(task.model.state_dict()))
    assert list(tmp_path.iterdir()) == []


def test_another_batch_is_refused_on_resume(tmp_path: Path) -> None:
    from jumar.ground.errors import UserError

    trainer_for(point_task(), small_plan(), tmp_path).train()
    other = trainer_for(point_task(), small_plan(batch_size=4), tmp_path)
    with pytest.raises(UserError, match="global batch size was 8, now 4"):
        other.resume(list_checkpoints(tmp_path / "checkpoints")[-1])


def test_checkpoint_holds_what_is_promised(tmp_path: Path) -> None:
    trainer_for(point_task(), PLANS["momentum with averages"](), tmp_path).train()
    last = list_checkpoints(tmp_path / "checkpoints")[-1]
    assert last.step == 10
    assert last.metrics["top1"] >= 0
    assert set(load_weights(last.model_file(ema=False))) == set(SmallNet().state_dict())
    assert last.has_ema
    assert load_state(last).values["step"] == 10


def _seeded_net(**options: object) -> SmallNet:
    torch.manual_seed(5)
    return SmallNet(**options)


def test_ranks_default_to_one() -> None:
    assert Ranks().is_first
