"""Program for torchrun: train a small task on all ranks, and keep its run."""

import sys
from dataclasses import replace
from pathlib import Path

import torch

from jumar.devices.registry import open_device
from jumar.precision.policy import PrecisionPolicy
from jumar.tasks.task import Task
from jumar.training.parallel.announced import announced_ranks
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.signals import StopRequest
from jumar.training.trainer import Trainer
from tests.training.small_tasks import GanTask, MaskedTask, small_plan


def main(task: Task, path: Path) -> None:
    ranks = announced_ranks()
    device = open_device("cpu")
    ranks.connect(device)
    plan = small_plan(
        duration="7it",
        objectives=[objective.name for objective in task.objectives],
        batch_size=8 // ranks.world,
    )
    # A last log line after three of four steps: the checkpoint keeps their sums.
    plan = replace(plan, training=replace(plan.training, micro_batch_size=3, log_every="4it"))
    policy = PrecisionPolicy(plan.precision, device_type="cpu")
    policy.install()
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
    main({"gan": GanTask, "masked": MaskedTask}[sys.argv[1]](), Path(sys.argv[2]))
