import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from jumar.data.samples import Fault, SampleKey
from jumar.devices.cpu import Cpu
from jumar.devices.registry import open_device
from jumar.ground.errors import UserError
from jumar.observer import Observer
from jumar.precision.loss_scale import ExponentialLossScale, FixedLossScale
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings
from jumar.training.checkpoint import load_state, load_weights
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.optimizers import Adam, Sgd
from jumar.training.parallel.ranks import Ranks
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
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
def test_run_resumed_at_any_step_is_bitwise_equal(tmp_path: Path, name: str, at: int) -> None:
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


def test_accumulated_gradients_equal_the_full_batch_even_with_a_smaller_last_part(
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


def test_run_learns_and_records_it_in_its_files(tmp_path: Path) -> None:
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


def test_gan_trains_two_objectives_each_with_its_own_optimizer(tmp_path: Path) -> None:
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


def test_averages_are_updated_only_after_their_parameters_trained(tmp_path: Path) -> None:
    result = {}
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
        result[steps] = trainer.state.ema.state_dict()["g.weight"].clone()
    # The generator is trained at steps 0 and 2, so the fourth step leaves its average alone.
    assert torch.equal(result[3], result[4])


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


def test_elapsed_time_continues_after_a_resume(tmp_path: Path) -> None:
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


def test_rows_tables_and_images_of_an_evaluation_are_kept(tmp_path: Path) -> None:
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


def test_unwritable_images_do_not_end_the_run(tmp_path: Path) -> None:
    plan = small_plan(duration="4it", objectives=("discriminator", "generator"))
    trainer = trainer_for(GanTask(), plan, tmp_path)
    trainer.run.pictures.write_text("in the way")
    assert trainer.train().state == "finished"
    assert trainer.run.pictures.read_text() == "in the way"


def test_non_finite_loss_stops_before_the_update_naming_step_and_objective(
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


def test_device_with_pending_work_stops_at_the_next_log_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There, a result is not read at every step."""
    monkeypatch.setattr(Cpu, "reads_at_once", False)
    task = point_task()
    task.train_data.points[:] = float("inf")
    plan = small_plan(training=TrainingSettings(log_every="2it", evaluate_every=""))
    trainer = trainer_for(task, plan, tmp_path)
    outcome = trainer.train()
    assert (outcome.state, trainer.state.step) == ("failed", 2)
    assert json.loads(trainer.run.results.read_text())["failure"]["step"] == 1
    assert not trainer.run.read_metrics()


def test_overflow_skips_the_update_lowers_the_scale_and_stops_at_its_floor(
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


def test_stop_finishes_the_step_and_saves_and_resuming_equals_an_uninterrupted_run(
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


def test_extended_run_has_the_log_lines_of_one_planned_that_long(tmp_path: Path):
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


def test_dry_run_leaves_and_changes_nothing(tmp_path: Path) -> None:
    task = point_task()
    before = {k: v.clone() for k, v in task.model.state_dict().items()}
    trainer = trainer_for(task, small_plan(), tmp_path)
    assert trainer.train(dry_run=True).exit_code == 0
    assert same(before, dict(task.model.state_dict()))
    assert list(tmp_path.iterdir()) == []


def test_another_batch_is_refused_on_resume(tmp_path: Path) -> None:
    trainer_for(point_task(), small_plan(), tmp_path).train()
    other = trainer_for(point_task(), small_plan(batch_size=4), tmp_path)
    with pytest.raises(UserError, match="global batch size was 8, now 4"):
        other.resume(list_checkpoints(tmp_path / "checkpoints")[-1])


def test_checkpoint_has_the_documented_content(tmp_path: Path) -> None:
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


def without_numbers(printed: str) -> list[str]:
    """Lines with each number that depends on the machine or on training as `#`."""
    lines = [re.sub(r"-?\d+\.\d+", "#", line) for line in printed.splitlines()]
    return [re.sub(r"about \d+ (ms|s)", r"about # \1", line) for line in lines]


def test_training_prints_the_expected_lines(tmp_path: Path) -> None:
    stream = io.StringIO()
    plan = small_plan(
        duration="7it",
        training=TrainingSettings(log_every="2it", evaluate_every="1ep", ema_decay=0.9),
        checkpoints=CheckpointSettings(every="3it", keep=3),
    )
    trainer = trainer_for(point_task(), plan, tmp_path, console=Console(stream=stream))
    trainer.train()
    numbers = "epoch:   #  FPS:      -  loss: #  total_loss: #  lr:#"
    fast = "epoch:   #  FPS: #  loss: #  total_loss: #  lr:#  batch_time: # ms  data: # ms"
    parameters = sum(each.numel() for each in trainer.task.model.parameters())
    lines = without_numbers(re.sub(r"FPS: *\d+\.\d", "FPS: 0.0", stream.getvalue()))
    assert re.fullmatch(
        r"first batch: point float32 8x6, label int64 8 · memory: (\d+ MiB|# GiB)", lines.pop(1)
    )
    assert lines == [
        f"{parameters:,} parameters, all trained",
        "40 samples, 5 steps per epoch · checkpoints: 3 KiB each, at most 4 kept",
        "7 of 7 steps to go, about # ms each without the update: about # s, not counting "
        "evaluation",
        "Step   Epoch   Speed   Loss   FinLoss   LR",
        f"step:      2  {numbers}",
        f"step:      4  {numbers}",
        "evaluation at step 5, epoch #: top1: #  loss: #  (averaged weights)",
        f"step:      6  {fast}",
        f"step:      7  {fast}",
        "evaluation at step 7, epoch #: top1: #  loss: #  (averaged weights)",
    ]


class Scored(PointTask):
    """Returns the given scores, one after the other."""

    def __init__(self, *scores: float) -> None:
        super().__init__(SmallNet())
        self.scores = list(scores)

    def summarize(self, sums: Mapping[str, torch.Tensor]) -> dict[str, float]:
        return {"top1": self.scores.pop(0)}


@pytest.mark.parametrize(
    ("every", "keep_best", "saved"),
    [
        ("100it", True, {2: 10.0, 6: 20.0, 9: 15.0}),
        ("100it", False, {9: 15.0}),
        ("4it", False, {4: 5.0, 8: 20.0, 9: 15.0}),
        ("3it", True, {2: 10.0, 3: None, 6: 20.0, 9: 15.0}),
    ],
)
def test_new_best_is_saved_in_addition_to_scheduled_checkpoints(
    tmp_path: Path, every: str, keep_best: bool, saved: dict[int, float | None]
) -> None:
    plan = small_plan(
        duration="9it",
        training=TrainingSettings(log_every="100it", evaluate_every="2it"),
        checkpoints=CheckpointSettings(every=every, keep=20, keep_best=keep_best),
    )
    trainer = trainer_for(Scored(10.0, 5.0, 20.0, 20.0, 15.0), plan, tmp_path)
    assert trainer.train().metrics == {"top1": 15.0}
    result = {c.step: c.metrics.get("top1") for c in list_checkpoints(trainer.run.checkpoints)}
    assert result == saved
    results = json.loads(trainer.run.results.read_text())
    best = max(value for value in saved.values() if value is not None)
    assert results["best"]["value"] == best
    assert results["metrics"] == {"top1": 15.0}
    evaluated = [r for r in trainer.run.read_metrics() if r["kind"] == "evaluation"]
    assert [(r["step"], r["top1"], r["weights"]) for r in evaluated] == [
        (2, 10.0, "model"),
        (4, 5.0, "model"),
        (6, 20.0, "model"),
        (8, 20.0, "model"),
        (9, 15.0, "model"),
    ]
    assert [r["epoch"] for r in evaluated] == [0.4, 0.8, 1.2, 1.6, 1.8]


def test_resumed_run_drops_records_and_results_it_will_rewrite(
    tmp_path: Path,
) -> None:
    class Looking(Observer):
        def begin(self) -> None:
            result.append((trainer.run.results.exists(), len(trainer.run.read_metrics())))

    result: list[tuple[bool, int]] = []
    plan = small_plan(training=TrainingSettings(log_every="1it", evaluate_every=""))
    first = trainer_for(point_task(), plan, tmp_path)
    begun: list[int] = []
    first.train(begin=lambda: begun.append(first.state.step))
    assert begun == [0]
    trainer = trainer_for(point_task(), plan, tmp_path, observers=[Looking()])
    trainer.resume(next(c for c in list_checkpoints(tmp_path / "checkpoints") if c.step == 3))
    assert trainer.state.step == 3
    trainer.train()
    assert result == [(False, 3)]
    assert [r["step"] for r in trainer.run.read_metrics() if r["kind"] == "train"] == [
        *range(1, 11)
    ]
    dry = trainer_for(point_task(), plan, tmp_path / "dry")
    outcome = dry.train(dry_run=True, begin=lambda: begun.append(-1))
    assert (outcome.state, outcome.step, outcome.exit_code) == ("finished", 0, 0)
    assert begun == [0]


@pytest.mark.parametrize(("todo", "advice"), [("Remove it.", "Remove it.\n  "), ("", "")])
def test_unreadable_sample_ends_the_run_after_saving(
    tmp_path: Path, todo: str, advice: str
) -> None:
    task = point_task()
    fetch = task.train_data.fetch

    def unreadable(keys):
        if keys[0].epoch == epoch:
            raise UserError("is cut off", where="a.png", todo=todo)
        return fetch(keys)

    task.train_data.fetch = unreadable
    epoch = 1
    plan = small_plan(training=TrainingSettings(log_every="1it", evaluate_every=""))
    trainer = trainer_for(task, plan, tmp_path / "late")
    with pytest.raises(UserError) as refused:
        trainer.train()
    assert str(refused.value) == (
        f"a.png: is cut off\n  {advice}The training up to step 5 is saved. Resume with: "
        f"jumar train --resume --run-dir {tmp_path / 'late'}"
    )
    assert [c.step for c in list_checkpoints(trainer.run.checkpoints)] == [3, 5]


def test_evaluation_interrupted_by_a_stop_is_repeated_on_resume(tmp_path: Path) -> None:
    plan = small_plan(training=TrainingSettings(log_every="100it", evaluate_every="1ep"))
    task, stop, stream = point_task(), StopRequest(), io.StringIO()
    fetch = task.eval_data.fetch

    def fetch_and_stop(keys):
        stop.signal = 2
        return fetch(keys)

    task.eval_data.fetch = fetch_and_stop
    stopped = trainer_for(task, plan, tmp_path, stop, console=Console(stream=stream))
    outcome = stopped.train()
    assert (outcome.state, outcome.exit_code, outcome.step) == ("interrupted", 130, 5)
    assert outcome.metrics == {}
    assert stream.getvalue().splitlines()[-1] == (
        "stopped after step 5; the checkpoint is saved. Resume with: "
        f"jumar train --resume --run-dir {tmp_path}"
    )
    (last,) = list_checkpoints(tmp_path / "checkpoints")[-1:]
    assert (last.step, last.metrics) == (5, {})
    resumed = trainer_for(point_task(seed=8), plan, tmp_path)
    resumed.resume(last)
    resumed.train()
    scored = [r for r in resumed.run.read_metrics() if r["kind"] == "evaluation"]
    assert [record["step"] for record in scored] == [5, 10]
    noted = {c.step: bool(c.metrics) for c in list_checkpoints(tmp_path / "checkpoints")}
    assert noted == {3: False, 5: True, 6: False, 9: False, 10: True}


def test_timed_run_ends_when_its_time_is_up(tmp_path: Path) -> None:
    stream = io.StringIO()
    plan = small_plan(
        duration="0.3s", training=TrainingSettings(log_every="1000it", evaluate_every="")
    )
    chosen = {"points": replace(plan.optimization["points"], schedule=Constant())}
    trainer = trainer_for(
        point_task(),
        replace(plan, optimization=chosen),
        tmp_path,
        console=Console(stream=stream),
    )
    assert trainer.total_steps is None
    outcome = trainer.train()
    assert (outcome.state, outcome.exit_code) == ("finished", 0)
    assert outcome.step == trainer.state.step > 0
    assert trainer.state.elapsed_s >= 0.3
    assert "training for training.duration, about" in stream.getvalue()
    assert list_checkpoints(trainer.run.checkpoints)[-1].step == outcome.step
    assert [r["step"] for r in trainer.run.read_metrics() if r["kind"] == "train"][-1] == (
        outcome.step
    )


def test_unreadable_samples_are_reported_once_and_kept_in_the_results(tmp_path: Path) -> None:
    task, stream = point_task(), io.StringIO()
    fetch = task.train_data.fetch

    def with_faults(keys):
        result = fetch(keys)
        faults = [Fault(origin=f"{k.index}.png", reason="cut off") for k in keys if k.index < 2]
        return replace(result, faults=faults)

    task.train_data.fetch = with_faults
    plan = replace(small_plan(), skip_corrupt=2)
    trainer = trainer_for(task, plan, tmp_path, console=Console(stream=stream))
    trainer.train()
    lines = [line for line in stream.getvalue().splitlines() if line.startswith("skipped")]
    assert sorted(lines) == ["skipped: 0.png: cut off", "skipped: 1.png: cut off"]
    results = json.loads(trainer.run.results.read_text())
    assert sorted(results["unreadable_samples"]) == ["0.png: cut off", "1.png: cut off"]
    assert sorted(trainer.unreadable) == ["0.png: cut off", "1.png: cut off"]


def test_diverging_run_says_where_and_keeps_saved_checkpoints(tmp_path: Path) -> None:
    task, stream = point_task(), io.StringIO()
    fetch = task.train_data.fetch

    def fetch_and_spoil(keys):
        result = fetch(keys)
        if keys[0].epoch == 1:
            result.batch["point"][:] = float("nan")
        return result

    task.train_data.fetch = fetch_and_spoil
    trainer = trainer_for(task, small_plan(), tmp_path, console=Console(stream=stream))
    outcome = trainer.train()
    reason = "the loss is not finite and there is no loss scale to recover with"
    assert (outcome.state, outcome.step, outcome.exit_code) == ("failed", 5, 3)
    assert stream.getvalue().splitlines()[-1] == (
        f"stopped before the update: step 6, objective 'points': {reason}"
    )
    results = json.loads(trainer.run.results.read_text())
    assert results["failure"] == {"step": 6, "objective": "points", "reason": reason}
    assert (results["steps"], results["metrics"]) == (5, {})
    assert results["train_loss"] > 0
    assert results["score_tables"] == []
    assert [c.step for c in list_checkpoints(trainer.run.checkpoints)] == [3, 5]


@pytest.mark.parametrize("readable", [True, False])
def test_other_ranks_train_their_share_and_write_nothing(tmp_path: Path, readable: bool) -> None:
    task, stream = point_task(), io.StringIO()
    fetch, seen = task.train_data.fetch, set[int]()

    def fetch_or_fail(keys):
        if keys[0].epoch == 1 and not readable:
            raise UserError("is cut off", where="a.png", todo="Remove it.")
        seen.update(key.index for key in keys if key.epoch == 0)
        return fetch(keys)

    task.train_data.fetch = fetch_or_fail
    plan = small_plan(batch_size=4, duration="7it")
    policy = PrecisionPolicy(plan.precision, device_type="cpu")
    policy.install()
    trainer = Trainer(
        task,
        plan,
        device=open_device("cpu"),
        ranks=Ranks(rank=1, world=2, local_world=2),
        run=RunDirectory(tmp_path),
        console=Console(silent=True, stream=stream),
        stop=StopRequest(),
        policy=policy,
        versions={},
    )
    assert (trainer.steps_per_epoch, trainer.total_steps) == (5, 7)
    if readable:
        assert trainer.train().state == "finished"
    else:
        # The others wait in the next step, not for a checkpoint.
        with pytest.raises(UserError) as refused:
            trainer.train()
        assert str(refused.value) == "a.png: is cut off\n  Remove it."
    assert len(seen) == 20
    assert list(tmp_path.iterdir()) == []
    assert stream.getvalue() == ""
