from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from jumar.data.samples import SampleKey
from jumar.training.optimizers import Sgd
from jumar.training.settings import TrainingSettings
from tests.training.small_tasks import (
    MaskedObjective,
    MaskedTask,
    point_task,
    small_plan,
    trainer_for,
)


class Reads(TorchDispatchMode):
    """Counts the values that travel from a tensor to Python."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


def test_step_reads_no_tensor_values(tmp_path: Path) -> None:
    """On a CPU the trainer looks at the guard between steps; on an accelerator nothing does.

    The whole run on a device is counted in tests/npu_standin/inside/test_read_backs.py.
    """
    plan = small_plan(training=TrainingSettings(clip="global_norm", ema_decay=0.9))
    trainer = trainer_for(point_task(), plan, tmp_path)
    batch = trainer.task.train_data.fetch([SampleKey(0, index) for index in range(8)]).batch
    reads = Reads()
    with reads:
        for _ in range(3):
            trainer._stepper.step(batch)
    assert trainer.state.step == 3
    assert reads.count == 0


@pytest.mark.parametrize("micro", [1, 3, 7])
def test_unequally_weighted_parts_give_the_gradient_and_means_of_the_whole(
    tmp_path: Path, micro: int
) -> None:
    gradients, windows = [], []
    for size in (0, micro):
        torch.manual_seed(2)
        plan = small_plan(
            objectives=("masked",),
            optimizer=Sgd(learning_rate=1.0),
            training=TrainingSettings(micro_batch_size=size),
        )
        trainer = trainer_for(MaskedTask(), plan, tmp_path / str(size))
        batch = trainer.task.train_data.fetch([SampleKey(0, index) for index in range(8)]).batch
        before = trainer.task.model.weight.detach().clone()
        trainer.state.step = 1  # the first step of the warm-up has half of the rate
        trainer._stepper.step(batch)
        gradients.append(before - trainer.task.model.weight.detach())
        windows.append(trainer.state.read_window())
    torch.testing.assert_close(gradients[1], gradients[0])
    assert windows[1].terms == pytest.approx(windows[0].terms, rel=1e-5)
    mask = MaskedObjective.mask(batch)
    assert 0 < mask.sum() < len(mask)
    assert windows[0].terms["hits"] * mask.sum().item() == pytest.approx(
        round(windows[0].terms["hits"] * mask.sum().item())
    )
    terms = windows[0].terms
    assert windows[0].losses["masked"] == pytest.approx(terms["one_side"] + terms["size"])


def test_batch_without_weight_gives_no_loss(tmp_path: Path) -> None:
    trainer = trainer_for(MaskedTask(), small_plan(objectives=("masked",)), tmp_path)
    batch = dict(trainer.task.train_data.fetch([SampleKey(0, index) for index in range(8)]).batch)
    batch["point"] = torch.zeros_like(batch["point"])
    trainer._stepper.step(batch)
    window = trainer.state.read_window()
    assert window.terms["one_side"] == 0.0


@pytest.mark.parametrize("logs", [False, True])
def test_step_moves_the_weights_against_the_gradient_of_the_mean_loss(
    tmp_path: Path, logs: bool
) -> None:
    torch.manual_seed(2)
    training = TrainingSettings(log_gradient_norm=logs)
    plan = small_plan(objectives=("masked",), optimizer=Sgd(learning_rate=0.5), training=training)
    trainer = trainer_for(MaskedTask(), plan, tmp_path)
    batch = trainer.task.train_data.fetch([SampleKey(0, index) for index in range(8)]).batch
    model = trainer.task.model
    weight, bias = (each.detach().clone().requires_grad_() for each in model.parameters())
    logits = batch["point"] @ weight.T + bias
    losses = torch.nn.functional.cross_entropy(logits, batch["label"], reduction="none")
    mask = batch["point"][:, 0] > 0.3
    loss = (losses * mask).sum() / mask.sum() + 0.1 * logits.square().sum() / 8
    loss.backward()
    trainer.state.step = 1  # the first step of the warm-up has half of the rate
    trainer._stepper.step(batch)
    assert weight.grad is not None
    assert bias.grad is not None
    torch.testing.assert_close(model.weight.detach(), weight.detach() - 0.5 * weight.grad)
    torch.testing.assert_close(model.bias.detach(), bias.detach() - 0.5 * bias.grad)
    (lane,) = trainer.state.lanes
    assert (trainer.state.step, lane.steps, lane.attempts, lane.last_rate) == (2, 1, 1, 0.5)
    assert all(each.grad is None for each in model.parameters())
    window = trainer.state.read_window()
    assert window is not None
    assert window.losses["masked"] == pytest.approx(loss.item(), rel=1e-5)
    norm = (weight.grad.square().sum() + bias.grad.square().sum()).sqrt().item()
    assert window.gradient_norms == ({"masked": pytest.approx(norm, rel=1e-5)} if logs else {})
