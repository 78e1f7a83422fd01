"""The norm of gradients in the log: the true one, regardless of loss scale, clipping and split."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jumar.precision.loss_scale import ExponentialLossScale
from jumar.precision.settings import PrecisionSettings
from jumar.training.optimizers import Sgd
from jumar.training.schedules import Constant
from jumar.training.settings import Optimization, Plan, TrainingSettings
from tests.training.small_tasks import GanTask, PointTask, SmallNet, small_plan, trainer_for

ONE = {"duration": "1it", "optimizer": Sgd(learning_rate=1.0)}


def task() -> PointTask:
    torch.manual_seed(0)
    return PointTask(SmallNet(batch_norm=False, torch_dropout=0.0), eval_size=0)


def plan(precision: PrecisionSettings | None = None, **training: object) -> Plan:
    changed = replace(TrainingSettings(log_every="1it"), **training)  # pyright: ignore
    made = small_plan(**ONE, training=changed, precision=precision)  # pyright: ignore
    rates = {"points": Optimization(optimizer=Sgd(learning_rate=1.0), schedule=Constant())}
    return replace(made, optimization=rates)


def logged(plan: Plan, path: Path) -> list[float | None]:
    trainer = trainer_for(task(), plan, path)
    trainer.train()
    return [each.get("gradient_norm") for each in trainer.run.read_metrics()]


def norm_of_the_update(path: Path) -> float:
    """With plain SGD at rate 1 the weights move by the gradient itself."""
    made = task()
    before = torch.cat([each.detach().clone().flatten() for each in made.model.parameters()])
    trainer_for(made, plan(), path).train()
    after = torch.cat([each.detach().flatten() for each in made.model.parameters()])
    return (after - before).norm().item()


SCALED = PrecisionSettings(
    mode="allow_mix_precision", loss_scale=ExponentialLossScale(init_loss_scale=2.0**10)
)


@pytest.mark.parametrize(
    ("training", "precision", "tolerance"),
    [
        ({"log_gradient_norm": True}, None, 1e-5),
        ({"log_gradient_norm": True, "micro_batch_size": 3}, None, 1e-5),
        ({"clip": "global_norm", "clip_limit": 0.01}, None, 1e-5),
        ({"clip": "norm", "clip_limit": 0.01}, None, 1e-5),
        ({"clip": "value", "clip_limit": 0.001}, None, 1e-5),
        ({"clip": "value", "clip_limit": 0.001, "log_gradient_norm": True}, SCALED, 0.05),
        ({"log_gradient_norm": True}, SCALED, 0.05),
    ],
)
def test_norm_is_of_the_unclipped_unscaled_gradient(
    tmp_path: Path,
    training: dict[str, object],
    precision: PrecisionSettings | None,
    tolerance: float,
) -> None:
    expected = norm_of_the_update(tmp_path / "plain")
    (norm,) = logged(plan(precision, **training), tmp_path / "logged")
    assert norm == pytest.approx(expected, rel=tolerance)


def test_norm_is_absent_if_it_would_cost_a_pass_over_the_gradients(tmp_path: Path) -> None:
    assert logged(plan(), tmp_path / "a") == [None]
    assert logged(plan(SCALED), tmp_path / "b") == [None]


def test_requesting_the_norm_does_not_change_the_weights(tmp_path: Path) -> None:
    weights: list[torch.Tensor] = []
    for asked in (False, True):
        made = task()
        changed = replace(plan(log_gradient_norm=asked).training, duration="5it")
        trainer_for(made, replace(plan(), training=changed), tmp_path / str(asked)).train()
        weights.append(torch.cat([each.flatten() for each in made.model.parameters()]))
    assert torch.equal(*weights)


def test_each_objective_has_its_own_norm(tmp_path: Path) -> None:
    made = GanTask()
    names = [objective.name for objective in made.objectives]
    training = TrainingSettings(log_every="2it", evaluate_every="", log_gradient_norm=True)
    changed = small_plan(duration="2it", objectives=names, training=training)
    trainer = trainer_for(made, changed, tmp_path)
    trainer.train()
    record = next(each for each in trainer.run.read_metrics() if each["kind"] == "train")
    assert set(record["gradient_norms"]) == set(names)
    assert all(value > 0 for value in record["gradient_norms"].values())


def test_skipped_update_does_not_count(tmp_path: Path) -> None:
    huge = PrecisionSettings(
        mode="allow_mix_precision",
        emulate_fp16=True,
        loss_scale=ExponentialLossScale(
            init_loss_scale=2.0**20, decr_every_n_nan_or_inf=1, decr_ratio=0.5
        ),
    )
    changed = plan(huge, log_gradient_norm=True, log_every="30it")
    changed = replace(changed, training=replace(changed.training, duration="30it"))
    made = task()
    trainer = trainer_for(made, changed, tmp_path)
    trainer.train()
    (record,) = trainer.run.read_metrics()
    assert record["skipped"] > 0
    assert 0 < record["gradient_norm"] < 1000
