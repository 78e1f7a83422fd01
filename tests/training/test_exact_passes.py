"""Passes of `training.sums=exact` on one rank: what they give, and what they refuse."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jumar.data.samples import Batch, SampleKey
from jumar.ground.errors import UserError
from jumar.training.optimizers import Sgd
from jumar.training.settings import Plan, TrainingSettings
from jumar.training.trainer import Trainer
from tests.training.small_tasks import MaskedTask, point_task, small_plan, trainer_for


def plan_of(sums: str, micro: int, objective: str = "points") -> Plan:
    return small_plan(
        objectives=(objective,),
        optimizer=Sgd(learning_rate=1.0),
        training=TrainingSettings(sums=sums, micro_batch_size=micro),
    )


def batch_of(trainer: Trainer) -> Batch:
    return trainer.task.train_data.fetch([SampleKey(0, index) for index in range(8)]).batch


def test_weighted_loss_has_the_gradient_and_terms_of_the_whole_batch(
    tmp_path: Path,
) -> None:
    weights, terms = [], []
    for sums, micro in (("fast", 0), ("exact", 2)):
        torch.manual_seed(2)
        trainer = trainer_for(MaskedTask(), plan_of(sums, micro, "masked"), tmp_path / sums)
        trainer._stepper.step(batch_of(trainer))
        weights.append(trainer.task.model.weight.detach())
        window = trainer.state.read_window()
        assert window is not None
        terms.append(window.terms)
    torch.testing.assert_close(weights[1], weights[0])
    assert terms[1] == pytest.approx(terms[0], rel=1e-5)


def test_batch_norm_averages_are_means_over_the_parts(tmp_path: Path) -> None:
    trainer = trainer_for(point_task(), plan_of("exact", 4), tmp_path)
    net, batch = trainer.task.model, batch_of(trainer)
    norm = net.norm
    before = {name: value.clone() for name, value in norm.named_buffers()}
    with torch.no_grad():
        inputs = net.first(batch["point"])
    trainer._stepper.step(batch)
    means = torch.stack([part.mean(dim=0) for part in inputs.split(4)]).mean(dim=0)
    torch.testing.assert_close(norm.running_mean, 0.9 * before["running_mean"] + 0.1 * means)
    variances = torch.stack([part.var(dim=0) for part in inputs.split(4)]).mean(dim=0)
    torch.testing.assert_close(norm.running_var, 0.9 * before["running_var"] + 0.1 * variances)
    assert norm.num_batches_tracked == before["num_batches_tracked"] + 1


def test_single_part_equals_a_whole_batch_step(tmp_path: Path) -> None:
    """Nothing is added then, so that not a bit differs."""
    states = []
    for sums in ("fast", "exact"):
        trainer = trainer_for(point_task(), plan_of(sums, 8), tmp_path / sums)
        trainer._stepper.step(batch_of(trainer))
        states.append(trainer.task.model.state_dict())
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())


def test_parameter_unreached_by_a_part_counts_as_zero_there(tmp_path: Path) -> None:
    trainer = trainer_for(point_task(), plan_of("exact", 4), tmp_path)
    first, last = trainer.task.model.first, trainer.task.model.last
    last.register_forward_pre_hook(lambda module, args: (args[0].detach(),))
    before = first.weight.detach().clone(), last.weight.detach().clone()
    trainer._stepper.step(batch_of(trainer))
    assert torch.equal(first.weight, before[0])
    assert not torch.equal(last.weight, before[1])


def test_non_finite_loss_in_one_part_blocks_the_update(tmp_path: Path) -> None:
    trainer = trainer_for(point_task(), plan_of("exact", 2), tmp_path)
    batch = batch_of(trainer)
    batch["point"][5] = torch.inf
    before = trainer.task.model.last.weight.detach().clone()
    trainer._stepper.step(batch)
    assert trainer.is_blocked
    assert torch.equal(trainer.task.model.last.weight, before)


@pytest.mark.parametrize(("micro", "reason"), [(0, "is not set"), (3, "3 does not divide")])
def test_unequal_parts_are_refused(micro: int, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=reason) as caught:
        trainer_for(point_task(), plan_of("exact", micro), tmp_path)
    assert caught.value.where == "training.micro_batch_size"


def test_batch_with_missing_samples_is_refused(tmp_path: Path) -> None:
    trainer = trainer_for(point_task(), plan_of("exact", 2), tmp_path)
    batch = {name: value[:7] for name, value in batch_of(trainer).items()}
    with pytest.raises(UserError, match="lacks samples") as caught:
        trainer._stepper.step(batch)
    assert caught.value.where == "data.skip_corrupt"


def test_another_part_size_is_refused_on_resume(tmp_path: Path) -> None:
    plan = plan_of("exact", 2)
    trainer = trainer_for(point_task(), replace(plan), tmp_path)
    trainer.train()
    checkpoint = trainer._keeper.best()
    assert checkpoint is not None
    with pytest.raises(UserError, match=r"micro batch size was 2, now 4.*additions"):
        trainer_for(point_task(), plan_of("exact", 4), tmp_path).resume(checkpoint)


@pytest.mark.parametrize(
    ("size", "problem"),
    [(0, "is not set"), (3, "3 does not divide the batch of a rank")],
)
def test_equal_parts_are_required(tmp_path: Path, size: int, problem: str) -> None:
    plan = small_plan(training=TrainingSettings(sums="exact", micro_batch_size=size))
    with pytest.raises(UserError) as refused:
        trainer_for(point_task(), plan, tmp_path)
    assert str(refused.value) == (
        f"training.micro_batch_size: training.sums=exact adds parts of equal size: "
        f"micro_batch_size {problem}\n"
        "  Choose a divisor of 8, the batch of a rank. The weights are then the same for all "
        "numbers of ranks whose batches it divides."
    )
