"""Program for torchrun: train with one sample that overflows, explained or not, and leave a run."""

import sys
from dataclasses import replace
from pathlib import Path

import torch

from jumar.devices.registry import open_device
from jumar.precision.loss_scale import FixedLossScale
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings
from jumar.training.parallel.announced import announced_ranks
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.signals import StopRequest
from jumar.training.trainer import Trainer
from tests.training.small_tasks import Points, point_task, small_plan


def main(path: Path, *, explained: bool) -> None:
    ranks = announced_ranks()
    device = open_device("cpu")
    ranks.connect(device)
    plan = small_plan(
        duration="6it",
        batch_size=8 // ranks.world,
        precision=PrecisionSettings(loss_scale=FixedLossScale(init_loss_scale=8.0)),
    )
    training = replace(plan.training, micro_batch_size=2, explain_overflow=explained)
    plan = replace(plan, training=training)
    policy = PrecisionPolicy(plan.precision, device_type="cpu")
    policy.install()
    task = point_task()
    assert isinstance(task.train_data, Points)
    task.train_data.points[9] = 3e38
    trainer = Trainer(
        task,
        plan,
        device=device,
        ranks=ranks,
        run=RunDirectory(path),
        console=Console(silent=not ranks.is_first),
        stop=StopRequest(),
        policy=policy,
        versions={},
    )
    assert trainer.train().state == "finished"
    ranks.disconnect()


if __name__ == "__main__":
    torch.manual_seed(4)
    main(Path(sys.argv[1]), explained=sys.argv[2] == "explained")
