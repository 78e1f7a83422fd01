"""What the host reads from the device while a run trains: nothing between two log lines."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from jumar.devices.registry import open_device
from jumar.precision.loss_scale import ExponentialLossScale
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings
from jumar.training.optimizers import OptimizerSettings, create_optimizer
from jumar.training.optimizers.updating import step_unless
from jumar.training.parallel.ranks import Ranks
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.settings import CheckpointSettings, TrainingSettings
from jumar.training.signals import StopRequest
from jumar.training.trainer import Trainer
from tests.components import of_kind
from tests.read_backs import ReadBacks
from tests.training.small_tasks import point_task, small_plan

LOG_EVERY, STEPS = 4, 12


KINDS = ("sgd", "momentum", "adam", "adamw", "lamb", "rmsprop", "adagrad")
PLANS: dict[str, dict[str, Any]] = {
    "clipped, averaged, accumulated": {
        "training": TrainingSettings(clip="global_norm", ema_decay=0.9, micro_batch_size=3)
    },
    "fp16 with a moving loss scale": {
        "precision": PrecisionSettings(
            mode="allow_mix_precision", loss_scale=ExponentialLossScale()
        )
    },
    **{kind: {"optimizer": of_kind(OptimizerSettings, kind, learning_rate=0.01)} for kind in KINDS},
}


@pytest.mark.parametrize("name", PLANS)
def test_nothing_is_read_from_the_device_between_two_log_lines(tmp_path: Path, name: str) -> None:
    plan = small_plan(
        duration=f"{STEPS}it", checkpoints=CheckpointSettings(every=""), **PLANS[name]
    )
    training = replace(plan.training, log_every=f"{LOG_EVERY}it", evaluate_every="")
    device = open_device("npu")
    policy = PrecisionPolicy(plan.precision, device_type="npu")
    policy.install()
    try:
        trainer = Trainer(
            point_task(),
            replace(plan, training=training),
            device=device,
            ranks=Ranks(),
            run=RunDirectory(tmp_path),
            console=Console(silent=True),
            stop=StopRequest(),
            policy=policy,
            versions={},
        )
        reads = ReadBacks("npu", lambda: trainer.state.step)
        with reads:
            assert trainer.train().state == "finished"
    finally:
        policy.close()
    allowed = {0, *range(LOG_EVERY, STEPS + 1, LOG_EVERY)}
    assert [read for read in reads.seen if read[0] not in allowed] == []
    # Otherwise the counting is broken, not the promise kept.
    assert {step for step, _ in reads.seen} >= allowed - {0}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [(0,), (2, 3)])
def test_bad_step_is_skipped_without_synchronising(kind: str, bad: tuple[int, ...]) -> None:
    def walk(steps: list[int], left_out: tuple[int, ...]) -> torch.Tensor:
        weight = nn.Parameter(torch.linspace(-1, 1, 12, device="npu").reshape(3, 4))
        settings = of_kind(OptimizerSettings, kind, learning_rate=0.01, weight_decay=0.1)
        optimizer = create_optimizer(settings, [weight], [], device_type="npu")
        for step in steps:
            weight.grad = weight.detach() * (step + 1)
            if step in left_out:
                weight.grad.fill_(float("inf"))
            step_unless(optimizer, torch.tensor(float(step in left_out), device="npu"))
        return weight.detach().cpu()

    whole = list(range(5))
    without = [step for step in whole if step not in bad]
    assert torch.equal(walk(whole, bad), walk(without, ()))
